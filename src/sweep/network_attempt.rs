//! A trial of a sweep → its row: one training, in a directory of its attempt alone until it counts.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::deadline::AttemptDeadline;
use super::folder::SweepFolder;
use super::network_draws::network_trial_count;
use super::outcome::network_rows;
use super::pipeline_attempt::PipelineAttempt;
use super::pipeline_fit::PipelineTask;
use super::rounds;
use super::trial_data::{self, SharedRows};
use super::trial_files::{TrialFiles, trial_dir};
use super::trial_row::{TrialEnd, TrialRow};
use crate::config::Config;
use crate::models::Device;
use crate::queue::{AttemptOutcome, Queue, TrialAttempt, WorkerTally, run_worker};
use crate::tensors::{self, Dataset};
use crate::training::{
    self, Epoch, Metrics, Mode, NonFinite, Progress, RUN, Run, Status, read_history, train_until,
};
use crate::{files, manifest};

/// The directory of the tensors that the trial `config` needs; trials with equal sizes share it.
pub fn tensors_dir(out: &Path, config: &Config) -> Result<PathBuf> {
    let settings = tensors::TensorSettings::from_config(config)?;
    let (j, m, timeframe_len_s) = (settings.j, settings.m, settings.timeframe_len_s);
    let states = settings.states.to_string();
    let states = if states.is_empty() {
        states
    } else {
        format!("-{:.8}", manifest::sha256(states.as_bytes()))
    };
    let name = format!(
        "j{j}-m{m}-t{timeframe_len_s}-{}-{}{states}",
        settings.context, settings.vocabulary
    );
    Ok(out.join("tensors").join(name))
}

/// Does trials of `sweep` until none is left or `stop` is set; one that takes longer than `limit` has failed. `progress`
/// hears of each epoch with its trial, `ended` of each row that counts.
///
/// # Errors
/// Fails on what is no trial's fault, such as a full disk that does not pass; the trial is given back.
pub fn work_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    limit: Duration,
    stop: &AtomicBool,
    progress: impl Fn(usize, &Epoch) + Sync,
    ended: impl Fn(&TrialRow),
) -> Result<WorkerTally> {
    let (keeper, sources) = (TrialFiles::new(sweep, queue), SharedRows::default());
    let attempt = |attempt: &TrialAttempt<'_>| {
        let term = AttemptDeadline {
            began: Instant::now(),
            limit,
            stop,
            attempt: Some(attempt),
        };
        let trial = Trial::new(sweep, queue, attempt, term)?;
        match PipelineTask::from_config(&trial.config)? {
            Some(task) => {
                let Trial { row, config, .. } = trial;
                PipelineAttempt {
                    sweep,
                    queue,
                    attempt,
                    term,
                    config: &config,
                    task,
                    row,
                    keeper: &keeper,
                    sources: &sources,
                }
                .run()
            }
            None => trial.run(&progress),
        }
    };
    run_worker(queue, limit, stop, attempt, |entry, row: &TrialRow| {
        // A worker that slept for long comes with a rung that others have gone beyond.
        let is_behind = row.fit.is_none() && {
            let (from, to) = (
                queue.work_dir(entry),
                trial_dir(&sweep.dir, entry.next_item().trial),
            );
            manifest::finished_key(&to, RUN) == row.key && epochs_of(&from) < epochs_of(&to)
        };
        // Where this fails the manager does it in the end.
        if !is_behind && let Err(error) = keeper.publish(entry, row) {
            tracing::warn!("{error:#}");
        }
        ended(row);
    })
}

/// The epochs that the training in `dir` has gone through.
fn epochs_of(dir: &Path) -> usize {
    read_history(dir).map_or(0, |history| history.len())
}

struct Trial<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    attempt: &'a TrialAttempt<'a>,
    /// Of trials that this one learns from.
    known: Vec<TrialRow>,
    config: Config,
    row: TrialRow,
    term: AttemptDeadline<'a>,
}

