//! A hold → what is known of it besides the codes, and as numbers for a model.

use super::asked_hold::AskedHold;
use super::hold_history::{HoldHistories, HoldHistory, OutcomeCounts};
use super::subcode_family::subcode_family;
use crate::eventlog::ResourceRequest;
use crate::events::StoredJob;

/// Hold codes 0 to 49 have a place of their own, all others share one.
const HOLD_CODES: usize = 51;
const FAMILIES: usize = 10;
const NUMBERS: usize = 13;
/// In the order of [`super::subcode_family::SubcodeFamily`].
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
    "held_for",
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
/// `s`: how many numbers [`HoldFacts::static_features`] gives.
pub const STATIC_FEATURES: usize = HOLD_CODES + FAMILIES + NUMBERS;

/// What is known of a held job at the moment of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldFacts {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// How many holds the job had before.
    pub earlier_holds: u32,
    /// From the submission to the moment of asking.
    pub since_submit_s: u32,
    /// From the hold to the moment of asking; 0 where it is asked at the hold.
    pub held_for_s: u32,
    /// What the job asked for when it was submitted.
    pub request: ResourceRequest,
    /// What had become of the jobs around it.
    pub history: HoldHistory,
}

impl HoldFacts {
    /// The facts of one hold of `job` at its moment of asking.
    pub fn when_asked(
        job: &StoredJob<'_>,
        asked: &AskedHold,
        histories: &HoldHistories,
    ) -> HoldFacts {
        let AskedHold {
            cycle, asked_ms, ..
        } = asked;
        HoldFacts {
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            earlier_holds: cycle.earlier_holds,
            since_submit_s: seconds_between(job.submit_ms, *asked_ms),
            held_for_s: seconds_between(job.history.time_ms[cycle.hold], *asked_ms),
            request: job.request,
            history: histories.when_asked(job, asked),
        }
    }

    /// The kind of trouble that code and subcode tell, as it is stored.
    pub(super) fn subcode_family(&self) -> u8 {
        subcode_family(self.hold_code, self.hold_subcode) as u8
    }

    /// What each number of [`HoldFacts::static_features`] is, `[s]`.
    pub fn static_names() -> Vec<String> {
        let codes = (0..HOLD_CODES - 1)
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

    /// The facts as numbers near 1 `[s]`: the hold code and the family of the subcode one-hot;
    /// logarithms of counts, times and sizes; of each pair of counts the share of successes, from
    /// -1 to 1 and drawn to 0 where cases are few, and its size.
    pub fn static_features(&self) -> [f32; STATIC_FEATURES] {
        let mut statics = [0.0; STATIC_FEATURES];
        let hold_code = usize::try_from(self.hold_code).unwrap_or(usize::MAX);
        statics[hold_code.min(HOLD_CODES - 1)] = 1.0;
        statics[HOLD_CODES + usize::from(self.subcode_family())] = 1.0;

        let HoldHistory {
            cluster,
            owner,
            ends,
        } = self.history;
        let numbers: [f32; NUMBERS] = [
            log_count(self.earlier_holds),
            log_size(self.since_submit_s),
            log_size(self.held_for_s),
            log_count(self.request.cpus.into()),
            log_count(self.request.gpus.into()),
            log_size(self.request.memory_mb),
            log_size(self.request.disk_mb),
            success_balance(cluster),
            log_cases(cluster),
            success_balance(owner),
            log_cases(owner),
            success_balance(ends),
            log_cases(ends),
        ];
        statics[HOLD_CODES + FAMILIES..].copy_from_slice(&numbers);
        statics
    }
}

/// Whole seconds; 0 where `to_ms` comes first.
fn seconds_between(from_ms: i64, to_ms: i64) -> u32 {
    u32::try_from((to_ms - from_ms).max(0) / 1000).unwrap_or(u32::MAX)
}

fn log_count(n: u32) -> f32 {
    (n as f32).ln_1p()
}

/// As [`log_count`], for numbers that go into the millions.
fn log_size(n: u32) -> f32 {
    (n as f32).ln_1p() / 10.0
}

/// The share of successes, from -1 to 1. Two cases more than there are, without a success or a
/// failure, draw it to 0.
fn success_balance(counts: OutcomeCounts) -> f32 {
    (counts.successes as f32 - counts.failures as f32)
        / (counts.successes as f32 + counts.failures as f32 + 2.0)
}

fn log_cases(counts: OutcomeCounts) -> f32 {
    log_count(counts.successes.saturating_add(counts.failures)) / 4.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_its_place() {
        let tally = OutcomeCounts {
            successes: 6,
            failures: 2,
        };
        let history = HoldHistory {
            owner: tally,
            ..HoldHistory::default()
        };
        let facts = HoldFacts {
            hold_code: 13,
            hold_subcode: 2,
            earlier_holds: 1,
            history,
            ..HoldFacts::default()
        };
        let statics = facts.static_features();
        let set: Vec<usize> = (0..STATIC_FEATURES)
            .filter(|&at| statics[at] != 0.0)
            .collect();
        assert_eq!(
            set,
            [
                13,
                HOLD_CODES + 1,
                HOLD_CODES + FAMILIES,
                STATIC_FEATURES - 4,
                STATIC_FEATURES - 3
            ]
        );
        assert_eq!(statics[STATIC_FEATURES - 4], 0.4);
    }

    #[test]
    fn every_number_has_a_name() {
        let names = HoldFacts::static_names();
        assert_eq!(names.len(), STATIC_FEATURES);
        assert_eq!(
            (names[13].as_str(), names[HOLD_CODES + 1].as_str()),
            ("hold_code_13", "subcode_missing")
        );
        assert_eq!(names[STATIC_FEATURES - 4], "owner_success");
    }

    #[test]
    fn strange_numbers_have_the_last_place() {
        for hold_code in [-1, 50, i32::MAX] {
            assert_eq!(
                HoldFacts {
                    hold_code,
                    ..HoldFacts::default()
                }
                .static_features()[HOLD_CODES - 1],
                1.0
            );
        }
        let most = OutcomeCounts {
            successes: u32::MAX,
            failures: u32::MAX,
        };
        let facts = HoldFacts {
            history: HoldHistory {
                cluster: most,
                owner: most,
                ends: most,
            },
            ..HoldFacts::default()
        };
        assert!(
            facts
                .static_features()
                .iter()
                .all(|number| number.is_finite())
        );
    }
}
