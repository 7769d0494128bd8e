//! An attempt at a trial over wait samples: one training like `provision train`, in the attempt's
//! own directory until the attempt counts.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::deadline::{AttemptDeadline, AttemptError};
use crate::plan::SweepFolder;
use crate::plan::TrialRow;
use crate::plan::trial_dir;
use poolcast_base::files;
use poolcast_models::Device;
use poolcast_provision::samples::WaitSamples;
use poolcast_provision::wait_model::{
    LearningUpdate, WaitModelScores, WaitModelSettings, WaitModelSummary, WaitTrainingTask,
    finished_summary, read_wait_checkpoint, train_wait_model, wait_model_key,
};
use poolcast_queue::{Queue, TrialAttempt};

/// An attempt at a trial over wait samples, for a queue.
pub(crate) struct WaitModelAttempt<'a> {
    pub(crate) sweep: &'a SweepFolder,
    pub(crate) queue: &'a Queue,
    pub(crate) attempt: &'a TrialAttempt<'a>,
    /// The attempt's own directory.
    pub(crate) dir: PathBuf,
    pub(crate) settings: &'a WaitModelSettings,
    pub(crate) deadline: AttemptDeadline<'a>,
}

impl WaitModelAttempt<'_> {
    /// Trains until the trial is done or its deadline has passed, and records the result in `row`.
    ///
    /// # Errors
    /// Fails if it was stopped, if the loss was NaN or infinite, if nothing can be learned, and on
    /// a full disk.
    pub(crate) fn train(
        &self,
        row: &mut TrialRow,
        samples: &WaitSamples,
    ) -> Result<(), AttemptError> {
        let key = wait_model_key(samples, self.settings, None)?;
        row.key = Some(key.clone());
        row.tensors_key = Some(samples.key.clone());

        // An earlier sweep may have left the same training.
        let published = trial_dir(&self.sweep.dir, row.trial);
        let summary = match finished_summary(&published, &key) {
            Some(summary) => summary,
            None => self.train_or_resume(samples, &key)?,
        };
        row.set_waits(WaitModelScores::of(&summary, &self.settings.cost_ratios));
        Ok(())
    }

    fn train_or_resume(&self, samples: &WaitSamples, key: &str) -> Result<WaitModelSummary> {
        self.adopt_attempt(key)?;
        let listener = |update: LearningUpdate<'_>| {
            if let LearningUpdate::Epoch(epoch) = update {
                self.attempt.report_epoch(epoch.epoch, None);
            }
            if self.deadline.has_passed() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let minutes = self.sweep.config.training.checkpoint_minutes;
        let task = WaitTrainingTask {
            samples,
            base: None,
            settings: self.settings,
            device: &Device::Cpu,
            out: &self.dir,
            overwrite: false,
            checkpoint_interval: Duration::from_secs_f64(60.0 * minutes),
            listener: &listener,
        };
        Ok(train_wait_model(&task)?.summary)
    }

    /// Continues from the files of an earlier attempt at the same training: the attempt with the
    /// most epochs.
    fn adopt_attempt(&self, key: &str) -> Result<()> {
        if progress_of(&self.dir, key).is_some() {
            return Ok(());
        }
        let mut furthest: Option<(usize, PathBuf)> = None;
        for dir in self.queue.other_attempt_dirs(self.attempt.entry)? {
            let progress = progress_of(&dir, key);
            if progress > furthest.as_ref().map(|(progress, _)| *progress) {
                furthest = progress.map(|progress| (progress, dir));
            }
        }
        let Some((_, earlier)) = furthest else {
            return Ok(());
        };
        // No other worker uses this directory, because its worker has lost the lease or has given
        // it back.
        files::remove_all([self.dir.clone()])?;
        Ok(fs_err::rename(earlier, &self.dir)?)
    }
}

/// The progress of the training with the key `key` in `dir`, in epochs; [`usize::MAX`] if it has
/// ended. `None` if it has not begun.
fn progress_of(dir: &Path, key: &str) -> Option<usize> {
    if finished_summary(dir, key).is_some() {
        return Some(usize::MAX);
    }
    let checkpoint = read_wait_checkpoint(dir)?;
    (checkpoint.key == key).then_some(checkpoint.epochs)
}
