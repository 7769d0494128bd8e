//! Some trials of a sweep, one after another, in a directory that travels from machine to machine → their rows.
//!
//! What a job of a DAG does: no queue and no other worker is there. A trial that has a row is done. What is at work stands in
//! `work/`, and takes the trial's name in `trials/` once it has ended, so that whoever carries the directory away sees which is
//! which.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use super::deadline::AttemptDeadline;
use super::folder::SweepFolder;
use super::paths::{tensors_dir, trial_dir};
use super::pipeline_fit::{FitTables, PipelineTask};
use super::trial_data;
use super::trial_row::{TrialEnd, TrialRow};
use super::trials::check_pipeline;
use crate::config::Config;
use crate::models::Device;
use crate::queue::{AttemptOutcome, ChunkEntry, WorkItem};
use crate::tensors::{self, Dataset};
use crate::training::{
    self, Epoch, Metrics, Mode, NonFinite, Progress, Status, read_history, train_until,
};
use crate::{files, manifest};

/// The rows of a part, in its directory: one JSON document a line.
pub const PART_ROWS: &str = "rows.jsonl";

/// The trials that were begun and have neither ended nor been given up, in the part's directory.
const BEGUN: &str = "begun.json";

/// Rows are written so often, and whenever the part is left.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How a part goes about its trials.
#[derive(Debug)]
pub struct Part<'a> {
    /// The sweep, whose directory holds the tensors or the joined tables.
    pub sweep: &'a SweepFolder,
    /// The directory that travels.
    pub dir: &'a Path,
    /// Who works, as rows name it.
    pub worker: String,
    /// What networks are trained on.
    pub device: &'a Device,
    /// A training is left after so many epochs, for the next job of a chain.
    pub until_epoch: usize,
    /// Set, the part is left at once.
    pub stop: &'a AtomicBool,
    /// When the part is left: between two batches of a training, or after the fit at work.
    pub leave: Option<Instant>,
}

/// How a part was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEnd {
    /// Every trial has a row, or has gone as far as it is to go.
    Over,
    /// It was told to leave, or its time was over, and goes on where it stopped.
    Left,
}

/// The rows that the part in `dir` has so far.
pub fn part_rows(dir: &Path) -> Result<Vec<TrialRow>> {
    let path = dir.join(PART_ROWS);
    if path.is_file() {
        manifest::read_json_lines(&path)
    } else {
        Ok(Vec::new())
    }
}

/// The trainings of networks that the part in `dir` was left in, each with the epochs that it has gone through.
pub fn part_at_work(dir: &Path) -> Vec<(usize, usize)> {
    let entries = fs_err::read_dir(dir.join("work"))
        .into_iter()
        .flatten()
        .flatten();
    let epochs = |entry: fs_err::DirEntry| {
        let trial = entry
            .file_name()
            .to_str()?
            .strip_prefix("trial-")?
            .parse()
            .ok()?;
        Some((trial, read_history(&entry.path()).ok()?.len()))
    };
    entries.filter_map(epochs).collect()
}

/// What rows are learned from, kept for the trials that share them.
#[derive(Default)]
struct Sources {
    dataset: Option<(PathBuf, Dataset)>,
    rows: Option<(String, FitTables)>,
}

