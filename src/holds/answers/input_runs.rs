//! First runs of jobs that read what others are held for. A run begins once all input files of the job
//! have arrived, so it shows that the file can be read again, or that its origin answers.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cause_kind::{CauseKeys, CauseKind};
use super::cluster_runs::{ClusterKey, runs_by_cluster};
use super::named_fault::{NamedFault, stated_kind};
use super::past_hold::PastHold;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, FILE_TRANSFER, HELD, InputFile, TERMINATED};
use htcondor_holdreasons::Outcome;
use poolcast_events::{EventStore, JobHistory, StoredJob};
use poolcast_tensors::NO_KEY;

/// Minimum number of jobs of a cluster that failed to read a file, for each job that started in between, if
/// all jobs of the cluster are to read it. A server that fails for hours may answer some.
const FAILURES_PER_RUN: usize = 10;

/// The first run of a job that was not held before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InputRun {
    /// Earliest time at which its input files were read, epoch ms.
    pub(super) read_ms: i64,
    /// Time at which it was known that they had arrived, epoch ms.
    pub(super) known_ms: i64,
    /// Index of the job.
    pub(super) job: u32,
    /// Salted hash of the owner; 0 if unknown.
    pub(super) owner: u64,
}

/// A run, and the index of a hold for what it read.
pub(super) type RunOfHold = (InputRun, u32);

/// Returns the runs that read a file which `holds` are for, or, for [`CauseKind::Origin`], any file of
/// its origin; none for other kinds, which name no input.
pub(super) fn input_runs(
    store: &EventStore,
    holds: &[PastHold],
    kind: CauseKind,
) -> Vec<RunOfHold> {
    let key_of: fn(InputFile) -> u64 = match kind {
        CauseKind::File => |input| CauseKeys::of_file(input.file),
        CauseKind::Origin => |input| CauseKeys::of_origin(input.origin),
        _ => return Vec::new(),
    };
    let hold_of_key = failed_transfers(holds, kind);
    if hold_of_key.is_empty() {
        return Vec::new();
    }

    let of_input = |input| hold_of_key.get(&key_of(input)).copied();
    let mut runs = runs_that_read(store, of_input);
    runs.extend(runs_that_read_shared(store, holds, of_input));
    runs.retain(|(run, hold)| is_evidence(run, &holds[*hold as usize]));
    runs
}

/// Returns the first runs of jobs, each with one of the different numbers that `of_input` gives to the inputs
/// that its ads list.
pub(super) fn runs_that_read(
    store: &EventStore,
    of_input: impl Fn(InputFile) -> Option<u32> + Sync,
) -> Vec<(InputRun, u32)> {
    let jobs = store.jobs();
    let runs_of_job = |index: usize| -> Vec<(InputRun, u32)> {
        let mut read: Vec<u32> = jobs.inputs(index).filter_map(&of_input).collect();
        if read.is_empty() {
            return Vec::new();
        }
        read.sort_unstable();
        read.dedup();
        let run = first_run(index, &jobs.get(index));
        let pairs = run.map(|run| read.into_iter().map(move |number| (run, number)));
        pairs.into_iter().flatten().collect()
    };
    jobs.map_ranges(|range| range.flat_map(runs_of_job).collect::<Vec<_>>())
        .concat()
}

/// Returns the first runs of jobs whose ads list no input, each with one of the different numbers that
/// `of_input` gives to the files that all jobs of the cluster read. Two jobs of a cluster that fail to read
/// one file show that the cluster shares it, unless other jobs of the cluster started in between.
fn runs_that_read_shared(
    store: &EventStore,
    holds: &[PastHold],
    of_input: impl Fn(InputFile) -> Option<u32>,
) -> Vec<(InputRun, u32)> {
    let shared = shared_files(store, holds, of_input);
    let clusters: HashSet<ClusterKey> = shared.keys().map(|(cluster, _)| *cluster).collect();
    let runs = unlisted_runs(store, &clusters);
    let mut found = Vec::new();
    for ((cluster, number), failed_ms) in shared {
        let of_cluster = runs.get(&cluster).map_or(&[][..], Vec::as_slice);
        let reads = runs_after_failures(of_cluster, &failed_ms);
        found.extend(reads.map(|run| (run, number)));
    }
    found
}

