//! Successes of the other jobs of a cluster. All jobs of a cluster have one program, so a success shows
//! that it can be started.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use super::cause_kind::CauseKind;
use super::past_hold::{MAX_COUNTED, PastHold};
use htcondor_eventlog::{EXECUTE, TERMINATED};
use poolcast_events::{EventStore, JobHistory};
use poolcast_tensors::NO_KEY;

/// The index of an access point, and a cluster.
pub type ClusterKey = (u32, i32);

/// A run that succeeded. Sorts by the time at which that was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClusterRun {
    pub(super) known_ms: i64,
    pub(super) started_ms: i64,
    /// Index of the job.
    pub(super) job: u32,
    /// True if a person had released the job before, who may have repaired it.
    pub(super) is_by_hand: bool,
}

/// The good runs of all clusters with jobs that were held.
#[derive(Debug)]
pub(crate) struct ClusterRuns(HashMap<ClusterKey, Vec<ClusterRun>>);

impl ClusterRuns {
    pub(crate) fn new(store: &EventStore, holds: &[PastHold]) -> ClusterRuns {
        let jobs = store.jobs();
        let clusters: HashSet<ClusterKey> = holds
            .iter()
            .map(|hold| jobs.cluster(hold.job as usize))
            .collect();

        let run_of = |job: usize| good_run(job as u32, &jobs.history(job), holds);
        ClusterRuns(runs_by_cluster(store, &clusters, run_of))
    }

    /// Returns the runs that started a program which jobs of their cluster in `holds` could not start,
    /// each with the index of a hold for each cause of kind `kind`; none for kinds that do not name the
    /// program. The machine decides whether a program starts, so these jobs would have started, too.
    pub(super) fn of_started_programs(
        &self,
        store: &EventStore,
        holds: &[PastHold],
        kind: CauseKind,
    ) -> Vec<(ClusterRun, u32)> {
        if !matches!(kind, CauseKind::File | CauseKind::ClusterReason) {
            return Vec::new();
        }
        let mut hold_of_cause: BTreeMap<(ClusterKey, u64), u32> = BTreeMap::new();
        for (hold, index) in holds.iter().zip(0..) {
            let key = hold.causes.get(kind);
            if hold.stated.is_program_start() && key != NO_KEY {
                let cluster = store.jobs().cluster(hold.job as usize);
                hold_of_cause.insert((cluster, key), index);
            }
        }

        let mut runs = Vec::new();
        for ((cluster, _), index) in hold_of_cause {
            runs.extend(self.of_cluster(cluster).iter().map(|run| (*run, index)));
        }
        runs
    }

    /// Returns the number of jobs of `cluster` that are known at `asked_ms` to have succeeded in runs
    /// that began at `since_ms` or later.
    pub(crate) fn count_since(&self, cluster: ClusterKey, since_ms: i64, asked_ms: i64) -> usize {
        let runs = self.known(cluster, asked_ms).iter();
        runs.rev()
            .take_while(|run| run.known_ms > since_ms)
            .filter(|run| run.started_ms >= since_ms)
            .take(MAX_COUNTED)
            .count()
    }

    /// Returns the runs of `cluster` that are known at `asked_ms` to have succeeded.
    pub(super) fn known(&self, cluster: ClusterKey, asked_ms: i64) -> &[ClusterRun] {
        let runs = self.of_cluster(cluster);
        &runs[..runs.partition_point(|run| run.known_ms <= asked_ms)]
    }

    fn of_cluster(&self, cluster: ClusterKey) -> &[ClusterRun] {
        self.0.get(&cluster).map_or(&[], Vec::as_slice)
    }
}

/// Returns the runs that `run_of` finds of the jobs of `clusters`, sorted, by cluster.
pub(super) fn runs_by_cluster<T: Ord + Send>(
    store: &EventStore,
    clusters: &HashSet<ClusterKey>,
    run_of: impl Fn(usize) -> Option<T> + Sync,
) -> HashMap<ClusterKey, Vec<T>> {
    if clusters.is_empty() {
        return HashMap::new();
    }
    let jobs = store.jobs();
    sorted_by_key(store, |job| {
        let cluster = jobs.cluster(job);
        let run = clusters.contains(&cluster).then(|| run_of(job)).flatten()?;
        Some((cluster, run))
    })
}

/// Returns the values that `keyed_value` has of the jobs of `store`, sorted, by key.
pub(super) fn sorted_by_key<K: Eq + Hash + Send, T: Ord + Send>(
    store: &EventStore,
    keyed_value: impl Fn(usize) -> Option<(K, T)> + Sync,
) -> HashMap<K, Vec<T>> {
    let jobs = store.jobs();
    let found = jobs.map_ranges(|range| range.filter_map(&keyed_value).collect::<Vec<_>>());

    let mut sorted: HashMap<K, Vec<T>> = HashMap::new();
    for (key, value) in found.into_iter().flatten() {
        sorted.entry(key).or_default().push(value);
    }
    for of_key in sorted.values_mut() {
        of_key.sort_unstable();
    }
    sorted
}

