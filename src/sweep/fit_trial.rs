//! A trial of a pipeline → its row: fits, in a directory of its attempt alone until it counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::fits::{Fit, FitScores, Rows, Task, finished};
use super::folder::Sweep;
use super::queue::{Attempt, Ended, Queue};
use super::row::{How, Row};
use super::source;
use super::trial::{is_passing, trial_dir};
use super::trials::check_pipeline;
use crate::config::Config;
use crate::pipelines::Stopped;

/// A trial of a pipeline at work.
pub(super) struct FitTrial<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) queue: &'a Queue,
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) config: &'a Config,
    pub(super) task: Task,
    pub(super) row: Row,
    pub(super) began: Instant,
}

impl FitTrial<'_> {
    /// Fits until it is done, `stop` is set or `limit` is over. The limit is asked for between iterations, trees and epochs:
    /// it ends the trial, and never its worker.
    pub(super) fn run(mut self, limit: Duration, stop: &AtomicBool) -> Result<Ended<Row>> {
        if let Err(error) = check_pipeline(self.config) {
            return Ok(Ended::Failed(self.failed(How::Invalid, &error)));
        }
        // Data that this worker does not find is no fault of the trial.
        let rows = source::rows(self.sweep, self.config)?;
        let key = self.task.key(&rows)?;
        self.row.key = Some(key.clone());
        self.row.tensors_key = Some(rows.key.clone());
        let began = self.began;
        let ends = || stop.load(Ordering::Relaxed) || began.elapsed() > limit;
        match self.fitted(&rows, &key, &ends) {
            Ok((scores, seconds)) => {
                self.row.value = scores.watched(self.config.wandb.sweep.metric.name);
                (self.row.fit, self.row.fit_seconds) = (Some(scores), seconds);
                Ok(Ended::Done(self.ended(How::Done)))
            }
            Err(error) if error.is::<Stopped>() && began.elapsed() <= limit => Ok(Ended::Stopped),
            Err(error) if error.is::<Stopped>() => {
                let error = error.context(format!("it took longer than {} s", limit.as_secs()));
                Ok(Ended::Failed(self.failed(How::TimeLimit, &error)))
            }
            Err(error) if is_passing(&error) => Err(error),
            Err(error) => Ok(Ended::Failed(self.failed(How::Error, &error))),
        }
    }

    fn fitted(&self, rows: &Rows, key: &str, ends: &(dyn Fn() -> bool + Sync)) -> Result<(FitScores, Vec<f64>)> {
        if let Some(scores) = finished(&trial_dir(&self.sweep.dir, self.row.trial), key) {
            return Ok((scores, Vec::new()));
        }
        let fit: Fit = self.task.fit(rows, ends)?;
        fit.write(&self.queue.work_dir(self.attempt.token), self.config, key)?;
        Ok((fit.scores, fit.seconds))
    }

    fn failed(mut self, how: How, error: &anyhow::Error) -> Row {
        self.row.error = Some(format!("{error:#}"));
        self.ended(how)
    }

    fn ended(mut self, how: How) -> Row {
        self.row.ended = how;
        self.row.seconds = self.began.elapsed().as_secs_f64();
        self.row
    }
}
