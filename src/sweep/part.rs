//! Some trials of a sweep, one after another, in a directory that travels from machine to machine →
//! their rows.
//!
//! This is what a job of a DAG does, without a queue and other workers. A trial that has a row has
//! ended. The files of a trial are in `work/` while it is at work, and are moved to its name in
//! `trials/` once it has ended. Thus whoever carries the directory away sees which is which.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::deadline::{AttemptDeadline, AttemptError};
use super::folder::SweepFolder;
use super::network_attempt::{TrainingResult, record_training, set_network_key};
use super::paths::trial_dir;
use super::pipeline_attempt::PipelineAttempt;
use super::pipeline_fit::{FitTables, PipelineTask};
use super::trial_config::{TrialConfig, TrialModel};
use super::trial_data::SharedData;
use super::trial_row::{TrialEnd, TrialRow, whole_budget};
use poolcast_models::Device;
use poolcast_queue::{AttemptOutcome, ChunkEntry, WorkItem};
use poolcast_holds::tensors::Dataset;
use poolcast_holds::training::{
    self, Epoch, RunPlace, StartMode, TrainingSettings, TrainingStatus, TrainingUpdate,
    read_history, train_until,
};
use poolcast_base::{files, manifest};

/// The rows of a part, in its directory: one JSON document a line.
pub const PART_ROWS_FILE: &str = "rows.jsonl";

/// The trials that were begun and have neither ended nor been given up, in the part's directory.
const BEGUN_FILE: &str = "begun.json";

/// How often rows are written, in addition to when the part is left.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// The trials of a part, and how they are run.
#[derive(Debug)]
pub struct SweepPart<'a> {
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
    /// Once this is set, the part is left at once.
    pub stop: &'a AtomicBool,
    /// When the part is left: between two batches of a training, or after the fit at work.
    pub leave: Option<Instant>,
}

/// How a part was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEnd {
    /// Every trial has a row, or the number of epochs that it should have in this job.
    Over,
    /// It was told to leave, or its time was over. It goes on where it stopped.
    Left,
}

/// The rows that the part in `dir` has so far.
pub fn part_rows(dir: &Path) -> Result<Vec<TrialRow>> {
    let path = dir.join(PART_ROWS_FILE);
    if path.is_file() {
        manifest::read_json_lines(&path)
    } else {
        Ok(Vec::new())
    }
}