/// Returns the first runs of jobs whose ads list no input, each with an origin from which another job of the
/// cluster failed to read. The jobs of a cluster read from the same directories and servers, which is known of
/// them once that job has failed.
pub(super) fn runs_of_failed_clusters(
    store: &EventStore,
    holds: &[PastHold],
) -> Vec<(InputRun, u32)> {
    let jobs = store.jobs();
    let mut failed_ms: BTreeMap<(ClusterKey, u32), i64> = BTreeMap::new();
    for hold in holds {
        let names_origin = hold.stated.is_input_transfer()
            && hold.origin != 0
            && hold.named_fault != NamedFault::Machine;
        if names_origin && !lists_inputs(store, hold.job as usize) {
            let cluster = jobs.cluster(hold.job as usize);
            failed_ms
                .entry((cluster, hold.origin))
                .and_modify(|first_ms| *first_ms = hold.hold_ms.min(*first_ms))
                .or_insert(hold.hold_ms);
        }
    }

    let clusters: HashSet<ClusterKey> = failed_ms.keys().map(|(cluster, _)| *cluster).collect();
    let runs = unlisted_runs(store, &clusters);
    let mut found = Vec::new();
    for ((cluster, origin), failed_ms) in failed_ms {
        let of_cluster = runs.get(&cluster).map_or(&[][..], Vec::as_slice);
        found.extend(of_cluster.iter().map(|run| {
            let known_ms = run.known_ms.max(failed_ms);
            (InputRun { known_ms, ..*run }, origin)
        }));
    }
    found
}

/// Returns the times at which jobs of a cluster, whose ads list no input, failed first to read a file with a
/// number, in order; without files that only one job failed to read.
fn shared_files(
    store: &EventStore,
    holds: &[PastHold],
    of_input: impl Fn(InputFile) -> Option<u32>,
) -> BTreeMap<(ClusterKey, u32), Vec<i64>> {
    let jobs = store.jobs();
    let mut failed: BTreeMap<(ClusterKey, InputFile), BTreeMap<u32, i64>> = BTreeMap::new();
    for hold in holds.iter().filter(|hold| hold.stated.is_input_transfer()) {
        let index = hold.job as usize;
        let facts = jobs.get(index).hold_facts(hold.cycle.hold);
        if facts.file == 0 || lists_inputs(store, index) {
            continue;
        }
        let input = InputFile {
            file: facts.file,
            origin: facts.origin,
        };
        let of_file = failed.entry((jobs.cluster(index), input)).or_default();
        of_file.entry(hold.job).or_insert(hold.hold_ms);
    }

    let mut shared: BTreeMap<(ClusterKey, u32), Vec<i64>> = BTreeMap::new();
    for ((cluster, input), first_holds) in failed {
        if let Some(number) = of_input(input).filter(|_| first_holds.len() > 1) {
            let failed_ms = shared.entry((cluster, number)).or_default();
            failed_ms.extend(first_holds.into_values());
            failed_ms.sort_unstable();
        }
    }
    shared
}

/// Returns the first runs of the jobs of `clusters` whose ads list no input, in order, by cluster.
fn unlisted_runs(
    store: &EventStore,
    clusters: &HashSet<ClusterKey>,
) -> HashMap<ClusterKey, Vec<InputRun>> {
    runs_by_cluster(store, clusters, |index| {
        let is_listed = lists_inputs(store, index);
        let run = (!is_listed).then(|| first_run(index, &store.jobs().get(index)));
        run.flatten()
    })
}

/// Returns true if the ads of the job list input files.
fn lists_inputs(store: &EventStore, index: usize) -> bool {
    store.jobs().inputs(index).next().is_some()
}

/// Returns the `runs` of a cluster, in order, by whose time two jobs had failed to read a file, at
/// the times `failed_ms`, and hardly any job had started between the first and the last of these failures.
fn runs_after_failures<'a>(
    runs: &'a [InputRun],
    failed_ms: &'a [i64],
) -> impl Iterator<Item = InputRun> + use<'a> {
    let mut failures = 0;
    // Runs that began after the first failure, and how many of them began before the last one.
    let (mut since_first, mut between) = (0, 0);
    runs.iter().copied().filter(move |run| {
        while failed_ms
            .get(failures)
            .is_some_and(|&at_ms| at_ms < run.read_ms)
        {
            failures += 1;
            between = since_first;
        }
        since_first += usize::from(failures > 0);
        failures > 1 && between * FAILURES_PER_RUN <= failures
    })
}

