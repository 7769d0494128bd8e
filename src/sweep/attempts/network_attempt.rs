//! An attempt at a trial of the network: one training, in the attempt's own directory until the
//! attempt counts.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::deadline::AttemptDeadline;
use crate::plan::SweepFolder;
use crate::plan::TrialConfig;
use crate::plan::schedule;
use crate::plan::trial_dir;
use crate::plan::{EarlierTrial, TrialRow};
use poolcast_base::{files, manifest};
use poolcast_holds::config::TrainingSettings;
use poolcast_holds::training::{
    self, Epoch, RUN_FORMAT, RunLocation, StartMode, TrainError, TrainingMetrics, TrainingRun,
    TrainingStatus, TrainingUpdate, read_history, train_beside_others, train_until, training_key,
};
use poolcast_models::Device;
use poolcast_queue::{Queue, TrialAttempt};
use poolcast_tensors::Dataset;

/// Returns the number of finished epochs of the training in `dir`.
pub(crate) fn trained_epochs(dir: &Path) -> usize {
    read_history(dir).map_or(0, |history| history.len())
}

/// The result of a training.
pub(crate) struct TrainingResult {
    pub(crate) metrics: TrainingMetrics,
    pub(crate) history: Vec<Epoch>,
}

impl TrainingResult {
    /// Reads the result of the training in `dir`.
    pub(crate) fn read(dir: &Path) -> Result<TrainingResult> {
        Ok(TrainingResult {
            metrics: TrainingMetrics::read(dir)?,
            history: read_history(dir)?,
        })
    }
}

/// An attempt at a trial of the network, for a queue.
pub(crate) struct NetworkAttempt<'a> {
    pub(crate) sweep: &'a SweepFolder,
    pub(crate) queue: &'a Queue,
    pub(crate) attempt: &'a TrialAttempt<'a>,
    /// The attempt's own directory.
    pub(crate) dir: PathBuf,
    /// The trials that this one learns from.
    pub(crate) earlier: Vec<EarlierTrial>,
    pub(crate) trial: &'a TrialConfig,
    pub(crate) settings: &'a TrainingSettings,
    pub(crate) deadline: AttemptDeadline<'a>,
    /// Number of workers in this process.
    pub(crate) workers: usize,
}

