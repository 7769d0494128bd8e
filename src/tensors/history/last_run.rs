//! The last run of a job before a hold.

use crate::cycles::HoldCycle;
use htcondor_eventlog::{EXECUTE, ExecutionHost, HELD, RunUsage};
use poolcast_events::{JobHistory, StoredJob};

/// The last run before a hold. Values that no event reports are `None`. If the job did not begin to
/// execute since the previous hold, all values of the run are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastRun {
    /// Number of times the job began to execute.
    pub starts: u32,
    /// Time from the last start to the hold, in seconds.
    pub wall_s: Option<u32>,
    /// Time, in seconds, from the submission or previous release to the start of the run, or to the
    /// hold if the run did not start.
    pub queue_wait_s: u32,
    /// Resource usage of the run, from the event that ended it.
    pub usage: RunUsage,
    /// Peak memory of the run, in MB.
    pub memory_mb: Option<u32>,
    /// Exit code of the program, if the hold reports it.
    pub exit_code: Option<u32>,
}

impl LastRun {
    /// Collects the run of `job` before its hold `cycle`.
    pub(crate) fn before(job: &StoredJob<'_>, cycle: &HoldCycle) -> LastRun {
        let history = &job.history;
        let hold = cycle.hold;
        let start = last_start(&job.history, hold);

        let wait_end = start.unwrap_or(hold);
        let queued_ms = (cycle.queued).map_or(job.submit_ms, |at| history.time_ms[at]);
        let mut run = LastRun {
            starts: cycle.earlier_starts,
            wall_s: None,
            queue_wait_s: seconds_between(queued_ms, history.time_ms[wait_end]),
            usage: RunUsage::default(),
            memory_mb: None,
            exit_code: job.hold_facts(hold).exit_code,
        };
        if let Some(start) = start {
            run.wall_s = Some(seconds_between(
                history.time_ms[start],
                history.time_ms[hold],
            ));
            run.add_usage(job, start, hold);
        }
        run
    }

    /// Adds the usage reported by the events from `start` to `hold`.
    fn add_usage(&mut self, job: &StoredJob<'_>, start: usize, hold: usize) {
        for at in start..hold {
            self.memory_mb = self.memory_mb.max(job.image_memory_mb(at));
            let usage = job.run_usage(at);
            if usage != RunUsage::default() {
                self.usage = usage;
            }
        }
        self.memory_mb = self.memory_mb.max(self.usage.memory_mb);
    }
}

/// Returns the machine and slot of the last run before the hold: from the hold if it names them,
/// otherwise from the start of the run. Both are 0 if the job did not begin to execute since the
/// previous hold.
pub fn execution_host_before(job: &StoredJob<'_>, hold: usize) -> ExecutionHost {
    let from_hold = job.hold_facts(hold).place;
    if from_hold.host != 0 {
        return from_hold;
    }
    last_start(&job.history, hold).map_or(from_hold, |start| job.execution_place(start))
}

/// Returns the index of the last event 001 before event `end`, unless it was before the previous
/// hold.
pub fn last_start(history: &JobHistory<'_>, end: usize) -> Option<usize> {
    let begins_or_ends = |number: &u16| matches!(*number, EXECUTE | HELD);
    let at = (history.number[..end].iter()).rposition(begins_or_ends)?;
    (history.number[at] == EXECUTE).then_some(at)
}

/// Returns the whole seconds between two times; 0 if `to_ms` is earlier.
pub(crate) fn seconds_between(from_ms: i64, to_ms: i64) -> u32 {
    u32::try_from((to_ms - from_ms).max(0) / 1000).unwrap_or(u32::MAX)
}