/// Returns the run of a job that ended well, if there was one. A job that failed later may share that
/// fault with the held one. `holds` are those of the store, sorted by job and time.
fn good_run(job: u32, history: &JobHistory<'_>, holds: &[PastHold]) -> Option<ClusterRun> {
    let end = good_end(history)?;
    let start = (0..end).rfind(|&at| history.number[at] == EXECUTE)?;
    let started_ms = history.time_ms[start];

    let first = holds.partition_point(|hold| hold.job < job);
    let mut of_job = holds[first..].iter().take_while(|hold| hold.job == job);
    Some(ClusterRun {
        known_ms: history.time_ms[end],
        started_ms,
        job,
        is_by_hand: of_job.any(|hold| {
            !hold.is_automatic && hold.release_ms.is_some_and(|at_ms| at_ms <= started_ms)
        }),
    })
}

/// Returns the event with which a job ended well, if one did.
pub(super) fn good_end(history: &JobHistory<'_>) -> Option<usize> {
    let is_good = |&at: &usize| {
        history.number[at] == TERMINATED && history.normal[at] == 1 && history.value[at] == 0
    };
    (0..history.number.len()).find(is_good)
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::*;
    use htcondor_eventlog::{EventFacts, HELD, HoldFacts, JobEvent, SUBMIT};
    use htcondor_holdreasons::read_reason;
    use test_stores::store_of;

    /// Returns job 1.`proc` with the events in `events`: the second, the number, and the hold code or
    /// the exit code.
    fn job(proc: i32, events: &[(i64, u16, i32)]) -> Vec<JobEvent> {
        let event = |&(s, number, code): &(i64, u16, i32)| JobEvent {
            cluster: 1,
            proc,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == TERMINATED),
            value: if number == TERMINATED { code } else { 0 },
            hold_code: if number == HELD { code } else { 0 },
            ..JobEvent::default()
        };
        events.iter().map(event).collect()
    }

    /// Returns job 1.`proc`, which is held at `held_s` and stays so.
    fn held(proc: i32, held_s: i64, hold_code: i32) -> Vec<JobEvent> {
        let events = [
            (1, SUBMIT, 0),
            (held_s - 1, EXECUTE, 0),
            (held_s, HELD, hold_code),
        ];
        job(proc, &events)
    }

    /// Returns job 1.`proc`, which runs from `started_s` to `ended_s`.
    fn ran(proc: i32, started_s: i64, ended_s: i64, exit_code: i32) -> Vec<JobEvent> {
        let events = [
            (1, SUBMIT, 0),
            (started_s, EXECUTE, 0),
            (ended_s, TERMINATED, exit_code),
        ];
        job(proc, &events)
    }

    /// Returns the number of jobs that are known at `asked_s` to have succeeded since the last failure
    /// like the first hold in the log of `jobs`.
    fn count(jobs: &[Vec<JobEvent>], asked_s: i64) -> usize {
        let store = store_of(&jobs.concat());
        HoldHistory::new(&store).succeeded_in_cluster(0, asked_s * 1000)
    }

    #[test]
    fn successes_count_from_their_start_and_once_they_are_known() {
        let mut jobs = vec![held(0, 100, 6), ran(1, 110, 200, 0), ran(2, 120, 210, 0)];
        let asked = [199, 200, 210].map(|asked_s| count(&jobs, asked_s));
        assert_eq!(asked, [0, 1, 2]);
        jobs.push(held(3, 115, 6));
        assert_eq!(count(&jobs, 300), 1, "the other one began before");
    }

    #[test]
    fn start_of_the_program_stands_for_those_that_could_not_start_it() {
        let lent = |hold_code, reason: Option<&str>| {
            let mut jobs = [held(0, 100, hold_code), ran(1, 110, 200, 0)];
            let stated = reason.map(|reason| read_reason(reason, Some((hold_code, 2))).kind);
            jobs[0][2].facts = EventFacts::from_hold(HoldFacts {
                kind: stated.unwrap_or_default(),
                ..HoldFacts::default()
            });
            let store = store_of(&jobs.concat());
            let history = HoldHistory::new(&store);
            let lent = history.lent(CauseKind::ClusterReason, &history.holds[0].causes);
            let successes = lent.iter().filter(|lent| lent.outcome.is_success());
            successes.map(|lent| lent.at_ms).collect::<Vec<_>>()
        };
        assert_eq!(lent(6, None), [110_000]);
        assert!(lent(12, None).is_empty());
        let program = "Error from slot1@e: Failed to execute '/home/ada/run.sh': (errno=2: 'No such file or directory')";
        assert_eq!(lent(12, Some(program)), [110_000]);
        let memory = "Error from slot1@e: Job has gone over memory limit of 2048 megabytes. Peak usage: 2048 megabytes.";
        assert!(lent(6, Some(memory)).is_empty());
    }

    #[test]
    fn jobs_that_fail_are_no_evidence() {
        let jobs = [held(0, 100, 6), held(1, 120, 6), ran(2, 120, 210, 1)];
        assert_eq!(count(&jobs, 300), 0);
    }

    #[test]
    fn successes_of_other_clusters_do_not_count() {
        let mut jobs = vec![held(0, 100, 12), ran(1, 110, 200, 0)];
        assert_eq!(count(&jobs, 300), 1);
        for event in &mut jobs[1] {
            event.cluster = 2;
        }
        assert_eq!(count(&jobs, 300), 0);
    }
}
