//! A trial of a pipeline → its row: fits, in a directory of its attempt alone until it counts.

use anyhow::Result;

use super::fits::{self, Fit, FitScores, Rows, Task, finished};
use super::folder::Sweep;
use super::row::{How, Row};
use super::source::Sources;
use super::term::Term;
use super::trial_files::{Keeper, Keeps, trial_dir};
use super::trials::check_pipeline;
use crate::config::{Config, MetricName};
use crate::queue::{AttemptOutcome, Queue, TrialAttempt};

/// A trial of a pipeline at work.
pub(super) struct FitTrial<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) queue: &'a Queue,
    pub(super) attempt: &'a TrialAttempt<'a>,
    pub(super) term: Term<'a>,
    pub(super) config: &'a Config,
    pub(super) task: Task,
    pub(super) row: Row,
    pub(super) keeper: &'a Keeper<'a>,
    pub(super) sources: &'a Sources,
}

impl FitTrial<'_> {
    /// Fits until it is done or its term is over, which is asked for between iterations, trees and epochs: it ends the trial,
    /// and never its worker.
    pub(super) fn run(mut self) -> Result<AttemptOutcome<Row>> {
        if let Err(error) = check_pipeline(self.config) {
            return Ok(self.term.failed(self.row, How::Invalid, &error));
        }
        // Data that this worker does not find is no fault of the trial.
        let rows = self.sources.rows(self.sweep, self.config)?;
        let key = self.task.key(&rows)?;
        let outcome = self.fitted(&rows, &key);
        (self.row.key, self.row.tensors_key) = (Some(key), Some(rows.key.clone()));
        let outcome = outcome.map(|(scores, seconds)| {
            self.row.value = scores.watched(self.config.wandb.sweep.metric.name);
            (self.row.fit, self.row.fit_seconds) = (Some(scores), seconds);
        });
        self.term.end(self.row, outcome)
    }

    fn fitted(&self, rows: &Rows, key: &str) -> Result<(FitScores, Vec<f64>)> {
        if let Some(scores) = finished(&trial_dir(&self.sweep.dir, self.row.trial), key) {
            return Ok((scores, Vec::new()));
        }
        let term = self.term;
        let fit: Fit = self.task.fit(rows, &move || term.is_over())?;
        let metric = self.config.wandb.sweep.metric.name;
        let loss = fit
            .scores
            .watched(MetricName::ValidationLoss)
            .unwrap_or(f64::INFINITY);
        let rank = fit.scores.watched(metric).map(|value| (value, loss));
        let kind = (true, self.row.split.clone());
        let dir = self.queue.work_dir(self.attempt.entry);
        match self.keeper.keeps(&kind, rank, self.row.trial)? {
            Keeps::All => fit.write(&dir, self.config, key)?,
            Keeps::Predictions => {
                fit.write(&dir, self.config, key)?;
                fits::remove_model(&dir)?;
            }
            Keeps::Row => {}
        }
        Ok((fit.scores, fit.seconds))
    }
}
