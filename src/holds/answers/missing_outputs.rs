//! Output files that jobs should have written, and that were missing: a fault of the program, if they are missing on
//! several machines where other jobs end well.

use std::collections::{HashMap, HashSet};

use super::cause_kind::{CauseKeys, CauseKind};
use super::cluster_runs::{ClusterKey, good_end, sorted_by_key};
use super::past_hold::PastHold;
use htcondor_eventlog::EXECUTE;
use poolcast_events::{EventStore, StoredJob};
use poolcast_tensors::{HoldLengths, NO_KEY, execution_host_before};

/// Number of machines on which a fault is not one of the machine. It is a definition: one machine shows nothing.
const SEVERAL_MACHINES: usize = 2;

/// The clusters whose output files were missing.
#[derive(Debug)]
pub(super) struct MissingOutputs {
    /// The time from which on it is known that the files are missing on several machines where other jobs end well.
    of_no_machine_ms: HashMap<ClusterKey, i64>,
    /// For each run that ended so, the time of its hold and that of its start; sorted.
    runs_ms: HashMap<ClusterKey, Vec<(i64, i64)>>,
}

impl MissingOutputs {
    /// Compares `holds` for missing output files with the jobs of `store` that ended well on the same machines, within a
    /// typical hold length before or after, as `lengths` has it.
    pub(super) fn new(
        store: &EventStore,
        holds: &[PastHold],
        lengths: &HoldLengths,
    ) -> MissingOutputs {
        let machine = |hold: &PastHold| hold.causes.get(CauseKind::Host);
        let is_missing = |hold: &&PastHold| hold.lacks_output() && machine(hold) != NO_KEY;
        let missing: Vec<&PastHold> = holds.iter().filter(is_missing).collect();
        let machines: HashSet<u64> = missing.iter().map(|hold| machine(hold)).collect();
        let ended_well_ms = good_ends(store, &machines);

        let mut shown_ms: HashMap<ClusterKey, HashMap<u64, i64>> = HashMap::new();
        let mut runs_ms: HashMap<ClusterKey, Vec<(i64, i64)>> = HashMap::new();
        for hold in missing {
            let cluster = store.jobs().cluster(hold.job as usize);
            let history = store.jobs().history(hold.job as usize);
            let start = (0..hold.cycle.hold).rfind(|&at| history.number[at] == EXECUTE);
            let started_ms = start.map_or(i64::MIN, |at| history.time_ms[at]);
            let runs_ms = runs_ms.entry(cluster).or_default();
            runs_ms.push((hold.hold_ms, started_ms));

            let unit_ms = f64::from(lengths.mean_ms(hold.hold_ms)) as i64;
            let ended_ms = ended_well_ms.get(&machine(hold)).map(Vec::as_slice);
            let Some(at_ms) = shown_at(hold.hold_ms, ended_ms.unwrap_or_default(), unit_ms) else {
                continue;
            };
            let of_cluster = shown_ms.entry(cluster).or_default();
            let first_ms = of_cluster.entry(machine(hold)).or_insert(at_ms);
            *first_ms = at_ms.min(*first_ms);
        }

        let several = |(cluster, of_cluster): (ClusterKey, HashMap<u64, i64>)| {
            let mut times_ms: Vec<i64> = of_cluster.into_values().collect();
            times_ms.sort_unstable();
            Some((cluster, *times_ms.get(SEVERAL_MACHINES - 1)?))
        };
        for of_cluster in runs_ms.values_mut() {
            of_cluster.sort_unstable();
        }
        MissingOutputs {
            of_no_machine_ms: shown_ms.into_iter().filter_map(several).collect(),
            runs_ms,
        }
    }

    /// Returns true if it is known at `asked_ms` that output files of `cluster` are missing on several machines where
    /// other jobs end well.
    pub(super) fn are_of_no_machine(&self, cluster: ClusterKey, asked_ms: i64) -> bool {
        self.of_no_machine_ms
            .get(&cluster)
            .is_some_and(|&shown_ms| shown_ms <= asked_ms)
    }

    /// Returns true if it is known at `asked_ms` that output files of `cluster` were missing after a run that began later
    /// than `since_ms`.
    pub(super) fn are_missing_since(
        &self,
        cluster: ClusterKey,
        since_ms: i64,
        asked_ms: i64,
    ) -> bool {
        let runs_ms = self.runs_ms.get(&cluster).map_or(&[][..], Vec::as_slice);
        let known = &runs_ms[..runs_ms.partition_point(|&(held_ms, _)| held_ms <= asked_ms)];
        known.iter().any(|&(_, started_ms)| started_ms > since_ms)
    }
}

