//! Finds idle jobs that no machine of the pool can match, and the request that would match.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use anyhow::Result;
use serde::Serialize;

use super::idle_batch::{IdleBatch, IdleBatchKey, batch_key, commands_for};
use super::job_command::{RaisedRequest, RequestAttribute};
use super::machine_needs::{MachineNeeds, REQUESTS, RequestAmounts, RequirementClause};
use super::unheld_job::UnheldJob;
use super::unheld_jobs::UnheldJobs;
use poolcast_base::shared_text::SharedText;

/// Maximum number of clauses that machines are asked about.
const MAX_CLAUSES: usize = 20;

/// Maximum number of slots that are read.
const MAX_SLOTS: usize = 1_000_000;

/// Share of the largest disk that a job is advised to request: free space changes.
const DISK_SHARE: (u64, u64) = (9, 10);

/// Idle jobs of one batch that no machine of the pool matches now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmatchedJobs {
    /// The jobs.
    #[serde(flatten)]
    pub members: IdleBatch,
    /// The requests that no machine has room for.
    pub requests: Vec<ExcessRequest>,
    /// The clauses of the jobs' `Requirements` that no machine satisfies together.
    pub clauses: Vec<SharedText>,
    /// The commands that lower the request so that a machine matches.
    pub commands: Vec<String>,
}

/// A request that no machine has room for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ExcessRequest {
    /// The attribute.
    pub attribute: RequestAttribute,
    /// The amount that the jobs request, in the attribute's unit.
    pub requested: u64,
    /// The largest amount of a machine that has all else that the jobs need.
    pub largest: u64,
    /// True if another machine has as much, which lacks something else.
    pub is_had_by_others: bool,
}

/// The slots of a pool that are no parts of others.
#[derive(Debug, Clone, Default)]
pub struct PoolSlots {
    slots: Vec<Slot>,
    /// The clauses whose values the slots have.
    clauses: Vec<RequirementClause>,
}

#[derive(Debug, Clone)]
struct Slot {
    totals: RequestAmounts,
    /// Value of each clause; `None` if it is undefined.
    values: Vec<Option<bool>>,
}

/// The common facts of one finding.
type UnmatchedKey<'a> = (IdleBatchKey<'a>, Vec<ExcessRequest>, Vec<SharedText>);

impl PoolSlots {
    /// Creates a pool without slots, to be filled with what idle ones of `jobs` need to know.
    pub fn for_jobs(jobs: &UnheldJobs) -> PoolSlots {
        let idle = jobs.jobs.iter().filter(|job| job.is_idle);
        let clauses: BTreeSet<&RequirementClause> =
            idle.flat_map(|job| &job.needs.clauses).collect();
        PoolSlots {
            slots: Vec::new(),
            clauses: clauses.into_iter().take(MAX_CLAUSES).cloned().collect(),
        }
    }

    /// The expressions that `condor_status -af` must print of each slot.
    pub fn expressions(&self) -> Vec<&str> {
        let totals = REQUESTS.iter().map(|(_, total)| *total);
        let clauses = self.clauses.iter().map(|clause| clause.text.as_str());
        totals.chain(clauses).collect()
    }

    /// Reads the values of these expressions, one slot per line. Slots with other values are left out.
    ///
    /// # Errors
    /// Fails if `input` cannot be read.
    pub fn read(mut self, input: impl BufRead) -> Result<PoolSlots> {
        for line in input.lines().take(MAX_SLOTS) {
            self.slots.extend(self.slot(&line?));
        }
        Ok(self)
    }