impl NetworkAttempt<'_> {
    /// Trains until the trial ends or the deadline has passed, and records the result in `row`.
    /// Calls `progress` with each epoch and its trial.
    ///
    /// # Errors
    /// Fails if it was stopped, if the loss was NaN or infinite, and on a full disk.
    pub(crate) fn train(
        &self,
        row: &mut TrialRow,
        dataset: &Dataset,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<(), TrainError> {
        let key = set_network_key(row, self.settings, dataset)?;
        let trained = self.train_or_reuse(dataset, &key, progress);
        if let Ok(result) = &trained {
            row.ended_on_request = result.metrics.status == TrainingStatus::TerminatedEarly
                && !self.ends_by_plan(&result.history);
        }
        record_training(row, &self.dir, trained)
    }

    /// Reuses an equal training of an earlier sweep; otherwise trains.
    fn train_or_reuse(
        &self,
        dataset: &Dataset,
        key: &str,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<TrainingResult, TrainError> {
        let trial = self.attempt.entry.next_item().trial;
        let published = trial_dir(&self.sweep.dir, trial);
        let is_same = manifest::finished_key(&published, RUN_FORMAT).as_deref() == Some(key);
        if is_same && self.may_continue_from(&published) {
            let metrics = TrainingRun::open(&published)?.metrics;
            let history = read_history(&published)?;
            if metrics.status != TrainingStatus::TerminatedEarly || self.ends_after(&history) {
                return Ok(TrainingResult { metrics, history });
            }
        }

        self.adopt_checkpoint(key)?;
        let metric = self.sweep.config.wandb.sweep.metric.name;
        let on_update = |update: TrainingUpdate<'_>| match update {
            TrainingUpdate::Epoch(epoch) => {
                self.attempt
                    .report_epoch(epoch.epoch, epoch.watched(metric));
                progress(trial, epoch);
                ControlFlow::Continue(())
            }
            TrainingUpdate::Batch { .. } if self.deadline.has_passed() => ControlFlow::Break(()),
            TrainingUpdate::Batch { .. } => ControlFlow::Continue(()),
        };
        let resolved = self.trial.written.resolved()?;
        let place = RunLocation {
            dir: &self.dir,
            config: &resolved,
            checkpoint_minutes: self.trial.written.training.checkpoint_minutes,
        };
        let train = || {
            train_until(
                dataset,
                self.settings,
                place,
                StartMode::Resume,
                &Device::Cpu,
                |epochs: &[Epoch]| self.ends_after(epochs),
                on_update,
            )
        };
        let run = match self.workers {
            1 => train()?,
            _ => train_beside_others(dataset, self.settings, train)??,
        };
        Ok(TrainingResult {
            metrics: run.metrics,
            history: read_history(&self.dir)?,
        })
    }

    /// Returns true if the trial ends after `epochs`: by plan, or because a user requested it. A
    /// request has no effect before the first epoch, because there would be no model to keep.
    fn ends_after(&self, epochs: &[Epoch]) -> bool {
        let trial = self.attempt.entry.next_item().trial;
        let is_asked = !epochs.is_empty() && self.queue.is_asked_to_end(trial);
        is_asked || self.ends_by_plan(epochs)
    }

    /// Returns true if the configuration or other trials end the trial after `epochs`.
    fn ends_by_plan(&self, epochs: &[Epoch]) -> bool {
        schedule::ends_after(
            &self.sweep.config,
            self.attempt.entry.next_item(),
            &self.earlier,
            epochs,
        )
    }

    /// Returns true if this trial would also reach the last epoch of the training in `dir`, which
    /// may belong to another sweep.
    fn may_continue_from(&self, dir: &Path) -> bool {
        let Ok(history) = read_history(dir) else {
            return false;
        };
        (1..history.len()).all(|epochs| !self.ends_by_plan(&history[..epochs]))
    }

    /// Continues from the checkpoint of an earlier attempt, or of the rung below.
    fn adopt_checkpoint(&self, key: &str) -> Result<()> {
        if training::checkpoint_key(&self.dir).is_some() {
            return Ok(());
        }

        let entry = self.attempt.entry;
        let published = trial_dir(&self.sweep.dir, entry.next_item().trial);
        let mut earlier = self.queue.other_attempt_dirs(entry)?;
        earlier.push(published.clone());
        earlier.retain(|dir| {
            training::checkpoint_key(dir).as_deref() == Some(key) && self.may_continue_from(dir)
        });

        match earlier.iter().max_by_key(|dir| trained_epochs(dir)) {
            // The result of the rung below counts until this rung has ended, so its files are kept.
            Some(earlier) if *earlier == published => training::copy_checkpoint(earlier, &self.dir),
            // No other worker uses this directory, because its worker has lost the lease or has
            // given it back.
            Some(earlier) => {
                files::remove_all([self.dir.clone()])?;
                Ok(fs_err::rename(earlier, &self.dir)?)
            }
            None => Ok(()),
        }
    }
}

/// Returns the digest of everything that determines a training on `dataset`, and stores it in
/// `row`.
pub(crate) fn set_network_key(
    row: &mut TrialRow,
    settings: &TrainingSettings,
    dataset: &Dataset,
) -> Result<String> {
    let key = training_key(settings, &dataset.key)?;
    row.key = Some(key.clone());
    row.tensors_key = Some(dataset.key.clone());
    Ok(key)
}

/// Records the result of the training in `dir` in `row`. A training whose loss was NaN or infinite
/// also has a history.
pub(crate) fn record_training(
    row: &mut TrialRow,
    dir: &Path,
    trained: Result<TrainingResult, TrainError>,
) -> Result<(), TrainError> {
    if let Err(TrainError::NonFinite(loss)) = trained {
        let result = TrainingResult::read(dir)?;
        row.set_training(result.metrics, &result.history);
        return Err(TrainError::NonFinite(loss));
    }

    let result = trained?;
    row.set_training(result.metrics, &result.history);
    Ok(())
}