/// Returns the time from which on it is known that a job ended well on the machine of a hold at `hold_ms`, within
/// `unit_ms` before or after it; `None` if no job did. Jobs ended well there at the times `ended_ms`, which are sorted.
fn shown_at(hold_ms: i64, ended_ms: &[i64], unit_ms: i64) -> Option<i64> {
    let first = ended_ms.partition_point(|&end_ms| end_ms < hold_ms - unit_ms);
    let end_ms = *ended_ms.get(first)?;
    (end_ms <= hold_ms + unit_ms).then_some(end_ms.max(hold_ms))
}

/// Returns the times at which jobs ended well on each of `machines`, sorted.
fn good_ends(store: &EventStore, machines: &HashSet<u64>) -> HashMap<u64, Vec<i64>> {
    if machines.is_empty() {
        return HashMap::new();
    }
    let jobs = store.jobs();
    sorted_by_key(store, |job| {
        let end = good_end_on_machine(&jobs.get(job));
        end.filter(|(machine, _)| machines.contains(machine))
    })
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
            ..of_unit[2]
        });
        let store = store_of(&[jobs.concat(), of_unit].concat());
        HoldHistory::new(&store).never_writes_output(0, asked_s * 1000)
    }

    /// Returns jobs of the cluster 1 whose output is missing on two machines.
    fn failed() -> Vec<Vec<JobEvent>> {
        vec![ran(1, 1, 2000, false), ran(1, 2, 2100, false)]
    }

    #[test]
    fn program_is_at_fault_if_its_output_is_missing_on_machines_where_others_end_well() {
        let with = |more: &[Vec<JobEvent>]| [failed(), more.to_vec()].concat();
        let good = [ran(2, 1, 1990, true), ran(2, 2, 2110, true)];
        assert!(never_writes(&with(&good), 2200));
        assert!(!never_writes(&with(&good), 2109), "it is not known yet");
        assert!(!never_writes(&failed(), 2200), "nobody else succeeded");
        for (host, end_s) in [(3, 2110), (2, 2040), (2, 2160)] {
            let elsewhere = with(&[good[0].clone(), ran(2, host, end_s, true)]);
            assert!(!never_writes(&elsewhere, 9999), "{host} {end_s}");
        }
        let one_machine = [ran(1, 1, 2000, false), ran(1, 1, 2010, false)];
        assert!(!never_writes(&[&one_machine[..], &good].concat(), 2200));
    }

    #[test]
    fn success_of_the_cluster_clears_its_program() {
        let good = [ran(2, 1, 1990, true), ran(2, 2, 2110, true)];
        let jobs = [&failed()[..], &good, &[ran(1, 3, 2150, true)]].concat();
        assert!(never_writes(&jobs, 2149));
        assert!(!never_writes(&jobs, 2150));
    }

    #[test]
    fn success_after_a_release_by_hand_clears_no_program_that_fails_again() {
        let mut repaired = ran(1, 3, 2110, false);
        let event = |(s, number): (i64, u16)| JobEvent {
            time_ms: s * 1000,
            number,
            normal: u8::from(number == TERMINATED),
            facts: facts(number, 3),
            hold_code: 0,
            hold_subcode: 0,
            ..repaired[0]
        };
        let after = [(2120, RELEASED), (2130, EXECUTE), (2150, TERMINATED)].map(event);
        repaired.extend(after);
        let good = [ran(2, 1, 1990, true), ran(2, 2, 2110, true)];
        let with = |last_end_s| {
            let last = ran(1, 4, last_end_s, false);
            [&failed()[..], &good, &[repaired.clone(), last]].concat()
        };
        assert!(never_writes(&with(2200), 2149));
        assert!(!never_writes(&with(2200), 2150));
        assert!(never_writes(&with(2200), 2200));
        assert!(!never_writes(&with(2139), 2200), "the run began before");

        let unaided = [with(2200), vec![ran(1, 5, 2160, true)]].concat();
        assert!(!never_writes(&unaided, 2200));
    }

    #[test]
    fn holds_for_other_faults_show_nothing_about_the_program() {
        let mut jobs = failed();
        jobs.extend([ran(2, 1, 1990, true), ran(2, 2, 2110, true)]);
        jobs[0][2].facts = EventFacts::default();
        assert!(!never_writes(&jobs, 2200));
    }
}
