//! Runs some trials of a sweep, one after another, in a directory that travels between machines.
//!
//! A job of a DAG does this, without a queue and without other workers. A trial with a row has
//! ended. The files of a trial are in `work/` while it runs. Once it has ended, they are moved to
//! its name in `trials/`. Thus the transfer of the directory can tell ended trials from running
//! ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::deadline::{AttemptDeadline, AttemptError};
use super::network_attempt::{TrainingResult, record_training, set_network_key};
use super::pipeline_attempt::PipelineAttempt;
use super::pipeline_fit::{FitTables, PipelineTask};
use super::trial_data::SharedData;
use crate::plan::SweepFolder;
use crate::plan::trial_dir;
use crate::plan::{EndedTrial, TrialEnd, TrialRow, whole_budget};
use crate::plan::{TrialConfig, TrialModel};
use poolcast_base::{files, manifest};
use poolcast_holds::config::TrainingSettings;
use poolcast_holds::training::{
    self, Epoch, RunLocation, StartMode, TrainingStatus, TrainingUpdate, read_history, train_until,
};
use poolcast_models::Device;
use poolcast_queue::{AttemptOutcome, ChunkEntry, WorkItem};
use poolcast_tensors::Dataset;

/// The file of a part's rows, in the part's directory: one JSON document per line.
pub const PART_ROWS_FILE: &str = "rows.jsonl";

/// The file of the trials that were begun, and have neither ended nor been given up; in the part's
/// directory.
const BEGUN_FILE: &str = "begun.json";

/// Interval between writes of the rows. They are also written when the part is left.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The trials of a part, and how they are run.
#[derive(Debug)]
pub struct SweepPart<'a> {
    /// The sweep, whose directory holds the tensors or the joined tables.
    pub sweep: &'a SweepFolder,
    /// The directory that travels between machines.
    pub dir: &'a Path,
    /// The worker's name, as in rows.
    pub worker: String,
    /// The device that networks are trained on.
    pub device: &'a Device,
    /// Number of epochs after which a training is left for the next job of a chain.
    pub until_epoch: usize,
    /// A flag that, once set, makes the part stop at once.
    pub stop: &'a AtomicBool,
    /// The time to leave the part: between two batches of a training, or after the running fit.
    pub leave: Option<Instant>,
}

/// The reason why a part was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEnd {
    /// Every trial has a row, or the number of epochs that it should have after this job.
    Over,
    /// The part was asked to stop, or its time was over. The next run continues from here.
    Left,
}

/// Reads the rows that the part in `dir` has so far.
pub fn part_rows(dir: &Path) -> Result<Vec<EndedTrial>> {
    let path = dir.join(PART_ROWS_FILE);
    if path.is_file() {
        manifest::read_json_lines(&path)
    } else {
        Ok(Vec::new())
    }
}

/// The unfinished network trainings of the part in `dir`: each trial with its number of finished
/// epochs.
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

