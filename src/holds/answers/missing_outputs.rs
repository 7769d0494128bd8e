//! Output files that jobs should have written, and that were missing: a fault of the program, if they are missing on
//! several machines where other jobs end well.

use std::collections::{HashMap, HashSet};

use super::cause_kind::{CauseKeys, CauseKind};
use super::cluster_runs::{ClusterKey, good_end};
use super::past_hold::PastHold;
use poolcast_events::{EventStore, StoredJob};
use poolcast_tensors::{NO_KEY, execution_host_before};

/// Number of machines on which a fault is not one of the machine. It is a definition: one machine shows nothing.
const SEVERAL_MACHINES: usize = 2;

/// A hold because an output file was missing. Sorts by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MissingOutput {
    hold_ms: i64,
    /// Key of the machine of the run.
    machine: u64,
}

/// The missing output files of all clusters, and the jobs that ended well on the same machines.
#[derive(Debug)]
pub(super) struct MissingOutputs {
    /// The holds of each cluster, in order.
    missing: HashMap<ClusterKey, Vec<MissingOutput>>,
    /// Times at which jobs ended well on each of these machines, sorted.
    ended_well_ms: HashMap<u64, Vec<i64>>,
}

impl MissingOutputs {
    pub(super) fn new(store: &EventStore, holds: &[PastHold]) -> MissingOutputs {
        let jobs = store.jobs();
        let mut missing: HashMap<ClusterKey, Vec<MissingOutput>> = HashMap::new();
        let mut machines: HashSet<u64> = HashSet::new();
        for hold in holds.iter().filter(|hold| hold.lacks_output()) {
            let machine = hold.causes.get(CauseKind::Host);
            if machine == NO_KEY {
                continue; // unknown
            }
            machines.insert(machine);
            let of_cluster = missing.entry(jobs.cluster(hold.job as usize)).or_default();
            of_cluster.push(MissingOutput {
                hold_ms: hold.hold_ms,
                machine,
            });
        }
        for of_cluster in missing.values_mut() {
            of_cluster.sort_unstable();
        }
        MissingOutputs {
            missing,
            ended_well_ms: good_ends(store, &machines),
        }
    }

    /// Returns true if it is known at `asked_ms` that output files of `cluster` were missing on several machines, and
    /// that a job ended well on the last of them within `unit_ms` before or after.
    pub(super) fn are_of_no_machine(
        &self,
        cluster: ClusterKey,
        asked_ms: i64,
        unit_ms: i64,
    ) -> bool {
        let missing = self.missing.get(&cluster).map_or(&[][..], Vec::as_slice);
        let known = &missing[..missing.partition_point(|one| one.hold_ms <= asked_ms)];
        let Some(last) = known.last() else {
            return false;
        };
        let machines: HashSet<u64> = known.iter().map(|one| one.machine).collect();
        machines.len() >= SEVERAL_MACHINES && self.works_at(last, asked_ms, unit_ms)
    }

    /// Returns true if it is known at `asked_ms` that a job ended well on the machine of `missing` within `unit_ms`
    /// before or after.
    fn works_at(&self, missing: &MissingOutput, asked_ms: i64, unit_ms: i64) -> bool {
        let Some(ended_ms) = self.ended_well_ms.get(&missing.machine) else {
            return false;
        };
        let next = ended_ms.partition_point(|&end_ms| end_ms < missing.hold_ms - unit_ms);
        let until_ms = asked_ms.min(missing.hold_ms + unit_ms);
        ended_ms.get(next).is_some_and(|&end_ms| end_ms <= until_ms)
    }
}

/// Returns the times at which jobs ended well on each of `machines`, sorted.
fn good_ends(store: &EventStore, machines: &HashSet<u64>) -> HashMap<u64, Vec<i64>> {
    if machines.is_empty() {
        return HashMap::new();
    }
    let jobs = store.jobs();
    let ends = jobs.map_ranges(|range| {
        let ends = range.filter_map(|index| good_end_on_machine(&jobs.get(index)));
        let of_machines = ends.filter(|(machine, _)| machines.contains(machine));
        of_machines.collect::<Vec<_>>()
    });

    let mut ended_well_ms: HashMap<u64, Vec<i64>> = HashMap::new();
    for (machine, end_ms) in ends.into_iter().flatten() {
        ended_well_ms.entry(machine).or_default().push(end_ms);
    }
    for of_machine in ended_well_ms.values_mut() {
        of_machine.sort_unstable();
    }
    ended_well_ms
}