impl<'a> Trial<'a> {
    fn new(
        sweep: &'a SweepFolder,
        queue: &'a Queue,
        attempt: &'a TrialAttempt<'a>,
        term: AttemptDeadline<'a>,
    ) -> Result<Trial<'a>> {
        let (trials, trial) = (sweep.trials()?, attempt.entry.next_item().trial);
        let learns = rounds::learns(&sweep.config) && trial <= network_trial_count(&sweep.config)?;
        let known = if learns {
            network_rows(sweep, queue, &queue.chunk_entries()?)?
        } else {
            Vec::new()
        };
        let config = rounds::trial_config(trials, trial, &known)?;
        let row = TrialRow::begin(attempt.entry, attempt.worker(), &config)?;
        Ok(Trial {
            sweep,
            queue,
            attempt,
            known,
            config,
            row,
            term,
        })
    }

    fn run(
        mut self,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<AttemptOutcome<TrialRow>> {
        let settings = match tensors::TensorSettings::from_config(&self.config)
            .and(training::Settings::of(&self.config))
        {
            Ok(settings) => settings,
            Err(error) => return Ok(self.term.failed(self.row, TrialEnd::Invalid, &error)),
        };
        // Data that this worker does not find is no fault of the trial.
        let dataset = trial_data::trial_dataset(self.sweep, &self.config)?;
        let key = settings.key(&dataset.key)?;
        let dir = self.queue.work_dir(self.attempt.entry);
        let outcome = self.trained(&dataset, &key, &dir, progress);
        (self.row.key, self.row.tensors_key) = (Some(key), Some(dataset.key));
        let outcome = match outcome {
            Ok((metrics, history)) => {
                self.row.trained(metrics, &history);
                Ok(())
            }
            Err(error) if error.is::<NonFinite>() => {
                self.row.trained(Metrics::read(&dir)?, &read_history(&dir)?);
                Err(error)
            }
            Err(error) => Err(error),
        };
        self.term.end(self.row, outcome)
    }

    fn trained(
        &self,
        dataset: &Dataset,
        key: &str,
        dir: &Path,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<(Metrics, Vec<Epoch>)> {
        let trial = self.attempt.entry.next_item().trial;
        let before = trial_dir(&self.sweep.dir, trial);
        if manifest::finished_key(&before, RUN).as_deref() == Some(key) && self.may_be_here(&before)
        {
            let (metrics, history) = (Run::open(&before)?.metrics, read_history(&before)?);
            if metrics.status != Status::TerminatedEarly || self.ends(&history) {
                return Ok((metrics, history));
            }
        }
        self.go_on(key, dir)?;
        let metric = self.config.wandb.sweep.metric.name;
        let hear = |news: Progress<'_>| match news {
            Progress::Epoch(epoch) => {
                self.attempt
                    .report_epoch(epoch.epoch, epoch.watched(metric));
                progress(trial, epoch);
                ControlFlow::Continue(())
            }
            Progress::Batch { .. } if self.term.is_over() => ControlFlow::Break(()),
            Progress::Batch { .. } => ControlFlow::Continue(()),
        };
        let ends = |epochs: &[Epoch]| self.ends(epochs);
        let run = train_until(
            dataset,
            &self.config,
            dir,
            Mode::Resume,
            &Device::Cpu,
            ends,
            hear,
        )?;
        Ok((run.metrics, read_history(dir)?))
    }

    /// Whether the trial ends after `epochs`.
    fn ends(&self, epochs: &[Epoch]) -> bool {
        rounds::ends(
            &self.sweep.config,
            self.attempt.entry.next_item(),
            &self.known,
            epochs,
        )
    }

    /// Whether this trial, too, comes to the last epoch of the training in `dir`, which may be of another sweep.
    fn may_be_here(&self, dir: &Path) -> bool {
        read_history(dir)
            .is_ok_and(|history| !(1..history.len()).any(|epochs| self.ends(&history[..epochs])))
    }

    /// Begins where an earlier attempt, or the rung below, was.
    fn go_on(&self, key: &str, dir: &Path) -> Result<()> {
        if training::checkpoint_key(dir).is_some() {
            return Ok(());
        }
        let before = trial_dir(&self.sweep.dir, self.attempt.entry.next_item().trial);
        let mut earlier = self.queue.other_attempt_dirs(self.attempt.entry)?;
        earlier.push(before.clone());
        earlier.retain(|dir| {
            training::checkpoint_key(dir).as_deref() == Some(key) && self.may_be_here(dir)
        });
        match earlier.iter().max_by_key(|dir| epochs_of(dir)) {
            // Its rung counts until this one does.
            Some(earlier) if *earlier == before => training::copy_checkpoint(earlier, dir),
            // Nobody else goes on there: whoever had the lease has lost it or has given it back.
            Some(earlier) => {
                files::remove_all([dir.to_owned()])?;
                Ok(fs_err::rename(earlier, dir)?)
            }
            None => Ok(()),
        }
    }
}
