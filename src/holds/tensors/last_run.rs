//! The run of a job that ended with a hold.

use htcondor_eventlog::{EXECUTE, ExecutionPlace, HELD, RELEASED, RunUsage, SUBMIT};
use crate::events::{JobHistory, StoredJob};

/// The run before a hold. What no event says is `None`, and so is all of a job that did not begin to
/// execute since the hold before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastRun {
    /// How often the job had begun to execute.
    pub starts: u32,
    /// From the last of these to the hold.
    pub wall_s: Option<u32>,
    /// From the submission or the release before it to its beginning; to the hold where it did not
    /// begin.
    pub queue_wait_s: u32,
    /// What the run used, by the event that ended it.
    pub usage: RunUsage,
    /// The most memory that it used, MB.
    pub memory_mb: Option<u32>,
    /// How the program ended, where the hold says so.
    pub exit_code: Option<u32>,
}

impl LastRun {
    /// The run of `job` before its event `hold`.
    pub(super) fn before(job: &StoredJob<'_>, hold: usize) -> LastRun {
        let history = &job.history;
        let numbers = &history.number[..hold];
        let starts = numbers.iter().filter(|&&number| number == EXECUTE).count();
        let start = last_start(&job.history, hold);

        let wait_end = start.unwrap_or(hold);
        let queued = numbers[..wait_end]
            .iter()
            .rposition(|number| matches!(*number, SUBMIT | RELEASED));
        let queued_ms = queued.map_or(job.submit_ms, |at| history.time_ms[at]);
        let mut run = LastRun {
            starts: starts as u32,
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

    /// Adds what the events from `start` to `hold` say of the run.
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

/// Where the last run before the hold was: as the hold says, else as the run's beginning does.
/// Nothing where the job did not begin to execute since the hold before.
pub(super) fn place_before(job: &StoredJob<'_>, hold: usize) -> ExecutionPlace {
    let of_hold = job.hold_facts(hold).place;
    if of_hold.host != 0 {
        return of_hold;
    }
    last_start(&job.history, hold).map_or(of_hold, |start| job.execution_place(start))
}

/// The place of the last event 001 before event `hold`, unless it was before the hold before.
pub(super) fn last_start(history: &JobHistory<'_>, hold: usize) -> Option<usize> {
    let begins_or_ends = |number: &u16| matches!(*number, EXECUTE | HELD);
    let at = (history.number[..hold].iter()).rposition(begins_or_ends)?;
    (history.number[at] == EXECUTE).then_some(at)
}

/// Whole seconds; 0 where `to_ms` comes first.
pub(super) fn seconds_between(from_ms: i64, to_ms: i64) -> u32 {
    u32::try_from((to_ms - from_ms).max(0) / 1000).unwrap_or(u32::MAX)
}
