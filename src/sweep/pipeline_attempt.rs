//! A trial of a pipeline → its row: fits, in a directory of its attempt alone until it counts.

use std::path::PathBuf;

use anyhow::Result;

use super::deadline::AttemptDeadline;
use super::folder::SweepFolder;
use super::kept_trials::ComparisonGroup;
use super::paths::trial_dir;
use super::pipeline_fit::{self, FitScores, FitTables, PipelineTask, finished_scores};
use super::trial_data::SharedTables;
use super::trial_files::{KeptFiles, TrialFiles};
use super::trial_row::{TrialEnd, TrialRow};
use super::trials::check_trial;
use crate::config::{Config, MetricName};
use crate::queue::AttemptOutcome;

/// An attempt of a queue at a trial of a pipeline.
pub(super) struct PipelineAttempt<'a> {
    pub(super) sweep: &'a SweepFolder,
    /// The attempt's own directory.
    pub(super) dir: PathBuf,
    pub(super) deadline: AttemptDeadline<'a>,
    pub(super) config: &'a Config,
    pub(super) task: PipelineTask,
    pub(super) row: TrialRow,
    pub(super) files: &'a TrialFiles<'a>,
    pub(super) shared: &'a SharedTables,
}

impl PipelineAttempt<'_> {
    /// Fits until the trial is done or its deadline has passed, which is asked for between iterations, trees and epochs. A
    /// deadline ends the trial, and never its worker.
    ///
    /// # Errors
    /// Fails with what is no trial's fault, such as a full disk or a table that this worker does not find.
    pub(super) fn run(mut self) -> Result<AttemptOutcome<TrialRow>> {
        if let Err(error) = check_trial(self.config) {
            return Ok(self.deadline.fail(self.row, TrialEnd::Invalid, &error));
        }

        // Data that this worker does not find is no fault of the trial.
        let tables = self.shared.tables(self.sweep, self.config)?;
        let key = self.task.key(&tables)?;

        let fitted = self.fit_or_reuse(&tables, &key);
        self.row.key = Some(key);
        self.row.tensors_key = Some(tables.key.clone());
        let outcome = fitted.map(|fitted| self.row.set_fit(fitted.scores, fitted.seconds));
        self.deadline.end_attempt(self.row, outcome)
    }

    /// Takes over a fit of an earlier sweep that comes to the same, or else fits.
    fn fit_or_reuse(&self, tables: &FitTables, key: &str) -> Result<ScoredFit> {
        let published = trial_dir(&self.sweep.dir, self.row.trial);
        if let Some(scores) = finished_scores(&published, key) {
            return Ok(ScoredFit {
                scores,
                seconds: Vec::new(),
            });
        }

        let deadline = self.deadline;
        let fit = self.task.fit(tables, &move || deadline.has_passed())?;

        match self.files_to_keep(&fit.scores)? {
            KeptFiles::All => fit.write(&self.dir, self.config, key)?,
            KeptFiles::Predictions => {
                fit.write(&self.dir, self.config, key)?;
                pipeline_fit::remove_model(&self.dir)?;
            }
            KeptFiles::Row => {}
        }
        Ok(ScoredFit {
            scores: fit.scores,
            seconds: fit.seconds,
        })
    }

    fn files_to_keep(&self, scores: &FitScores) -> Result<KeptFiles> {
        let group = ComparisonGroup {
            is_fit: true,
            split: self.row.split.clone(),
        };
        let loss = scores
            .watched(MetricName::ValidationLoss)
            .unwrap_or(f64::INFINITY);
        let value = scores.watched(self.config.wandb.sweep.metric.name);
        let rank = value.map(|value| (value, loss));
        self.files.files_to_keep(&group, rank, self.row.trial)
    }
}

/// The scores of a fit, and how long each of its fits took.
struct ScoredFit {
    scores: FitScores,
    seconds: Vec<f64>,
}
