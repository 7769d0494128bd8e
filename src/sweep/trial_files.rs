//! Attempts at trials that count → the trials' files, and which of them stay.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::choice::MOST_COMPARED;
use super::folder::{SweepFolder, queue_dir};
use super::kept_trials::{ComparisonGroup, KeptTrials};
use super::network_draws::network_trial_count;
use super::pipeline_fit::{self, FIT};
use super::rounds;
use super::trial_row::TrialRow;
use crate::queue::{ChunkEntry, Queue};
use crate::training::{RUN, Status};
use crate::{files, manifest, training};

/// The trials whose directories stand in `trials/` itself; those of later ones stand in `thousands/` there, a thousand in each
/// directory, so that none has too many entries.
const FLAT: usize = 999;

/// The directory of a trial in the sweep directory `out`.
pub fn trial_dir(out: &Path, trial: usize) -> PathBuf {
    let name = format!("trial-{trial:04}");
    match trial <= FLAT {
        true => out.join("trials").join(name),
        false => thousands(out)
            .join(format!("{:04}", trial / 1000))
            .join(name),
    }
}

fn thousands(out: &Path) -> PathBuf {
    out.join("trials").join("thousands")
}

/// The directories of trials in the sweep directory `out` that there are.
pub(super) fn trial_dirs(out: &Path) -> Result<Vec<(usize, PathBuf)>> {
    let entries = |dir: PathBuf| -> Result<Vec<PathBuf>> {
        let found = if dir.is_dir() {
            Some(fs_err::read_dir(dir)?)
        } else {
            None
        };
        found
            .into_iter()
            .flatten()
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    let mut paths = entries(out.join("trials"))?;
    for thousand in entries(thousands(out))? {
        paths.extend(entries(thousand)?);
    }
    let number = |path: &Path| {
        path.file_name()?
            .to_str()?
            .strip_prefix("trial-")?
            .parse()
            .ok()
    };
    let trials = paths
        .into_iter()
        .filter_map(|path| Some((number(&path)?, path)));
    Ok(trials
        .filter(|(trial, path)| trial_dir(out, *trial) == *path)
        .collect())
}

/// Gives the directory of an acknowledged attempt the trial's name, in place of what an earlier sweep left there.
pub(super) fn publish(
    sweep: &SweepFolder,
    queue: &Queue,
    entry: &ChunkEntry,
    row: &TrialRow,
) -> Result<()> {
    let from = queue.work_dir(entry);
    let to = trial_dir(&sweep.dir, entry.next_item().trial);
    let found = || manifest::finished_key(&to, RUN).or_else(|| manifest::finished_key(&to, FIT));
    let is_anothers = || row.key.is_none() || found().is_some_and(|key| Some(key) != row.key);
    take_place(
        &from,
        &to,
        &queue_dir(&sweep.dir).join(LOCK_FILE),
        is_anothers,
    )
}

/// In the queue, while a trial's directory takes the place of an older one.
const LOCK_FILE: &str = "publish.lock";

/// Renames `from` to `to` in place of what is there. Where there is no `from`, removes what is there if `is_anothers` says so.
///
/// A worker does this once its result counts, and the manager does it for workers that were killed in between. Where both
/// come at once, one of them does it, and the other finds it done.
fn take_place(from: &Path, to: &Path, lock: &Path, is_anothers: impl Fn() -> bool) -> Result<()> {
    // Removing and renaming are two steps. Without a lock, one process could remove what the other has just renamed.
    let locked = to.exists().then(|| files::open_to_append(lock));
    if let Some(Ok(lock)) = &locked
        && let Err(error) = lock.file().lock()
    {
        tracing::info!("cannot lock `{}`: {error}", lock.path().display());
    }

    let is_new = from.exists();
    if to.exists() && (is_new || is_anothers()) {
        fs_err::remove_dir_all(to)?;
    }
    if is_new {
        to.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        match fs_err::rename(from, to) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && to.exists() => {}
            renamed => renamed?,
        }
    }
    Ok(())
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

/// The files of the trials that one worker ends: of those that can no longer be among the best they go as it goes.
#[derive(Debug)]
pub(super) struct TrialFiles<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    kept: RefCell<Option<KeptTrials>>,
    /// Whether the predictions of all trials are compared in the end.
    compares: Cell<Option<bool>>,
}

