//! A trial of a pipeline → its row: fits, in a directory of its attempt alone until it counts.

use anyhow::Result;

use super::deadline::AttemptDeadline;
use super::folder::SweepFolder;
use super::pipeline_fit::{self, FitScores, FitTables, PipelineFit, PipelineTask, finished};
use super::trial_data::SharedRows;
use super::trial_files::{KeptFiles, TrialFiles, trial_dir};
use super::trial_row::{TrialEnd, TrialRow};
use super::trials::check_pipeline;
use crate::config::{Config, MetricName};
use crate::queue::{AttemptOutcome, Queue, TrialAttempt};

/// A trial of a pipeline at work.
pub(super) struct PipelineAttempt<'a> {
    pub(super) sweep: &'a SweepFolder,
    pub(super) queue: &'a Queue,
    pub(super) attempt: &'a TrialAttempt<'a>,
    pub(super) term: AttemptDeadline<'a>,
    pub(super) config: &'a Config,
    pub(super) task: PipelineTask,
    pub(super) row: TrialRow,
    pub(super) keeper: &'a TrialFiles<'a>,
    pub(super) sources: &'a SharedRows,
}

impl PipelineAttempt<'_> {
    /// Fits until it is done or its term is over, which is asked for between iterations, trees and epochs: it ends the trial,
    /// and never its worker.
    pub(super) fn run(mut self) -> Result<AttemptOutcome<TrialRow>> {
        if let Err(error) = check_pipeline(self.config) {
            return Ok(self.term.failed(self.row, TrialEnd::Invalid, &error));
        }
        // Data that this worker does not find is no fault of the trial.
        let rows = self.sources.tables(self.sweep, self.config)?;
        let key = self.task.key(&rows)?;
        let outcome = self.fitted(&rows, &key);
        (self.row.key, self.row.tensors_key) = (Some(key), Some(rows.key.clone()));
        let outcome = outcome.map(|(scores, seconds)| {
            self.row.value = scores.watched(self.config.wandb.sweep.metric.name);
            (self.row.fit, self.row.fit_seconds) = (Some(scores), seconds);
        });
        self.term.end(self.row, outcome)
    }

    fn fitted(&self, rows: &FitTables, key: &str) -> Result<(FitScores, Vec<f64>)> {
        if let Some(scores) = finished(&trial_dir(&self.sweep.dir, self.row.trial), key) {
            return Ok((scores, Vec::new()));
        }
        let term = self.term;
        let fit: PipelineFit = self.task.fit(rows, &move || term.is_over())?;
        let metric = self.config.wandb.sweep.metric.name;
        let loss = fit
            .scores
            .watched(MetricName::ValidationLoss)
            .unwrap_or(f64::INFINITY);
        let rank = fit.scores.watched(metric).map(|value| (value, loss));
        let kind = (true, self.row.split.clone());
        let dir = self.queue.work_dir(self.attempt.entry);
        match self.keeper.keeps(&kind, rank, self.row.trial)? {
            KeptFiles::All => fit.write(&dir, self.config, key)?,
            KeptFiles::Predictions => {
                fit.write(&dir, self.config, key)?;
                pipeline_fit::remove_model(&dir)?;
            }
            KeptFiles::Row => {}
        }
        Ok((fit.scores, fit.seconds))
    }
}