    fn slot(&self, line: &str) -> Option<Slot> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != REQUESTS.len() + self.clauses.len() {
            return None;
        }
        let (totals, values) = words.split_at(REQUESTS.len());
        let amount = |word: &&str| word.parse::<f64>().ok().map(|amount| amount as u64);
        let mut amounts = RequestAmounts::default();
        for (at, word) in totals.iter().enumerate() {
            // A machine without GPUs may not say so.
            amounts[at] = amount(word).or((*word == "undefined").then_some(0))?;
        }
        Some(Slot {
            totals: amounts,
            values: values.iter().map(|word| truth(word)).collect(),
        })
    }

    /// Returns what no slot has of `needs`; `None` if one may match, or if that cannot be seen.
    fn lack_of(&self, needs: &MachineNeeds) -> Option<(Vec<ExcessRequest>, Vec<SharedText>)> {
        let places = needs.clauses.iter();
        let places = places.filter_map(|clause| self.clauses.iter().position(|one| one == clause));
        let places: Vec<usize> = places.filter(|at| self.is_decisive(*at)).collect();
        let is_true = |slot: &Slot, at: usize| slot.values[at] == Some(true);
        let lacking = |at: &usize| !self.slots.iter().any(|slot| is_true(slot, *at));
        let mut unmet: Vec<usize> = places.iter().copied().filter(lacking).collect();
        let is_allowed = |slot: &&Slot| places.iter().all(|at| is_true(slot, *at));
        let mut allowed: Vec<&Slot> = self.slots.iter().filter(is_allowed).collect();
        if allowed.is_empty() && unmet.is_empty() {
            let is_unmet = |at: &usize| !self.slots.iter().all(|slot| is_true(slot, *at));
            unmet = places.into_iter().filter(is_unmet).collect();
        }
        if allowed.is_empty() {
            allowed = self.slots.iter().collect();
        }

        let clauses = unmet.iter().map(|at| self.clauses[*at].text.clone());
        let lack = (self.excess(&needs.requests, &allowed), clauses.collect());
        (!self.slots.is_empty() && lack != (Vec::new(), Vec::new())).then_some(lack)
    }

    /// Returns true if the values of clause `at` show whether a slot can ever match. The value of an attribute
    /// that changes with use shows it only if no slot has the attribute.
    fn is_decisive(&self, at: usize) -> bool {
        self.clauses[at].is_lasting || self.slots.iter().all(|slot| slot.values[at].is_none())
    }

    /// Returns the requests that none of the `allowed` slots has room for: only one if a lower one is enough.
    fn excess(&self, requests: &RequestAmounts, allowed: &[&Slot]) -> Vec<ExcessRequest> {
        let has = |slot: &Slot, at: usize| slot.totals[at] >= requests[at];
        let all = 0..REQUESTS.len();
        if allowed
            .iter()
            .any(|slot| all.clone().all(|at| has(slot, at)))
        {
            return Vec::new();
        }
        let excess = |at: usize, largest: u64| ExcessRequest {
            attribute: REQUESTS[at].0,
            requested: requests[at],
            largest,
            is_had_by_others: self.slots.iter().any(|slot| has(slot, at)),
        };
        let largest_with_rest = |at: usize| {
            let has_rest = |slot: &&&Slot| all.clone().all(|other| other == at || has(slot, other));
            let fitting = allowed.iter().filter(has_rest);
            fitting.map(|slot| slot.totals[at]).max()
        };
        let lowered = all
            .clone()
            .find_map(|at| Some(excess(at, largest_with_rest(at)?)));
        if let Some(lowered) = lowered {
            return vec![lowered];
        }
        let largest = |at: usize| allowed.iter().map(|slot| slot.totals[at]).max();
        all.clone()
            .filter_map(|at| Some((at, largest(at)?)))
            .filter(|(at, largest)| *largest < requests[*at])
            .map(|(at, largest)| excess(at, largest))
            .collect()
    }
}

/// Reads the value of a clause; `None` if it is undefined. A number other than 0 is true.
fn truth(word: &str) -> Option<bool> {
    match word {
        "undefined" => None,
        word => Some(!["false", "error", "0", "0.0"].contains(&word)),
    }
}

/// Finds the idle ones of `jobs` that no slot of `pool` matches. The findings about most jobs are first.
pub fn unmatched_jobs(jobs: &UnheldJobs, pool: &PoolSlots) -> Vec<UnmatchedJobs> {
    let mut lacks: BTreeMap<&MachineNeeds, _> = BTreeMap::new();
    let mut found: BTreeMap<UnmatchedKey<'_>, Vec<&UnheldJob>> = BTreeMap::new();
    for job in jobs.jobs.iter().filter(|job| job.is_idle) {
        let lack = lacks.entry(&*job.needs);
        let lack = lack.or_insert_with(|| pool.lack_of(&job.needs));
        if let Some((requests, clauses)) = lack.clone() {
            let key = (batch_key(job), requests, clauses);
            found.entry(key).or_default().push(job);
        }
    }
    let mut found: Vec<UnmatchedJobs> = found
        .into_iter()
        .map(|((_, requests, clauses), members)| UnmatchedJobs {
            members: IdleBatch::of_members(&members),
            commands: fitting_request(&requests, &clauses).map_or(Vec::new(), |fitting| {
                commands_for("condor_qedit", &members, &fitting.arguments())
            }),
            requests,
            clauses,
        })
        .collect();
    found.sort_by_key(|one| Reverse(one.members.jobs.len()));
    found
}

