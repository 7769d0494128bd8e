//! First runs of jobs that read what others are held for. A run begins once all input files of the job
//! have arrived, so it shows that the file can be read again, or that its origin answers.

use std::collections::HashMap;

use super::cause_kind::{CauseKeys, CauseKind};
use super::past_hold::PastHold;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, FILE_TRANSFER, HELD, InputFile, TERMINATED};
use poolcast_events::{EventStore, JobHistory, StoredJob};
use poolcast_tensors::NO_KEY;

/// Code of holds because an input file did not arrive.
pub const TRANSFER_INPUT: i32 = 13;
/// Subcodes for a file that its owner may not read: `EPERM` and `EACCES`. Others may.
const NOT_PERMITTED: [i32; 2] = [1, 13];

/// The first run of a job that was not held before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    runs.retain(|(run, hold)| is_evidence(run, &holds[*hold as usize]));
    runs
}

/// Returns the first runs of jobs, each with one of the different numbers that `of_input` gives to its inputs.
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

/// Returns the last of the holds for each key of kind `kind`, if a transfer of input failed.
fn failed_transfers(holds: &[PastHold], kind: CauseKind) -> HashMap<u64, u32> {
    let keyed = holds
        .iter()
        .zip(0..)
        .map(|(hold, index)| (hold.code, hold.causes.get(kind), index));
    keyed
        .filter(|&(code, key, _)| code == TRANSFER_INPUT && key != NO_KEY)
        .map(|(_, key, index)| (key, index))
        .collect()
}

/// Returns true if `run` shows that the file of `hold` can be read.
fn is_evidence(run: &InputRun, hold: &PastHold) -> bool {
    !NOT_PERMITTED.contains(&hold.subcode) || hold.owner == run.owner
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
    (job.history.hold_code[known] != TRANSFER_INPUT).then_some(InputRun {
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
    use htcondor_eventlog::SUBMIT;
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

    #[test]
    fn reads_by_others_tell_nothing_about_permissions() {
        let mut log = TestLog::default();
        log.add_reader(file(7), 110);
        log.add_held(7, 100);
        let store = log.store();
        let mut holds = super::super::past_hold::past_holds(&store);
        let count = |holds: &[PastHold]| input_runs(&store, holds, CauseKind::File).len();
        assert_eq!(count(&holds), 1);
        holds[0].subcode = NOT_PERMITTED[1];
        assert_eq!(count(&holds), 0, "the owner of the held job is another one");
    }
}