/// Returns the last of the holds for each key of kind `kind`, if a transfer of input failed.
fn failed_transfers(holds: &[PastHold], kind: CauseKind) -> HashMap<u64, u32> {
    let of_input = holds
        .iter()
        .zip(0..)
        .filter(|(hold, _)| hold.stated.is_input_transfer());
    let keyed = of_input.map(|(hold, index)| (hold.causes.get(kind), index));
    keyed.filter(|(key, _)| *key != NO_KEY).collect()
}

/// Returns true if `run` shows that the file of `hold` can be read. Where an owner may not read a file, others may.
fn is_evidence(run: &InputRun, hold: &PastHold) -> bool {
    hold.stated.outcome != Outcome::Denied || hold.owner == run.owner
}

/// Returns the first run of `job`; `None` if it was held before, or for its input. A log that shows no
/// transfers, such as that of a history, may begin a run with the transfer. Only the end of the run then
/// shows that the input arrived.
fn first_run(index: usize, job: &StoredJob<'_>) -> Option<InputRun> {
    let JobHistory {
        number, time_ms, ..
    } = job.history;
    let begin = number
        .iter()
        .position(|&number| matches!(number, EXECUTE | HELD))?;
    if number[begin] == HELD {
        return None;
    }

    let before = &number[..begin];
    let other = before.iter().rposition(|&number| number != FILE_TRANSFER);
    let read = other.map_or(0, |other| other + 1);
    let known = if read < begin {
        begin
    } else {
        let ends_run = |&at: &usize| matches!(number[at], EVICTED | TERMINATED | ABORTED | HELD);
        (begin + 1..number.len()).find(ends_run)?
    };
    (!stated_kind(job, known).is_input_transfer()).then_some(InputRun {
        read_ms: time_ms[read],
        known_ms: time_ms[known],
        job: index as u32,
        owner: job.owner,
    })
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::super::thing_state::ThingState;
    use super::*;
    use htcondor_eventlog::{ReasonKind, SUBMIT};
    use htcondor_holdreasons::{kind_of_code, read_reason};
    use test_stores::TestLog;

    /// A file of the origin 7.
    fn file(file: u32) -> InputFile {
        InputFile { file, origin: 7 }
    }

    /// Returns the numbers of runs since the last failure, known at `asked_s`, that read the file 7, and
    /// others of the origin 7. The last job of `log` is held for the former.
    fn runs(log: &TestLog, asked_s: i64) -> (usize, usize) {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let hold = history.holds.last().expect("a hold");
        let state = |kind| ThingState::known(&history, kind, hold, asked_s * 1000);
        let successes = state(CauseKind::File).map_or(0, |state| state.successes_since);
        let reads = state(CauseKind::Origin).map_or(0, |state| state.reads_since);
        (successes, reads)
    }

    #[test]
    fn runs_that_read_the_file_since_the_failure_are_counted() {
        let mut log = TestLog::default();
        for read_s in [90, 99, 110, 120] {
            log.add_reader(file(7), read_s);
        }
        log.add_reader(file(8), 130);
        log.add_held(7, 100);
        assert_eq!(runs(&log, 111), (0, 0), "the first run since has not begun");
        assert_eq!(runs(&log, 112), (1, 1));
        assert_eq!(runs(&log, 200), (2, 3));
    }

    #[test]
    fn held_jobs_and_other_files_do_not_count() {
        let mut log = TestLog::default();
        let other = InputFile { file: 8, origin: 9 };
        log.add_reader(other, 110);
        let held = log.add(&[(91, SUBMIT, 0), (120, HELD, 7)]);
        log.add_ad(held, vec![file(7)]);
        log.add_held(7, 100);
        assert_eq!(runs(&log, 200), (0, 0));
    }

    #[test]
    fn run_without_a_transfer_counts_once_it_has_ended() {
        let mut log = TestLog::default();
        let ended = log.add(&[(91, SUBMIT, 0), (110, EXECUTE, 0), (130, TERMINATED, 0)]);
        log.add_ad(ended, vec![file(7)]);
        let failed = log.add_held(7, 100);
        log.add_ad(failed, vec![file(7)]);
        assert_eq!(runs(&log, 129), (0, 0));
        assert_eq!(runs(&log, 130), (1, 1));
    }

    /// Adds a job of `cluster` without an ad, which reads its input at `read_s` and is never held.
    fn add_run(log: &mut TestLog, cluster: i32, read_s: i64) {
        log.add(&[
            (0, SUBMIT, 0),
            (read_s, FILE_TRANSFER, 0),
            (read_s + 2, EXECUTE, 0),
        ]);
        log.move_last_job_to(cluster);
    }

    /// Returns the log of a cluster in which two jobs fail to read the file 7.
    fn cluster_with_failures() -> (TestLog, i32) {
        let mut log = TestLog::default();
        let cluster = log.add_held(7, 100);
        log.add_held(7, 110);
        log.move_last_job_to(cluster);
        (log, cluster)
    }

    #[test]
    fn jobs_of_a_cluster_share_the_file_that_two_of_them_failed_to_read() {
        let (mut log, cluster) = cluster_with_failures();
        add_run(&mut log, cluster, 90);
        add_run(&mut log, cluster, 120);
        add_run(&mut log, cluster + 9, 130);
        assert_eq!(runs(&log, 121), (0, 0), "the run has not begun");
        assert_eq!(runs(&log, 200), (1, 1));
    }

    #[test]
    fn jobs_of_a_cluster_that_start_between_its_failures_read_other_files() {
        let (mut log, cluster) = cluster_with_failures();
        add_run(&mut log, cluster, 105);
        add_run(&mut log, cluster, 120);
        assert_eq!(runs(&log, 200), (0, 0));

        let mut one_failed = TestLog::default();
        let cluster = one_failed.add_held(7, 100);
        add_run(&mut one_failed, cluster, 120);
        assert_eq!(runs(&one_failed, 200), (0, 0));
    }

    #[test]
    fn jobs_of_a_cluster_read_from_the_origin_that_one_of_them_failed_to_read_from() {
        let found = |code: i32, is_listed: bool| {
            let mut log = TestLog::default();
            let cluster = log.add_held(7, 100);
            if is_listed {
                log.add_ad(cluster, vec![file(7)]);
            }
            add_run(&mut log, cluster, 90);
            add_run(&mut log, cluster, 120);
            add_run(&mut log, cluster + 9, 130);
            let store = log.store();
            let mut holds = super::super::past_hold::past_holds(&store);
            holds[0].stated = kind_of_code(code, 256);
            let mut runs = runs_of_failed_clusters(&store, &holds);
            runs.sort_unstable();
            assert!(runs.iter().all(|(_, origin)| *origin == holds[0].origin));
            let times = |(run, _): &RunOfHold| (run.read_ms, run.known_ms);
            Vec::from_iter(runs.iter().map(times))
        };
        // The first run is known to be of this origin once the other job has failed.
        let expected = [(90_000, 100_000), (120_000, 122_000)];
        assert_eq!(found(13, false), expected);
        assert_eq!(found(13, true), [], "the ad says what it reads");
        assert_eq!(found(12, false), [], "an output");
    }

    /// What HTCondor 8 states of output that a job has not written, under the code for input.
    fn missing_output() -> ReasonKind {
        let reason = "Error from slot1@e: STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:1>: error reading from /x/dir_1/a: (errno 2) No such file or directory; SHADOW failed to receive file(s) from <192.0.2.7:1>";
        read_reason(reason, Some((13, 2))).kind
    }

    #[test]
    fn output_under_the_code_for_input_was_read_by_nobody() {
        let (mut log, cluster) = cluster_with_failures();
        add_run(&mut log, cluster, 120);
        log.add_reader(file(7), 130);
        assert_eq!(runs(&log, 200), (2, 2));
        log.state(.., missing_output());
        assert_eq!(runs(&log, 200), (0, 0));
    }

    #[test]
    fn run_that_ends_without_its_output_has_read_its_input() {
        let read_at_end = |kind: ReasonKind| {
            let mut log = TestLog::default();
            let ran = log.add(&[(91, SUBMIT, 0), (110, EXECUTE, 0), (130, HELD, 8)]);
            log.add_ad(ran, vec![file(7)]);
            log.state(.., kind);
            log.add_held(7, 100);
            runs(&log, 200)
        };
        assert_eq!(read_at_end(missing_output()), (1, 1));
        assert_eq!(read_at_end(kind_of_code(13, 2)), (0, 0));
    }

    #[test]
    fn reads_by_others_tell_nothing_about_permissions() {
        let mut log = TestLog::default();
        log.add_reader(file(7), 110);
        log.add_held(7, 100);
        let store = log.store();
        let mut holds = super::super::past_hold::past_holds(&store);
        let count = |holds: &[PastHold]| input_runs(&store, holds, CauseKind::File).len();
        assert_eq!(count(&holds), 1);
        holds[0].stated.outcome = Outcome::Denied;
        assert_eq!(count(&holds), 0, "the owner of the held job is another one");
    }
}