/// Returns the request with which a machine matches, if one lower request is enough.
fn fitting_request(requests: &[ExcessRequest], clauses: &[SharedText]) -> Option<RaisedRequest> {
    let ([excess], []) = (requests, clauses) else {
        return None;
    };
    let number = match excess.attribute {
        // HTCondor rounds requests up to multiples of these.
        RequestAttribute::RequestMemory => excess.largest / 128 * 128,
        RequestAttribute::RequestDisk => excess.largest / DISK_SHARE.1 * DISK_SHARE.0 / 1024 * 1024,
        RequestAttribute::RequestCpus | RequestAttribute::RequestGPUs => excess.largest,
    };
    (number > 0).then_some(RaisedRequest {
        attribute: excess.attribute,
        number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What `condor_status -af` prints of a machine with GPUs, of a large one, and of an old one.
    const SLOTS: &str =
        "64000 9000000.0 8 4\n257663 53988692.5 64 0\n16000 1.5E+07 16.0 undefined\n";

    /// Returns the findings for an idle job, with all slots that have `values` of its clauses.
    fn found(requests: [u64; 4], requirements: &str, values: [&str; 3]) -> Vec<UnmatchedJobs> {
        let [memory, disk, cpus, gpus] = requests;
        let all =
            "(RequestMemory > 0) && (RequestDisk > 0) && (RequestCpus > 0) && (RequestGPUs > 0)";
        let ad = json!([{"ClusterId": 7, "ProcId": 3, "JobStatus": 1, "EnteredCurrentStatus": 100, "RequestMemory": memory, "RequestDisk": disk,
            "RequestCpus": cpus, "RequestGPUs": gpus, "Requirements": format!("/Expr({requirements} && {all})/")}]);
        let jobs = UnheldJobs::read(ad.to_string().as_bytes()).expect("a queue");
        let pool = PoolSlots::for_jobs(&jobs);
        let lines = SLOTS.lines().zip(values);
        let text: String = lines
            .map(|(line, values)| format!("{line} {values}\n"))
            .collect();
        unmatched_jobs(&jobs, &pool.read(text.as_bytes()).expect("slots"))
    }

    /// Returns the lack and the command's arguments of the only finding.
    fn only(found: &[UnmatchedJobs]) -> (String, Option<&str>) {
        let [one] = found else {
            panic!("one finding: {found:?}")
        };
        let requests = one.requests.iter().map(|one| {
            let mark = if one.is_had_by_others { "*" } else { "" };
            format!(
                "{:?} {}>{}{mark}",
                one.attribute, one.requested, one.largest
            )
        });
        let clauses = one.clauses.iter().map(ToString::to_string);
        let lack: Vec<String> = requests.chain(clauses).collect();
        let arguments = one.commands.first().and_then(|one| one.rsplit_once("' "));
        (lack.join(", "), arguments.map(|(_, arguments)| arguments))
    }

    #[test]
    fn request_above_all_machines_is_lowered_to_one_that_has_the_rest() {
        for (requests, lack, arguments) in [
            (
                [524_288, 1024, 1, 0],
                "RequestMemory 524288>257663",
                Some("RequestMemory 257536"),
            ),
            (
                [524_288, 1024, 1, 1],
                "RequestMemory 524288>64000",
                Some("RequestMemory 64000"),
            ),
            (
                [100_000, 1024, 1, 4],
                "RequestMemory 100000>64000*",
                Some("RequestMemory 64000"),
            ),
            (
                [16, 99_000_000, 1, 0],
                "RequestDisk 99000000>53988692",
                Some("RequestDisk 48588800"),
            ),
            (
                [16, 1024, 96, 0],
                "RequestCpus 96>64",
                Some("RequestCpus 64"),
            ),
            ([16, 1024, 1, 8], "RequestGPUs 8>4", Some("RequestGPUs 4")),
            (
                [524_288, 1024, 96, 0],
                "RequestMemory 524288>257663, RequestCpus 96>64",
                None,
            ),
        ] {
            assert_eq!(
                only(&found(requests, "true", [""; 3])),
                (lack.to_owned(), arguments)
            );
        }
        assert_eq!(found([257_663, 53_988_692, 64, 0], "true", [""; 3]), []);
    }

    #[test]
    fn clauses_that_no_machine_satisfies_are_quoted() {
        let small = [16, 1024, 1, 0];
        let lack = |requirements, values| {
            let found = found(small, requirements, values);
            found.first().map(|_| only(&found).0)
        };
        let quoted = |text: &str| Some(text.to_owned());
        let machine = r#"Machine == "cn9""#;
        assert_eq!(
            lack(machine, ["false", "false", "undefined"]),
            quoted(machine)
        );
        assert_eq!(lack(machine, ["false", "true", "undefined"]), None);
        assert_eq!(
            lack("TARGET.Rare >= 4", ["false", "false", "undefined"]),
            None
        );
        assert_eq!(
            lack("TARGET.Rare >= 4", ["undefined"; 3]),
            quoted("Rare >= 4")
        );
        // No machine satisfies both.
        let both = ["true false", "false true", "false false"];
        assert_eq!(lack("HasA && HasB", both), quoted("HasA, HasB"));
        assert_eq!(
            lack("HasA && HasB", ["true"; 3]),
            None,
            "lines of other lengths"
        );
    }

    #[test]
    fn requests_are_compared_with_the_machines_that_requirements_allow() {
        let values = ["true", "false", "false"];
        let found = found([100_000, 1024, 1, 0], "HasA", values);
        assert_eq!(
            only(&found),
            (
                "RequestMemory 100000>64000*".to_owned(),
                Some("RequestMemory 64000")
            )
        );
    }
}
