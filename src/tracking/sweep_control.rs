//! What people ask on W&B's pages → small files in the folder of a sweep, at which workers look. So
//! workers need no network.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::source::TrackedSource;
use super::tracked_run::{TrackedOutcome, TrackedRun};
use poolcast_queue::{HandOut, Queue};

/// How often the server is asked for the state of a sweep: as often as a run that has nothing to say
/// is heard of.
const ASK_EVERY: Duration = Duration::from_secs(240);

/// What people ask of one sweep.
#[derive(Debug, Default)]
pub(super) struct SweepControl {
    /// The queue of the sweep while trials are left.
    queue: Option<Queue>,
    asked_at: Option<Duration>,
    /// Whether the server gives the points: then its sweep is over as soon as it has given all.
    is_given: bool,
}

impl SweepControl {
    /// That of a sweep with this `queue`.
    #[cfg(test)]
    pub(super) fn of_queue(queue: Queue) -> SweepControl {
        SweepControl {
            queue: Some(queue),
            ..SweepControl::default()
        }
    }

    /// Looks at `source` anew. A run and a DAG have no queue that could be told anything.
    pub(super) fn begin_pass(&mut self, source: &TrackedSource) {
        self.queue = source.queue();
        self.is_given = source.config().wandb.sweep.id.is_some();
    }

    /// Whether it is time to ask for the sweep's state.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let is_early = self
            .asked_at
            .is_some_and(|asked_at| now < asked_at + ASK_EVERY);
        self.queue.is_some() && !is_early
    }

    /// Takes note of the `state` that a sweep has on the server at `now`. Returns what could not be
    /// passed on.
    pub(super) fn hear_state(&mut self, now: Duration, state: Option<&str>) -> Option<String> {
        self.asked_at = Some(now);
        let mut asked = hand_out_of(state);
        if self.is_given && asked == HandOut::Stopped {
            asked = HandOut::Open;
        }
        let asked = self.queue.as_ref()?.ask_hand_out(asked);
        passed_on(asked, "what is handed out")
    }

    /// Takes note of the `answer` to what was sent of `run`, which says whether somebody has pressed
    /// Stop on its page. Returns what could not be passed on.
    pub(super) fn hear_answer(&self, run: &TrackedRun, answer: &Value) -> Option<String> {
        let is_stopped = answer["stopped"] == json!(true);
        if !is_stopped || run.outcome != TrackedOutcome::Running {
            return None;
        }
        let asked = self.queue.as_ref()?.ask_to_end(run.trial()?);
        passed_on(asked, &run.name)
    }
}

/// Says in the diagnostics that a new wish about `what` was passed on; returns why it could not be.
fn passed_on(asked: Result<bool>, what: &str) -> Option<String> {
    match asked {
        Ok(is_new) => {
            if is_new {
                tracing::info!("W&B's page asks for a change of {what}");
            }
            None
        }
        Err(error) => Some(format!("what W&B's page asks was not passed on: {error:#}")),
    }
}

/// What the state of a sweep on W&B asks for. Its other states are those of one that goes on.
fn hand_out_of(state: Option<&str>) -> HandOut {
    match state {
        Some("PAUSED") => HandOut::Paused,
        Some("FINISHED") => HandOut::Stopped,
        Some("CANCELED" | "CANCELLED") => HandOut::Cancelled,
        _ => HandOut::Open,
    }
}
