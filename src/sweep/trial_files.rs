//! Attempts at trials that count → the trials' files, and which of them stay.

use std::cell::{Cell, RefCell};
use std::path::Path;

use anyhow::Result;

use super::folder::SweepFolder;
use super::kept_trials::{ComparisonGroup, KeptTrials, MOST_COMPARED};
use super::network_draws::network_trial_count;
use super::paths::{publish_lock_file, trial_dir};
use super::pipeline_fit;
use super::rounds;
use super::trial_row::TrialRow;
use poolcast_config::TrialSource;
use poolcast_provision::wait_model::WAIT_MODEL_FORMAT;
use poolcast_queue::{ChunkEntry, Queue};
use poolcast_holds::training::{FIT, FitScores, RUN_FORMAT, TrainingStatus};
use poolcast_base::{files, manifest};
use poolcast_holds::training;

/// Gives the directory of an acknowledged attempt the trial's name, in place of what an earlier
/// sweep left there.
pub(super) fn publish_attempt(
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
    take_place(
        &from,
        &to,
        &publish_lock_file(&sweep.dir),
        is_of_another_trial,
    )
}

/// Renames `from` to `to` in place of what is there. Where there is no `from`, removes what is
/// there if `is_anothers` says so.
///
/// A worker does this once its result counts, and the manager does it for workers that were killed
/// in between. Where both come at once, one of them does it, and the other finds it done.
fn take_place(from: &Path, to: &Path, lock: &Path, is_anothers: impl Fn() -> bool) -> Result<()> {
    if !to.exists() {
        return rename_first(from, to);
    }

    // Removing and renaming are two steps. Without a lock, one process could remove what another
    // has just renamed. So whoever finds something there takes the lock and looks again; whoever
    // finds nothing removes nothing.
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
    rename_first(from, to)
}

/// Renames `from` to `to`, unless another process was first.
fn rename_first(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs_err::create_dir_all)?;
    match fs_err::rename(from, to) {
        Err(_) if !from.exists() => Ok(()),
        renamed => Ok(renamed?),
    }
}

/// What is kept of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptFiles {
    /// The model and what it predicted.
    All,
    /// What it predicted: what the best is worth without luck follows from the predictions of all.
    Predictions,
    /// Its row.
    Row,
}

/// The files of the trials that one worker ends. It removes those of trials that can no longer be
/// among the best as it goes.
#[derive(Debug)]
pub(super) struct TrialFiles<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    kept: RefCell<Option<KeptTrials>>,
    /// Whether the predictions of all trials are compared in the end.
    compares_predictions: Cell<Option<bool>>,
}

impl<'a> TrialFiles<'a> {
    pub(super) fn new(sweep: &'a SweepFolder, queue: &'a Queue) -> TrialFiles<'a> {
        TrialFiles {
            sweep,
            queue,
            kept: RefCell::new(None),
            compares_predictions: Cell::new(None),
        }
    }

    /// What is kept of the fit of `trial`, which has a value if `rank` says so.
    pub(super) fn files_to_keep(
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
    pub(super) fn finished_fit(&self, trial: usize, key: &str) -> Option<FitScores> {
        pipeline_fit::finished_scores(&trial_dir(&self.sweep.dir, trial), key)
    }

    /// Gives an acknowledged attempt its trial's name, and removes the files of the trial that is
    /// no longer among the best.
    pub(super) fn publish_trial(&self, entry: &ChunkEntry, row: &TrialRow) -> Result<()> {
        publish_attempt(self.sweep, self.queue, entry, row)?;

        // Of a network at a rung of ASHA the checkpoint stays: the trial may be promoted, and then
        // goes on from there.
        let is_fit = row.fit.is_some();
        let may_be_promoted = rounds::asha_settings(&self.sweep.config).is_some()
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

    /// Removes what need not stay of a trial that is not among the best.
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

        // What pipelines are compared with may follow from the model; and a trial may go on from
        // its rung.
        let is_needed = !self.sweep.config.pipelines.is_empty()
            || rounds::asha_settings(&self.sweep.config).is_some();
        if is_needed {
            return Ok(());
        }
        training::remove_model(dir)
    }

    fn with_kept_trials<T>(&self, ask: impl FnOnce(&mut KeptTrials) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        // The manager says how many are kept before it adds the first trial.
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
        let compares = fits + networks <= MOST_COMPARED;
        self.compares_predictions.set(Some(compares));
        Ok(compares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_that_publish_a_trial_none_removes_what_another_has_named() {
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
                    scope.spawn(|| take_place(&from, &to, &lock, || false).expect("published"));
                }
            });
            assert!(!from.exists() && !to.join("old").exists());
            assert_eq!(fs_err::read_dir(&to).expect("listed").count(), 3);
            fs_err::remove_dir_all(&to).expect("removed");
        }
    }
}
