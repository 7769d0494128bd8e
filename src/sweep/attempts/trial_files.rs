//! The files of trials: moves the files of counted attempts to the trials' names, and removes those
//! that need not be kept.

use std::cell::{Cell, RefCell};
use std::path::Path;

use anyhow::Result;

use super::kept_trials::{ComparisonGroup, KeptTrials, MAX_COMPARED_TRIALS};
use super::pipeline_fit;
use crate::config::TrialSource;
use crate::plan::SweepFolder;
use crate::plan::TrialRow;
use crate::plan::network_trial_count;
use crate::plan::{publish_lock_file, trial_dir};
use poolcast_base::{files, manifest};
use poolcast_holds::training;
use poolcast_holds::training::{FIT, FitScores, RUN_FORMAT, TrainingStatus};
use poolcast_provision::wait_model::WAIT_MODEL_FORMAT;
use poolcast_queue::{ChunkEntry, Queue};

/// Moves the directory of an acknowledged attempt to the trial's name. Replaces the files of an
/// earlier sweep there.
pub(crate) fn publish_attempt(
    sweep: &SweepFolder,
    queue: &Queue,
    entry: &ChunkEntry,
    row: &TrialRow,
) -> Result<()> {
    let from = queue.work_dir(entry);
    let to = trial_dir(&sweep.dir, entry.next_item().trial);

    let is_of_another_trial = || {
        let formats = [RUN_FORMAT, FIT, WAIT_MODEL_FORMAT].into_iter();
        let found = formats
            .filter_map(|format| manifest::finished_key(&to, format))
            .next();
        row.key.is_none() || found.is_some_and(|key| Some(key) != row.key)
    };
    replace_directory(
        &from,
        &to,
        &publish_lock_file(&sweep.dir),
        is_of_another_trial,
    )
}

/// Renames `from` to `to`, and replaces an existing `to`. If `from` does not exist, removes `to` if
/// `is_anothers` returns true.
///
/// A worker calls this once its result counts. The manager calls it for workers that were killed in
/// between. If both call it at the same time, one of them does the work, and the other finds it
/// done.
fn replace_directory(
    from: &Path,
    to: &Path,
    lock: &Path,
    is_anothers: impl Fn() -> bool,
) -> Result<()> {
    if !to.exists() {
        return rename_unless_done(from, to);
    }

    // Removing and renaming are two steps. Without a lock, one process could remove the directory
    // that another has just renamed. So a process that finds an existing `to` takes the lock and
    // checks again. A process that finds none removes nothing.
    let locked = files::open_to_append(lock);
    if let Ok(lock) = &locked
        && let Err(error) = lock.file().lock()
    {
        tracing::info!("cannot lock `{}`: {error}", lock.path().display());
    }
    let is_new = from.exists();
    if to.exists() && (is_new || is_anothers()) {
        fs_err::remove_dir_all(to)?;
    }
    rename_unless_done(from, to)
}

/// Renames `from` to `to`, unless another process was first.
fn rename_unless_done(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs_err::create_dir_all)?;
    match fs_err::rename(from, to) {
        Err(_) if !from.exists() => Ok(()),
        renamed => Ok(renamed?),
    }
}

/// The files of a fit that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFiles {
    /// The model and its predictions.
    All,
    /// Its predictions. The corrected score of the best trial depends on the predictions of all
    /// trials.
    Predictions,
    /// No file; only the row in the results.
    Row,
}

/// The files of the trials that one worker ends. During its work it removes the files of trials
/// that can no longer be among the best.
#[derive(Debug)]
pub(crate) struct TrialFiles<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    kept: RefCell<Option<KeptTrials>>,
    /// True if the predictions of all trials are compared at the end; `None` until it is computed.
    compares_predictions: Cell<Option<bool>>,
}