impl SweepPart<'_> {
    /// Runs the trials in `trials` that have no row yet. Calls `ended` with each row, and
    /// `progress` with each epoch and its trial.
    ///
    /// # Errors
    /// Fails with errors that no trial causes, such as a full disk. The same call continues from
    /// there.
    pub fn run(
        &self,
        trials: &[usize],
        progress: impl Fn(usize, &Epoch) + Sync,
        ended: impl Fn(&TrialRow),
    ) -> Result<PartEnd> {
        fs_err::create_dir_all(self.dir)?;
        let mut rows = self.known_rows(trials)?;
        let mut begun = self.begun_trials()?;
        let mut left: Vec<usize> = trials
            .iter()
            .copied()
            .filter(|trial| !rows.contains_key(trial))
            .collect();
        // An earlier job may have died of a trial that it had begun. Such trials come last, so that
        // they cost no results but their own.
        left.sort_by_key(|trial| (begun.contains(trial), *trial));

        let data = SharedData::default();
        let mut saved_at = Instant::now();
        let mut end = Ok(PartEnd::Over);
        for trial in left {
            if self.must_leave() {
                end = Ok(PartEnd::Left);
                break;
            }

            begun.insert(trial);
            self.write_begun(&begun)?;
            let attempted = self.attempt_trial(trial, &data, &progress);
            begun.remove(&trial);

            match attempted {
                Ok(PartAttempt::Ended(row)) => {
                    ended(&row);
                    rows.insert(trial, row.result);
                }
                Ok(PartAttempt::EpochLimit) => {}
                Ok(PartAttempt::Left) => {
                    end = Ok(PartEnd::Left);
                    break;
                }
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
            if saved_at.elapsed() > SAVE_INTERVAL {
                self.write_rows(&rows)?;
                saved_at = Instant::now();
            }
        }

        self.write_begun(&begun)?;
        self.write_rows(&rows)?;
        end
    }

    /// The rows of earlier attempts at `trials`.
    fn known_rows(&self, trials: &[usize]) -> Result<BTreeMap<usize, EndedTrial>> {
        let wanted: BTreeSet<usize> = trials.iter().copied().collect();
        let mut known = BTreeMap::new();
        for row in part_rows(self.dir)? {
            if wanted.contains(&row.trial) {
                known.insert(row.trial, row);
            }
        }
        Ok(known)
    }

    fn begun_trials(&self) -> Result<BTreeSet<usize>> {
        let path = self.dir.join(BEGUN_FILE);
        // A truncated file counts as empty, because only the order of trials depends on it.
        Ok(if path.is_file() {
            manifest::read_json(&path).unwrap_or_default()
        } else {
            BTreeSet::new()
        })
    }

    /// Writes the begun trials without fsync, because the file only has to outlast this process,
    /// not the machine.
    fn write_begun(&self, begun: &BTreeSet<usize>) -> Result<()> {
        Ok(fs_err::write(
            self.dir.join(BEGUN_FILE),
            serde_json::to_vec(begun)?,
        )?)
    }

    fn write_rows(&self, rows: &BTreeMap<usize, EndedTrial>) -> Result<()> {
        manifest::write_json_lines(
            &self.dir.join(PART_ROWS_FILE),
            &rows.values().collect::<Vec<_>>(),
        )
    }

    fn must_leave(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.leave.is_some_and(|leave| Instant::now() >= leave)
    }

    /// The directory of `trial` while it runs.
    fn work_dir(&self, trial: usize) -> PathBuf {
        self.dir.join("work").join(format!("trial-{trial:04}"))
    }

    fn attempt_trial(
        &self,
        trial: usize,
        data: &SharedData,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<PartAttempt> {
        let written = self.sweep.trials()?.draw(trial)?;
        let item = WorkItem {
            trial,
            budget: whole_budget(&written),
        };
        let mut row = TrialRow::begin(&ChunkEntry::new(item), &self.worker, &written)
            .without_missing(&self.sweep.config);
        let deadline = AttemptDeadline {
            began: Instant::now(),
            limit: Duration::MAX,
            stop: self.stop,
            attempt: None,
        };
        let config = match TrialConfig::new(written) {
            Ok(config) => config,
            Err(error) => {
                let ended = deadline.fail(row, TrialEnd::Invalid, &error);
                return Ok(PartAttempt::from_outcome(ended));
            }
        };

        // Missing data is an error of the whole part, not of this trial.
        let work = self.load_work(&config, data)?;

        let reached = catch_unwind(AssertUnwindSafe(|| match work {
            PartWork::Fit(task, tables) => {
                self.fit_pipeline(&mut row, task, &tables, &config, deadline)
            }
            PartWork::Train(settings, dataset) => {
                self.train_network(&mut row, settings, &dataset, &config, progress)
            }
        }));
        let panicked = || AttemptError::Other(anyhow!("it panicked; the reason is on stderr"));
        let reached = reached.unwrap_or_else(|_| Err(panicked()));
        let outcome = match reached {
            Ok(Reached::EpochLimit) => return Ok(PartAttempt::EpochLimit),
            Ok(Reached::End) => Ok(()),
            Err(error) => Err(error),
        };

        let attempted = PartAttempt::from_outcome(deadline.end_attempt(row, outcome)?);
        if let PartAttempt::Ended(row) = &attempted {
            self.publish_trial(trial, row)?;
        }
        Ok(attempted)
    }

    fn load_work<'c>(&self, config: &'c TrialConfig, data: &SharedData) -> Result<PartWork<'c>> {
        Ok(match &config.model {
            TrialModel::Pipeline(task) => PartWork::Fit(task, data.tables(self.sweep, config)?),
            TrialModel::Network(settings) => {
                PartWork::Train(settings, data.dataset(self.sweep, config)?)
            }
            TrialModel::WaitModel(_) => {
                bail!("a job of a DAG cannot run trials over samples of waits")
            }
            TrialModel::Command(_) => bail!("a job of a DAG cannot run trials of a program"),
        })
    }

    /// Moves the files of an ended trial to its name, without the checkpoint. A checkpoint is
    /// several times as large as the model, and need not travel. A trial without a model keeps only
    /// its row.
    fn publish_trial(&self, trial: usize, row: &TrialRow) -> Result<()> {
        let from = self.work_dir(trial);
        let to = trial_dir(self.dir, trial);
        if row.ended != TrialEnd::Done {
            return files::remove_all([from]);
        }
        training::remove_checkpoint(&from)?;
        files::remove_all([to.clone()])?;
        fs_err::create_dir_all(
            to.parent()
                .context("the directory of the trial has no parent")?,
        )?;
        Ok(fs_err::rename(from, to)?)
    }

    fn fit_pipeline(
        &self,
        row: &mut TrialRow,
        task: &PipelineTask,
        tables: &FitTables,
        config: &TrialConfig,
        deadline: AttemptDeadline<'_>,
    ) -> Result<Reached, AttemptError> {
        let attempt = PipelineAttempt {
            dir: self.work_dir(row.trial),
            config: &config.written,
            task,
            deadline,
            files: None,
        };
        attempt.fit(row, tables)?;
        Ok(Reached::End)
    }

    fn train_network(
        &self,
        row: &mut TrialRow,
        settings: &TrainingSettings,
        dataset: &Dataset,
        config: &TrialConfig,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<Reached, AttemptError> {
        let trial = row.trial;
        let dir = self.work_dir(trial);
        set_network_key(row, settings, dataset)?;

        let on_update = |update: TrainingUpdate<'_>| {
            if let TrainingUpdate::Epoch(epoch) = update {
                progress(trial, epoch);
            }
            if self.must_leave() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let ends = |epochs: &[Epoch]| epochs.len() >= self.until_epoch;
        let resolved = config.written.resolved()?;
        let place = RunLocation {
            dir: &dir,
            config: &resolved,
            checkpoint_minutes: config.written.training.checkpoint_minutes,
        };
        let run = train_until(
            dataset,
            settings,
            place,
            StartMode::Resume,
            self.device,
            ends,
            on_update,
        );
        if let Ok(run) = &run
            && run.metrics.status == TrainingStatus::TerminatedEarly
        {
            return Ok(Reached::EpochLimit);
        }
        let trained = run.and_then(|run| {
            Ok(TrainingResult {
                metrics: run.metrics,
                history: read_history(&dir)?,
            })
        });
        record_training(row, &dir, trained)?;
        Ok(Reached::End)
    }
}

/// The task of a trial, with its data.
enum PartWork<'a> {
    Fit(&'a PipelineTask, Rc<FitTables>),
    Train(&'a TrainingSettings, Rc<Dataset>),
}

/// The result of an attempt at a trial.
enum PartAttempt {
    /// The trial has ended.
    Ended(Box<TrialRow>),
    /// The trial is left to the next job of a chain.
    EpochLimit,
    /// The attempt was asked to stop.
    Left,
}

impl PartAttempt {
    fn from_outcome(ended: AttemptOutcome<TrialRow>) -> PartAttempt {
        match ended {
            AttemptOutcome::Done(row) => PartAttempt::Ended(Box::new(row)),
            AttemptOutcome::Stopped => PartAttempt::Left,
        }
    }
}

/// The point at which a training or a fit returned.
enum Reached {
    End,
    EpochLimit,
}
