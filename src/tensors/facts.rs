//! A hold → what is known of it besides the codes, and as numbers for a model.

use super::cycles::Cycle;
use super::family::family;
use super::record::{Record, Records, Tally};
use crate::eventlog::ResourceRequest;
use crate::events::Job;

/// Hold codes 0 to 49 have a place of their own, all others share one.
const CODES: usize = 51;
const FAMILIES: usize = 10;
const NUMBERS: usize = 12;
/// In the order of [`super::family::Family`].
const FAMILY_NAMES: [&str; FAMILIES] = [
    "none",
    "missing",
    "permission",
    "disk",
    "timeout",
    "network",
    "plugin",
    "memory",
    "cpu",
    "other",
];
const NUMBER_NAMES: [&str; NUMBERS] = [
    "earlier_holds",
    "since_submit",
    "request_cpus",
    "request_gpus",
    "request_memory",
    "request_disk",
    "cluster_success",
    "cluster_cases",
    "owner_success",
    "owner_cases",
    "cluster_ended_well",
    "cluster_ends",
];
/// `s`: how many numbers [`Facts::statics`] gives.
pub const STATICS: usize = CODES + FAMILIES + NUMBERS;

/// What is known of a held job in the second of its hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// How many holds the job had before.
    pub earlier_holds: u32,
    /// Since the submission.
    pub since_submit_s: u32,
    /// What the job asked for when it was submitted.
    pub request: ResourceRequest,
    /// What had become of the jobs around it.
    pub record: Record,
}

impl Facts {
    /// The facts of one hold of `job`.
    pub fn at(job: &Job<'_>, cycle: &Cycle, records: &Records) -> Facts {
        let since_submit_ms = (job.history.time_ms[cycle.hold] - job.submit_ms).max(0);
        Facts {
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            earlier_holds: cycle.earlier_holds,
            since_submit_s: u32::try_from(since_submit_ms / 1000).unwrap_or(u32::MAX),
            request: job.request,
            record: records.at(job, cycle),
        }
    }

    /// The kind of trouble that code and subcode tell, as it is stored.
    pub(super) fn subcode_family(&self) -> u8 {
        family(self.hold_code, self.hold_subcode) as u8
    }

    /// What each number of [`Facts::statics`] is, `[s]`.
    pub fn names() -> Vec<String> {
        let codes = (0..CODES - 1)
            .map(|code| format!("hold_code_{code}"))
            .chain(["hold_code_other".to_owned()]);
        let words = FAMILY_NAMES
            .iter()
            .map(|family| format!("subcode_{family}"));
        codes
            .chain(words)
            .chain(NUMBER_NAMES.map(str::to_owned))
            .collect()
    }

    /// The facts as numbers near 1 `[s]`: the hold code and the family of the subcode one-hot; logarithms of counts, times
    /// and sizes; of each tally the share of successes, from -1 to 1 and drawn to 0 where cases are few, and its size.
    pub fn statics(&self) -> [f32; STATICS] {
        let mut statics = [0.0; STATICS];
        let code = usize::try_from(self.hold_code).map_or(CODES - 1, |code| code.min(CODES - 1));
        statics[code] = 1.0;
        statics[CODES + usize::from(self.subcode_family())] = 1.0;
        let count = |n: u32| (n as f32).ln_1p();
        let size = |n: u32| (n as f32).ln_1p() / 10.0;
        let share = |t: Tally| {
            (t.successes as f32 - t.failures as f32)
                / (t.successes as f32 + t.failures as f32 + 2.0)
        };
        let cases = |t: Tally| count(t.successes.saturating_add(t.failures)) / 4.0;
        let Record {
            cluster,
            owner,
            ends,
        } = self.record;
        let numbers: [f32; NUMBERS] = [
            count(self.earlier_holds),
            size(self.since_submit_s),
            count(self.request.cpus.into()),
            count(self.request.gpus.into()),
            size(self.request.memory_mb),
            size(self.request.disk_mb),
            share(cluster),
            cases(cluster),
            share(owner),
            cases(owner),
            share(ends),
            cases(ends),
        ];
        statics[CODES + FAMILIES..].copy_from_slice(&numbers);
        statics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_its_place() {
        let tally = Tally {
            successes: 6,
            failures: 2,
        };
        let record = Record {
            owner: tally,
            ..Record::default()
        };
        let facts = Facts {
            hold_code: 13,
            hold_subcode: 2,
            earlier_holds: 1,
            record,
            ..Facts::default()
        };
        let statics = facts.statics();
        let set: Vec<usize> = (0..STATICS).filter(|&at| statics[at] != 0.0).collect();
        assert_eq!(
            set,
            [13, CODES + 1, CODES + FAMILIES, STATICS - 4, STATICS - 3]
        );
        assert_eq!(statics[STATICS - 4], 0.4);
    }

    #[test]
    fn every_number_has_a_name() {
        let names = Facts::names();
        assert_eq!(names.len(), STATICS);
        assert_eq!(
            (names[13].as_str(), names[CODES + 1].as_str()),
            ("hold_code_13", "subcode_missing")
        );
        assert_eq!(names[STATICS - 4], "owner_success");
    }

    #[test]
    fn strange_numbers_have_the_last_place() {
        for hold_code in [-1, 50, i32::MAX] {
            assert_eq!(
                Facts {
                    hold_code,
                    ..Facts::default()
                }
                .statics()[CODES - 1],
                1.0
            );
        }
        let most = Tally {
            successes: u32::MAX,
            failures: u32::MAX,
        };
        let facts = Facts {
            record: Record {
                cluster: most,
                owner: most,
                ends: most,
            },
            ..Facts::default()
        };
        assert!(facts.statics().iter().all(|number| number.is_finite()));
    }
}
