//! Passes on requests from W&B's pages, such as pausing a sweep, by small files in the sweep's
//! folder. Workers read these files, so they need no network.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::runs::{TrackedOutcome, TrackedRun, TrackedSource};
use poolcast_queue::{Dispatch, Queue};

/// Interval between queries for the state of a sweep. It equals the heartbeat interval of a run
/// without new epochs.
const STATE_QUERY_INTERVAL: Duration = Duration::from_secs(240);

/// Passes on the requests of users for one sweep.
#[derive(Debug, Default)]
pub(super) struct SweepControl {
    /// The queue of the sweep, while trials are left.
    queue: Option<Queue>,
    asked_at: Option<Duration>,
    /// True if the server supplies the points. Such a sweep is over on the server once all points
    /// are handed out.
    is_given: bool,
}

impl SweepControl {
    /// Makes the control of a sweep with this `queue`.
    #[cfg(test)]
    pub(super) fn of_queue(queue: Queue) -> SweepControl {
        SweepControl {
            queue: Some(queue),
            ..SweepControl::default()
        }
    }

    /// Prepares for the next pass over `source`. A run and a DAG have no queue, so they get no
    /// requests.
    pub(super) fn begin_pass(&mut self, source: &TrackedSource) {
        self.queue = source.queue();
        self.is_given = source.config().wandb.sweep.id.is_some();
    }

    /// Returns true if the sweep's state is due to be queried.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let is_early = self
            .asked_at
            .is_some_and(|asked_at| now < asked_at + STATE_QUERY_INTERVAL);
        self.queue.is_some() && !is_early
    }

    /// Passes on the `state` of the sweep on the server at `now`. Returns a note if that failed.
    pub(super) fn pass_on_state(&mut self, now: Duration, state: Option<&str>) -> Option<String> {
        self.asked_at = Some(now);
        let mut asked = dispatch_for_state(state);
        if self.is_given && asked == Dispatch::Stopped {
            asked = Dispatch::Open;
        }
        let asked = self.queue.as_ref()?.request_dispatch(asked);
        log_or_note(asked, "the handing out of trials")
    }

    /// Passes on a click on Stop on the page of `run`, as reported in the `answer` to a message
    /// about it. Returns a note if that failed.
    pub(super) fn record_answer(&self, run: &TrackedRun, answer: &Value) -> Option<String> {
        let is_stopped = answer["stopped"] == json!(true);
        if !is_stopped || run.outcome != TrackedOutcome::Running {
            return None;
        }
        let asked = self.queue.as_ref()?.ask_to_end(run.trial()?);
        log_or_note(asked, &run.name)
    }
}

/// Logs a new request about `what` that was passed on; returns a note if that failed.
fn log_or_note(asked: Result<bool>, what: &str) -> Option<String> {
    match asked {
        Ok(is_new) => {
            if is_new {
                tracing::info!("W&B's page asks for a change of {what}");
            }
            None
        }
        Err(error) => Some(format!(
            "cannot pass on a request from W&B's page: {error:#}"
        )),
    }
}

/// Maps the state of a sweep on W&B to the handing out of trials. Other states mean a running
/// sweep.
fn dispatch_for_state(state: Option<&str>) -> Dispatch {
    match state {
        Some("PAUSED") => Dispatch::Paused,
        Some("FINISHED") => Dispatch::Stopped,
        Some("CANCELED" | "CANCELLED") => Dispatch::Cancelled,
        _ => Dispatch::Open,
    }
}
