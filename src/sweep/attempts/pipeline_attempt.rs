//! An attempt at a trial of a pipeline: its fits, in the attempt's own directory until the attempt
//! counts.

use std::path::PathBuf;

use anyhow::Result;

use super::deadline::AttemptDeadline;
use super::kept_trials::ComparisonGroup;
use super::pipeline_fit::{self, FitTables, PipelineTask};
use super::trial_files::{KeptFiles, TrialFiles};
use crate::config::Config;
use crate::plan::TrialRow;
use poolcast_config::MetricName;
use poolcast_holds::training::FitScores;

/// An attempt at a trial of a pipeline, for a queue or in a part.
pub(crate) struct PipelineAttempt<'a> {
    /// The attempt's own directory.
    pub(crate) dir: PathBuf,
    pub(crate) config: &'a Config,
    pub(crate) task: &'a PipelineTask,
    pub(crate) deadline: AttemptDeadline<'a>,
    /// The files of the trials of a queue. Files of an earlier sweep are reused, and files that
    /// need not be kept are not written. `None` always fits, and writes all files.
    pub(crate) files: Option<&'a TrialFiles<'a>>,
}

impl PipelineAttempt<'_> {
    /// Fits until the trial is done or its deadline has passed, and records the result in `row`.
    /// The deadline is checked between iterations, trees and epochs.
    ///
    /// # Errors
    /// Fails if it was stopped, if `tables` cannot be fitted, and on a full disk.
    pub(crate) fn fit(&self, row: &mut TrialRow, tables: &FitTables) -> Result<()> {
        let key = self.task.key(tables)?;
        row.key = Some(key.clone());
        row.tensors_key = Some(tables.key.clone());

        if let Some(files) = self.files
            && let Some(scores) = files.finished_fit(row.trial, &key)
        {
            row.set_fit(scores, Vec::new());
            return Ok(());
        }

        let deadline = self.deadline;
        let fit = self.task.fit(tables, &move || deadline.has_passed())?;

        match self.files_to_keep(row, &fit.scores)? {
            KeptFiles::All => fit.write(&self.dir, self.config, &key)?,
            KeptFiles::Predictions => {
                fit.write(&self.dir, self.config, &key)?;
                pipeline_fit::remove_model(&self.dir)?;
            }
            KeptFiles::Row => {}
        }
        row.set_fit(fit.scores, fit.seconds);
        Ok(())
    }

    fn files_to_keep(&self, row: &TrialRow, scores: &FitScores) -> Result<KeptFiles> {
        let Some(files) = self.files else {
            return Ok(KeptFiles::All);
        };

        let group = ComparisonGroup {
            is_fit: true,
            split: row.split.clone(),
        };
        let metric = self.config.wandb.sweep.metric.name;
        let tie_breaker = metric.tie_breaker(
            scores.watched(MetricName::ValidationLoss),
            scores.watched(MetricName::ValidationRocAuc),
        );
        let value = row.value_of(metric, |name| scores.watched(name));
        let rank = value.map(|value| (value, tie_breaker));
        files.files_to_keep(&group, rank, row.trial)
    }
}