impl<'a> TrialFiles<'a> {
    pub(crate) fn new(sweep: &'a SweepFolder, queue: &'a Queue) -> TrialFiles<'a> {
        TrialFiles {
            sweep,
            queue,
            kept: RefCell::new(None),
            compares_predictions: Cell::new(None),
        }
    }

    /// Decides which files of the fit of `trial` are kept. `rank` is `None` if it has no value.
    pub(crate) fn files_to_keep(
        &self,
        group: &ComparisonGroup,
        rank: Option<(f64, f64)>,
        trial: usize,
    ) -> Result<KeptFiles> {
        let may_be_best = match rank {
            Some(rank) => self.with_kept_trials(|kept| kept.may_be_best(group, rank, trial)),
            None => true,
        };

        if may_be_best {
            Ok(KeptFiles::All)
        } else if self.compares_predictions()? {
            Ok(KeptFiles::Predictions)
        } else {
            Ok(KeptFiles::Row)
        }
    }

    /// The scores of the fit of `trial` that an earlier sweep left, if it has this `key`.
    pub(crate) fn finished_fit(&self, trial: usize, key: &str) -> Option<FitScores> {
        pipeline_fit::finished_scores(&trial_dir(&self.sweep.dir, trial), key)
    }

    /// Moves an acknowledged attempt to its trial's name. Then removes the files of the trial that
    /// is no longer among the best.
    pub(crate) fn publish_trial(&self, entry: &ChunkEntry, row: &TrialRow) -> Result<()> {
        publish_attempt(self.sweep, self.queue, entry, row)?;
        // The files of a program belong to the user.
        if self.sweep.config.trial_source() == TrialSource::Command {
            return Ok(());
        }

        // A network at a rung of ASHA keeps its checkpoint, because the trial may be promoted and
        // then continues from there.
        let is_fit = row.fit.is_some();
        let may_be_promoted = self.sweep.config.wandb.sweep.asha().is_some()
            && row
                .metrics
                .as_ref()
                .is_some_and(|metrics| metrics.status == TrainingStatus::TerminatedEarly);
        if !is_fit && !may_be_promoted {
            training::remove_checkpoint(&trial_dir(&self.sweep.dir, row.trial))?;
        }

        let Some(rank) = row.rank() else {
            return Ok(());
        };
        let group = ComparisonGroup {
            is_fit,
            split: row.split.clone(),
        };
        match self.with_kept_trials(|kept| kept.add(group, rank, row.trial)) {
            Some(trial) => self.remove_files(is_fit, &trial_dir(&self.sweep.dir, trial)),
            None => Ok(()),
        }
    }

    /// Removes the files that a trial does not need if it is not among the best.
    fn remove_files(&self, is_fit: bool, dir: &Path) -> Result<()> {
        if self.sweep.config.trial_source() == TrialSource::WaitSamples {
            return files::remove_all([dir.to_owned()]);
        }
        if is_fit {
            return if self.compares_predictions()? {
                pipeline_fit::remove_model(dir)
            } else {
                files::remove_all([dir.to_owned()])
            };
        }

        // The comparison with pipelines may need the model, and the trial may continue from its
        // rung.
        let is_needed = !self.sweep.config.pipelines.is_empty()
            || self.sweep.config.wandb.sweep.asha().is_some();
        if is_needed {
            return Ok(());
        }
        training::remove_model(dir)
    }

    fn with_kept_trials<T>(&self, ask: impl FnOnce(&mut KeptTrials) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        // The manager sets the number of kept trials before it adds the first trial.
        let new = || {
            KeptTrials::new(
                self.sweep.config.wandb.sweep.metric.goal,
                self.queue.kept_trials().unwrap_or(usize::MAX),
            )
        };
        ask(kept.get_or_insert_with(new))
    }

    fn compares_predictions(&self) -> Result<bool> {
        if let Some(compares) = self.compares_predictions.get() {
            return Ok(compares);
        }

        let fits = self.sweep.trials()?.fits_per_split();
        let networks = network_trial_count(&self.sweep.config)?;
        let compares = fits + networks <= MAX_COMPARED_TRIALS;
        self.compares_predictions.set(Some(compares));
        Ok(compares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_publishers_keep_each_others_files() {
        let out = tempfile::tempdir().expect("a directory");
        let path = |name: &str| out.path().join(name);
        let (from, to, lock) = (path("from"), path("to"), path("lock"));
        let write = |dir: &Path, name: &str| {
            fs_err::create_dir_all(dir).expect("made");
            poolcast_base::files::write_atomic(&dir.join(name), b"").expect("written");
        };
        for _ in 0..400 {
            write(&to, "old");
            for name in ["manifest.json", "model.safetensors", "history.jsonl"] {
                write(&from, name);
            }
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        replace_directory(&from, &to, &lock, || false).expect("published")
                    });
                }
            });
            assert!(!from.exists() && !to.join("old").exists());
            assert_eq!(fs_err::read_dir(&to).expect("listed").count(), 3);
            fs_err::remove_dir_all(&to).expect("removed");
        }
    }
}
