//! Ends an attempt at a trial: decides from its outcome and its duration what happens to its work
//! item.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::plan::{TrialEnd, TrialRow};
use poolcast_base::error::{EXIT_RETRY, exit_code};
use poolcast_holds::training::TrainError;
use poolcast_models::optim::{NonFiniteLoss, TrainingStopped};
use poolcast_pipelines::FitStopped;
use poolcast_queue::{AttemptOutcome, TrialAttempt};

/// The reason why an attempt at a trial ended without a result.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// It was asked to stop.
    Stopped(anyhow::Error),
    /// Its loss was NaN or infinite.
    NonFinite(anyhow::Error),
    /// Another error, of the trial or of the machine that it ran on.
    Other(anyhow::Error),
}

impl From<TrainError> for AttemptError {
    fn from(error: TrainError) -> AttemptError {
        match error {
            TrainError::Stopped(stopped) => AttemptError::Stopped(stopped.into()),
            TrainError::NonFinite(loss) => AttemptError::NonFinite(loss.into()),
            TrainError::Other(error) => AttemptError::Other(error),
        }
    }
}

/// Converts the error of a fit, whose solvers all return the same type, or of the training of a
/// wait model.
impl From<anyhow::Error> for AttemptError {
    fn from(error: anyhow::Error) -> AttemptError {
        if error.is::<FitStopped>() || error.is::<TrainingStopped>() {
            AttemptError::Stopped(error)
        } else if error.is::<NonFiniteLoss>() {
            AttemptError::NonFinite(error)
        } else {
            AttemptError::Other(error)
        }
    }
}

/// The time limit of an attempt, and its other reasons to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptDeadline<'a> {
    pub(crate) began: Instant,
    /// Maximum duration; a longer attempt fails.
    pub(crate) limit: Duration,
    /// A flag that, once set, stops the attempt and gives the trial back.
    pub(crate) stop: &'a AtomicBool,
    /// The attempt of a queue, which also stops if the queue is paused. `None` in a part of a DAG.
    pub(crate) attempt: Option<&'a TrialAttempt<'a>>,
}

impl AttemptDeadline<'_> {
    /// Returns true if the attempt must stop.
    pub(crate) fn has_passed(self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.attempt.is_some_and(TrialAttempt::is_paused)
            || self.began.elapsed() > self.limit
    }

    /// Decides what happens to the item of `row` after a training or a fit with this `outcome`.
    ///
    /// # Errors
    /// Fails with errors that no trial causes, such as a full disk.
    pub(crate) fn end_attempt(
        self,
        row: TrialRow,
        outcome: Result<(), AttemptError>,
    ) -> Result<AttemptOutcome<TrialRow>> {
        match outcome {
            Ok(()) => Ok(AttemptOutcome::Done(self.ended_row(row, TrialEnd::Done))),
            Err(AttemptError::Stopped(error)) if self.began.elapsed() > self.limit => {
                let limit_s = self.limit.as_secs();
                let error = error.context(format!("it took longer than {limit_s} s"));
                Ok(self.fail(row, TrialEnd::TimeLimit, &error))
            }
            Err(AttemptError::Stopped(_)) => Ok(AttemptOutcome::Stopped),
            Err(AttemptError::NonFinite(error)) => Ok(self.fail(row, TrialEnd::NonFinite, &error)),
            Err(AttemptError::Other(error)) if is_transient(&error) => Err(error),
            Err(AttemptError::Other(error)) => Ok(self.fail(row, TrialEnd::Error, &error)),
        }
    }

    /// Ends a trial that would fail again.
    pub(crate) fn fail(
        self,
        mut row: TrialRow,
        how: TrialEnd,
        error: &anyhow::Error,
    ) -> AttemptOutcome<TrialRow> {
        row.error = Some(format!("{error:#}"));
        AttemptOutcome::Done(self.ended_row(row, how))
    }

    fn ended_row(self, mut row: TrialRow, ended: TrialEnd) -> TrialRow {
        row.ended = ended;
        row.seconds = self.began.elapsed().as_secs_f64();
        row
    }
}

/// Returns true if `error` is not the trial's fault, such as a full disk.
fn is_transient(error: &anyhow::Error) -> bool {
    exit_code(error) == EXIT_RETRY || error.chain().any(|cause| cause.is::<std::io::Error>())
}