impl<'a> TrialFiles<'a> {
    pub(super) fn new(sweep: &'a SweepFolder, queue: &'a Queue) -> TrialFiles<'a> {
        TrialFiles {
            sweep,
            queue,
            kept: RefCell::new(None),
            compares: Cell::new(None),
        }
    }

    /// What is kept of the fit of `trial`, which has a value if `rank` says so.
    pub(super) fn keeps(
        &self,
        kind: &ComparisonGroup,
        rank: Option<(f64, f64)>,
        trial: usize,
    ) -> Result<KeptFiles> {
        let may_be_best =
            rank.is_none_or(|rank| self.with_kept(|kept| kept.may_be_best(kind, rank, trial)));
        Ok(match may_be_best {
            true => KeptFiles::All,
            false if self.compares()? => KeptFiles::Predictions,
            false => KeptFiles::Row,
        })
    }

    /// Gives an acknowledged attempt its trial's name, and removes the files of the trial that is not among the best any more.
    pub(super) fn publish(&self, entry: &ChunkEntry, row: &TrialRow) -> Result<()> {
        publish(self.sweep, self.queue, entry, row)?;
        let dir = trial_dir(&self.sweep.dir, row.trial);
        let may_go_on = rounds::asha_of(&self.sweep.config).is_some()
            && row
                .metrics
                .as_ref()
                .is_some_and(|metrics| metrics.status == Status::TerminatedEarly);
        if row.fit.is_none() && !may_go_on {
            training::remove_checkpoint(&dir)?;
        }
        let Some(rank) = row.rank() else {
            return Ok(());
        };
        let kind = (row.fit.is_some(), row.split.clone());
        match self.with_kept(|kept| kept.add(kind, rank, row.trial)) {
            Some(trial) => self.drop_files(row.fit.is_some(), &trial_dir(&self.sweep.dir, trial)),
            None => Ok(()),
        }
    }

    fn drop_files(&self, is_fit: bool, dir: &Path) -> Result<()> {
        match is_fit {
            true if self.compares()? => pipeline_fit::remove_model(dir),
            true => files::remove_all([dir.to_owned()]),
            // What trials are compared by may follow from the model; and a trial may go on from a rung.
            false
                if !self.sweep.config.pipelines.is_empty()
                    || rounds::asha_of(&self.sweep.config).is_some() =>
            {
                Ok(())
            }
            false => training::remove_model(dir),
        }
    }

    fn with_kept<T>(&self, ask: impl FnOnce(&mut KeptTrials) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        // Said by the manager before it added the first trial.
        let new = || {
            KeptTrials::new(
                self.sweep.config.wandb.sweep.metric.goal,
                self.queue.kept_trials().unwrap_or(usize::MAX),
            )
        };
        ask(kept.get_or_insert_with(new))
    }

    fn compares(&self) -> Result<bool> {
        if let Some(compares) = self.compares.get() {
            return Ok(compares);
        }
        let compared =
            self.sweep.trials()?.fits_of_split() + network_trial_count(&self.sweep.config)?;
        self.compares.set(Some(compared <= MOST_COMPARED));
        Ok(compared <= MOST_COMPARED)
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
            crate::files::write_atomic(&dir.join(name), b"").expect("written");
        };
        for _ in 0..200 {
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

    #[test]
    fn no_directory_of_trials_has_more_than_a_thousand_entries() {
        let out = tempfile::tempdir().expect("a directory");
        let all = [1, 999, 1000, 1001, 1999, 2000, 496_400, 1_000_000];
        for trial in all {
            fs_err::create_dir_all(trial_dir(out.path(), trial)).expect("made");
        }
        let mut found = trial_dirs(out.path()).expect("listed");
        found.sort();
        assert_eq!(
            found,
            all.map(|trial| (trial, trial_dir(out.path(), trial)))
        );
        let parents = (1..=1_000_000).map(|trial| trial_dir(Path::new(""), trial));
        let mut entries = std::collections::BTreeMap::<PathBuf, usize>::new();
        for dir in parents {
            *entries
                .entry(dir.parent().expect("a parent").to_owned())
                .or_default() += 1;
        }
        assert!(entries.values().all(|count| *count <= 1000));
        assert!(entries[Path::new("trials")] < 1000 && entries.len() <= 1001);
    }
}