/// Returns the key of the machine on which `job` ended well, and the time.
fn good_end_on_machine(job: &StoredJob<'_>) -> Option<(u64, i64)> {
    let end = good_end(&job.history)?;
    let machine = CauseKeys::of_machine(execution_host_before(job, end).host);
    Some((machine, job.history.time_ms[end]))
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::*;
    use htcondor_eventlog::{
        EXECUTE, EventFacts, ExecutionHost, HELD, HoldFacts, JobEvent, RELEASED, ReasonKind,
        SUBMIT, TERMINATED,
    };
    use htcondor_holdreasons::{Outcome, Thing};
    use test_stores::store_of;

    /// Returns a job of `cluster` that runs on the machine `host` and ends at `end_s`: well, or without its output.
    fn ran(cluster: i32, host: u32, end_s: i64, is_good: bool) -> Vec<JobEvent> {
        let end = if is_good { TERMINATED } else { HELD };
        let event = |(s, number)| JobEvent {
            cluster,
            proc: host as i32,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == TERMINATED),
            hold_code: if number == HELD { 12 } else { 0 },
            hold_subcode: if number == HELD { 2 } else { 0 },
            facts: facts(number, host),
            ..JobEvent::default()
        };
        [(1, SUBMIT), (end_s - 9, EXECUTE), (end_s, end)]
            .map(event)
            .into()
    }

    fn facts(number: u16, host: u32) -> EventFacts {
        match number {
            EXECUTE => EventFacts::from_execution(ExecutionHost { host, slot: 0 }),
            HELD => EventFacts::from_hold(HoldFacts {
                kind: ReasonKind {
                    thing: Thing::SandboxFile,
                    outcome: Outcome::Absent,
                    ..ReasonKind::default()
                },
                ..HoldFacts::default()
            }),
            _ => EventFacts::default(),
        }
    }

    /// Returns whether the cluster of the first hold of `jobs` is known to write no output at `asked_s`. Holds last
    /// for 50 s on the mean.
    fn never_writes(jobs: &[Vec<JobEvent>], asked_s: i64) -> bool {
        let mut of_unit = ran(99, 99, 1050, false);
        of_unit.push(JobEvent {
            number: RELEASED,
            time_ms: 1_100_000,
            facts: EventFacts::default(),
            hold_code: 0,
            hold_subcode: 0,
            ..of_unit[2].clone()
        });
        let store = store_of(&[jobs.concat(), of_unit].concat());
        HoldHistory::new(&store).never_writes_output(0, asked_s * 1000)
    }

    #[test]
    fn program_is_at_fault_if_its_output_is_missing_where_others_end_well() {
        let failed = [ran(1, 1, 2000, false), ran(1, 2, 2100, false)];
        let with = |more: &[Vec<JobEvent>]| [&failed[..], more].concat();
        let good = ran(2, 2, 2110, true);
        let jobs = with(std::slice::from_ref(&good));
        assert!(never_writes(&jobs, 2200));
        assert!(!never_writes(&jobs, 2109), "the good end is not known yet");
        assert!(!never_writes(&failed, 2200), "nobody else succeeded there");
        let one_machine = [ran(1, 2, 2100, false), good.clone()];
        assert!(!never_writes(&one_machine, 2200));

        let of_cluster = with(&[good.clone(), ran(1, 3, 2150, true)]);
        assert!(!never_writes(&of_cluster, 2200), "a job of it succeeded");
        assert!(never_writes(&of_cluster, 2149));
        for (host, end_s) in [(1, 2110), (2, 1900), (2, 9000)] {
            let elsewhere = with(&[ran(2, host, end_s, true)]);
            assert!(!never_writes(&elsewhere, 9999), "{host} {end_s}");
        }
    }

    #[test]
    fn holds_for_other_faults_show_nothing_about_the_program() {
        let mut jobs = [
            ran(1, 1, 2000, false),
            ran(1, 2, 2100, false),
            ran(2, 2, 2110, true),
        ];
        jobs[0][2].facts = EventFacts::default();
        assert!(!never_writes(&jobs, 2200));
    }
}