/// The trainings of networks that the part in `dir` was left in, each with the epochs that it has
/// gone through.
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
    /// Runs those of `trials` that have no row yet. `ended` hears of each row, and `progress` of
    /// each epoch with its trial.
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
        let mut rows = self.known_rows(trials)?;
        let mut begun = self.begun_trials()?;
        let mut left: Vec<usize> = trials
            .iter()
            .copied()
            .filter(|trial| !rows.contains_key(trial))
            .collect();
        // An earlier job may have died of a trial that it had begun. The other trials come first,
        // so that it costs no result but its own.
        left.sort_by_key(|trial| (begun.contains(trial), *trial));

        let data = SharedData::default();
        let mut saved_at = Instant::now();
        let mut end = Ok(PartEnd::Over);
        for trial in left {
            if self.is_to_leave() {
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
                    rows.insert(trial, *row);
                }
                Ok(PartAttempt::FarEnough) => {}
                Ok(PartAttempt::Left) => {
                    end = Ok(PartEnd::Left);
                    break;
                }
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
            if saved_at.elapsed() > SAVE_EVERY {
                self.write_rows(&rows)?;
                saved_at = Instant::now();
            }
        }

        self.write_begun(&begun)?;
        self.write_rows(&rows)?;
        end
    }

    /// The rows of earlier attempts at `trials`.
    fn known_rows(&self, trials: &[usize]) -> Result<BTreeMap<usize, TrialRow>> {
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
        // A file that was cut short says nothing, and nothing depends on it but an order.
        Ok(if path.is_file() {
            manifest::read_json(&path).unwrap_or_default()
        } else {
            BTreeSet::new()
        })
    }

    /// This is not synced, as it only has to outlast this process, and not the machine.
    fn write_begun(&self, begun: &BTreeSet<usize>) -> Result<()> {
        Ok(fs_err::write(
            self.dir.join(BEGUN_FILE),
            serde_json::to_vec(begun)?,
        )?)
    }

    fn write_rows(&self, rows: &BTreeMap<usize, TrialRow>) -> Result<()> {
        manifest::write_json_lines(
            &self.dir.join(PART_ROWS_FILE),
            &rows.values().collect::<Vec<_>>(),
        )
    }

    fn is_to_leave(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.leave.is_some_and(|leave| Instant::now() >= leave)
    }

    /// Where `trial` stands while it is at work.
    fn work_dir(&self, trial: usize) -> PathBuf {
        self.dir.join("work").join(format!("trial-{trial:04}"))
    }

    fn attempt_trial(
        &self,
        trial: usize,
        data: &SharedData,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<PartAttempt> {
        let written = self.sweep.trials()?.draw(trial, &[])?;
        let item = WorkItem {
            trial,
            budget: whole_budget(&written),
        };
        let mut row = TrialRow::begin(&ChunkEntry::new(item), &self.worker, &written);
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

        // Data that is not found is no fault of the trial, but of the whole part.
        let work = self.find_work(&config, data)?;

        let reached = catch_unwind(AssertUnwindSafe(|| match work {
            PartWork::Fit(task, tables) => {
                self.fit_pipeline(&mut row, task, &tables, &config, deadline)
            }
            PartWork::Train(settings, dataset) => {
                self.train_network(&mut row, settings, &dataset, &config, progress)
            }
        }));
        let panicked = || AttemptError::Other(anyhow!("it panicked, and said why on stderr"));
        let reached = reached.unwrap_or_else(|_| Err(panicked()));
        let outcome = match reached {
            Ok(Reached::FarEnough) => return Ok(PartAttempt::FarEnough),
            Ok(Reached::End) => Ok(()),
            Err(error) => Err(error),
        };

        let attempted = PartAttempt::from_outcome(deadline.end_attempt(row, outcome)?);
        if let PartAttempt::Ended(row) = &attempted {
            self.publish_trial(trial, row)?;
        }
        Ok(attempted)
    }

    fn find_work<'c>(&self, config: &'c TrialConfig, data: &SharedData) -> Result<PartWork<'c>> {
        Ok(match &config.model {
            TrialModel::Pipeline(task) => PartWork::Fit(task, data.tables(self.sweep, config)?),
            TrialModel::Network(settings) => {
                PartWork::Train(settings, data.dataset(self.sweep, config)?)
            }
            TrialModel::WaitModel(_) => {
                bail!("a part of a DAG has no trials over samples of waits")
            }
        })
    }

    /// Moves the files of the trial to its name, without its checkpoint, which is several times as
    /// large as the model and would travel for nothing. Of a trial without a model only its row
    /// stays.
    fn publish_trial(&self, trial: usize, row: &TrialRow) -> Result<()> {
        let from = self.work_dir(trial);
        let to = trial_dir(self.dir, trial);
        if row.ended != TrialEnd::Done {
            return files::remove_all([from]);
        }
        training::remove_checkpoint(&from)?;
        files::remove_all([to.clone()])?;
        fs_err::create_dir_all(to.parent().context("a trial stands in a directory")?)?;
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

        let hear = |news: TrainingUpdate<'_>| {
            if let TrainingUpdate::Epoch(epoch) = news {
                progress(trial, epoch);
            }
            if self.is_to_leave() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let ends = |epochs: &[Epoch]| epochs.len() >= self.until_epoch;
        let place = RunPlace {
            dir: &dir,
            config: &config.written,
        };
        let run = train_until(
            dataset,
            settings,
            place,
            StartMode::Resume,
            self.device,
            ends,
            hear,
        );
        if let Ok(run) = &run
            && run.metrics.status == TrainingStatus::TerminatedEarly
        {
            return Ok(Reached::FarEnough);
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

/// What there is to do for a trial, and the data for it.
enum PartWork<'a> {
    Fit(&'a PipelineTask, Rc<FitTables>),
    Train(&'a TrainingSettings, Rc<Dataset>),
}

/// What came of an attempt.
enum PartAttempt {
    /// The trial is over.
    Ended(Box<TrialRow>),
    /// It is left to the next job of a chain.
    FarEnough,
    /// It was told to leave.
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

/// How far a training or a fit has come.
enum Reached {
    End,
    FarEnough,
}