impl Part<'_> {
    /// Does those of `trials` that have no row yet. `ended` hears of each row, `progress` of each epoch with its trial.
    ///
    /// # Errors
    /// Fails with what is no trial's fault, such as a full disk; the same call goes on from there.
    pub fn run(
        &self,
        trials: &[usize],
        progress: impl Fn(usize, &Epoch) + Sync,
        ended: impl Fn(&TrialRow),
    ) -> Result<PartEnd> {
        fs_err::create_dir_all(self.dir)?;
        let mut rows = self.known(trials)?;
        let mut begun = self.begun()?;
        let mut left: Vec<usize> = trials
            .iter()
            .copied()
            .filter(|trial| !rows.contains_key(trial))
            .collect();
        // A job may have died of a trial. The others come first, so that it takes no result but its own.
        left.sort_by_key(|trial| (begun.contains(trial), *trial));

        let (mut sources, mut saved) = (Sources::default(), Instant::now());
        let mut outcome = Ok(PartEnd::Over);
        for trial in left {
            if self.is_time() {
                outcome = Ok(PartEnd::Left);
                break;
            }
            begun.insert(trial);
            self.note_begun(&begun)?;
            let attempt = self.attempt(trial, &mut sources, &progress);
            begun.remove(&trial);
            match attempt {
                Ok(Attempted::Ended(row)) => {
                    ended(&row);
                    rows.insert(trial, *row);
                }
                Ok(Attempted::FarEnough) => {}
                Ok(Attempted::Left) => {
                    outcome = Ok(PartEnd::Left);
                    break;
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            if saved.elapsed() > SAVE_EVERY {
                self.save(&rows)?;
                saved = Instant::now();
            }
        }
        self.note_begun(&begun)?;
        self.save(&rows)?;
        outcome
    }

    /// The rows of earlier attempts that still are what would come of their trials.
    fn known(&self, trials: &[usize]) -> Result<BTreeMap<usize, TrialRow>> {
        let wanted: BTreeSet<usize> = trials.iter().copied().collect();
        let mut known = BTreeMap::new();
        for row in part_rows(self.dir)? {
            if wanted.contains(&row.trial) {
                known.insert(row.trial, row);
            }
        }
        Ok(known)
    }

    fn begun(&self) -> Result<BTreeSet<usize>> {
        let path = self.dir.join(BEGUN);
        // A file that was cut short says nothing, and nothing depends on it but an order.
        Ok(if path.is_file() {
            manifest::read_json(&path).unwrap_or_default()
        } else {
            BTreeSet::new()
        })
    }

    /// Not synced: it has to outlast this process, and not the machine.
    fn note_begun(&self, begun: &BTreeSet<usize>) -> Result<()> {
        Ok(fs_err::write(
            self.dir.join(BEGUN),
            serde_json::to_vec(begun)?,
        )?)
    }

    fn save(&self, rows: &BTreeMap<usize, TrialRow>) -> Result<()> {
        manifest::write_json_lines(
            &self.dir.join(PART_ROWS),
            &rows.values().collect::<Vec<_>>(),
        )
    }

    fn is_time(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.leave.is_some_and(|leave| Instant::now() >= leave)
    }

    /// Where `trial` stands while it is at work.
    fn work_dir(&self, trial: usize) -> PathBuf {
        self.dir.join("work").join(format!("trial-{trial:04}"))
    }

    fn attempt(
        &self,
        trial: usize,
        sources: &mut Sources,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<Attempted> {
        let config = self.sweep.trials()?.draw(trial, &[])?;
        let task = PipelineTask::from_config(&config)?;
        let budget = if task.is_some() { 1 } else { config.epochs };
        let mut row = TrialRow::begin(
            &ChunkEntry::new(WorkItem { trial, budget }),
            &self.worker,
            &config,
        )?;
        let deadline = AttemptDeadline {
            began: Instant::now(),
            limit: Duration::MAX,
            stop: self.stop,
            attempt: None,
        };
        if let Err(error) = check(&config) {
            return Ok(Attempted::of(deadline.fail(row, TrialEnd::Invalid, &error)));
        }
        // Data that is not found is no fault of the trial, but of the whole part.
        sources.load(self.sweep, &config)?;

        let reached = catch_unwind(AssertUnwindSafe(|| match &task {
            Some(task) => self.fitted(&mut row, task, &config, sources, deadline),
            None => self.trained(&mut row, &config, sources, progress),
        }));
        let outcome =
            match reached.unwrap_or_else(|_| Err(anyhow!("it panicked, and said why on stderr"))) {
                Ok(Reached::FarEnough) => return Ok(Attempted::FarEnough),
                Ok(Reached::End) => Ok(()),
                Err(error) => Err(error),
            };
        let attempted = Attempted::of(deadline.end_attempt(row, outcome)?);
        if let Attempted::Ended(row) = &attempted {
            self.publish(trial, row)?;
        }
        Ok(attempted)
    }

    /// Gives what was at work the trial's name, without its checkpoint, which is several times the model and would travel
    /// for nothing. Of a trial without a model nothing stays but its row.
    fn publish(&self, trial: usize, row: &TrialRow) -> Result<()> {
        let (from, to) = (self.work_dir(trial), trial_dir(self.dir, trial));
        if row.ended != TrialEnd::Done {
            return files::remove_all([from]);
        }
        training::remove_checkpoint(&from)?;
        files::remove_all([to.clone()])?;
        fs_err::create_dir_all(to.parent().context("a trial stands in a directory")?)?;
        Ok(fs_err::rename(from, to)?)
    }

    fn fitted(
        &self,
        row: &mut TrialRow,
        task: &PipelineTask,
        config: &Config,
        sources: &mut Sources,
        deadline: AttemptDeadline<'_>,
    ) -> Result<Reached> {
        let rows = sources.rows(self.sweep, config)?;
        let key = task.key(rows)?;
        (row.key, row.tensors_key) = (Some(key.clone()), Some(rows.key.clone()));
        let fit = task.fit(rows, &|| deadline.has_passed())?;
        fit.write(&self.work_dir(row.trial), config, &key)?;
        row.value = fit.scores.watched(config.wandb.sweep.metric.name);
        (row.fit, row.fit_seconds) = (Some(fit.scores), fit.seconds);
        Ok(Reached::End)
    }

    fn trained(
        &self,
        row: &mut TrialRow,
        config: &Config,
        sources: &mut Sources,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<Reached> {
        let settings = training::Settings::of(config)?;
        let (trial, dir) = (row.trial, self.work_dir(row.trial));
        let dataset = sources.dataset(self.sweep, config)?;
        (row.key, row.tensors_key) = (Some(settings.key(&dataset.key)?), Some(dataset.key.clone()));
        let hear = |news: Progress<'_>| {
            if let Progress::Epoch(epoch) = news {
                progress(trial, epoch);
            }
            if self.is_time() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let ends = |epochs: &[Epoch]| epochs.len() >= self.until_epoch;
        let trained = train_until(dataset, config, &dir, Mode::Resume, self.device, ends, hear);
        let metrics = match trained {
            Ok(run) if run.metrics.status == Status::TerminatedEarly => {
                return Ok(Reached::FarEnough);
            }
            Ok(run) => run.metrics,
            Err(error) if error.is::<NonFinite>() => {
                row.set_training(Metrics::read(&dir)?, &read_history(&dir)?);
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        row.set_training(metrics, &read_history(&dir)?);
        Ok(Reached::End)
    }
}

/// What came of an attempt.
enum Attempted {
    /// The trial is over.
    Ended(Box<TrialRow>),
    /// It is left to the next job of a chain.
    FarEnough,
    /// It was told to leave.
    Left,
}

impl Attempted {
    fn of(ended: AttemptOutcome<TrialRow>) -> Attempted {
        match ended {
            AttemptOutcome::Done(row) => Attempted::Ended(Box::new(row)),
            AttemptOutcome::Stopped => Attempted::Left,
        }
    }
}

/// How far a training or a fit has come.
enum Reached {
    End,
    FarEnough,
}

/// Fails for parameters that cannot be used.
fn check(config: &Config) -> Result<()> {
    if !config.pipelines.is_empty() {
        return check_pipeline(config);
    }
    tensors::TensorSettings::from_config(config)
        .and(training::Settings::of(config))
        .map(drop)
}

impl Sources {
    fn load(&mut self, sweep: &SweepFolder, config: &Config) -> Result<()> {
        match config.pipelines.is_empty() {
            true => self.dataset(sweep, config).map(drop),
            false => self.rows(sweep, config).map(drop),
        }
    }

    fn dataset(&mut self, sweep: &SweepFolder, config: &Config) -> Result<&Dataset> {
        let dir = tensors_dir(&sweep.dir, config)?;
        let kept = self.dataset.take().filter(|(known, _)| *known == dir);
        let (_, dataset) = match kept {
            Some(kept) => self.dataset.insert(kept),
            None => self
                .dataset
                .insert((dir, trial_data::trial_dataset(sweep, config)?)),
        };
        Ok(dataset)
    }

    fn rows(&mut self, sweep: &SweepFolder, config: &Config) -> Result<&FitTables> {
        let name = match config.data.is_given() {
            true => config.data.split_names.join(","),
            false => tensors_dir(&sweep.dir, config)?
                .to_string_lossy()
                .into_owned(),
        };
        let kept = self.rows.take().filter(|(known, _)| *known == name);
        let (_, rows) = match kept {
            Some(kept) => self.rows.insert(kept),
            None => self
                .rows
                .insert((name, trial_data::fit_tables(sweep, config)?)),
        };
        Ok(rows)
    }
}
