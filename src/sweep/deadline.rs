//! The outcome of an attempt at a trial, and how long it took → what becomes of its item.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::trial_row::{TrialEnd, TrialRow};
use poolcast_base::error::{EXIT_RETRY, exit_code};
use poolcast_pipelines::FitStopped;
use poolcast_queue::{AttemptOutcome, TrialAttempt};
use poolcast_holds::training::TrainError;
use poolcast_models::optim::{NonFiniteLoss, TrainingStopped};

/// Why an attempt at a trial ended without a result.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// It was asked to stop.
    Stopped(anyhow::Error),
    /// Its loss was NaN or infinite.
    NonFinite(anyhow::Error),
    /// Something else failed: the trial, or the machine that it ran on.
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

/// The error of a fit, whose solvers all return the same type, or of a training of a model of waits.
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

/// How long an attempt may go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptDeadline<'a> {
    pub(super) began: Instant,
    /// An attempt that takes longer has failed.
    pub(super) limit: Duration,
    /// Once this is set, the attempt stops, and the trial is given back.
    pub(super) stop: &'a AtomicBool,
    /// The attempt of a queue, which also stops if the queue is paused. `None` in a part of a DAG.
    pub(super) attempt: Option<&'a TrialAttempt<'a>>,
}

impl AttemptDeadline<'_> {
    /// Whether to stop.
    pub(super) fn has_passed(self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.attempt.is_some_and(TrialAttempt::is_paused)
            || self.began.elapsed() > self.limit
    }

    /// Says what becomes of the item of `row` after a training or a fit with this `outcome`.
    ///
    /// # Errors
    /// Fails with what is no trial's fault, such as a full disk.
    pub(super) fn end_attempt(
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

    /// The end of a trial that would fail again.
    pub(super) fn fail(
        self,
        row: TrialRow,
        how: TrialEnd,
        error: &anyhow::Error,
    ) -> AttemptOutcome<TrialRow> {
        AttemptOutcome::Done(self.ended_row(
            TrialRow {
                error: Some(format!("{error:#}")),
                ..row
            },
            how,
        ))
    }

    fn ended_row(self, row: TrialRow, ended: TrialEnd) -> TrialRow {
        TrialRow {
            ended,
            seconds: self.began.elapsed().as_secs_f64(),
            ..row
        }
    }
}

/// Whether `error` is not the trial's fault, such as a full disk.
fn is_transient(error: &anyhow::Error) -> bool {
    exit_code(error) == EXIT_RETRY || error.chain().any(|cause| cause.is::<std::io::Error>())
}
