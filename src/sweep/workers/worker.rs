//! A worker of a sweep: runs the trials in its queue, one after another, and writes their rows.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::attempts::PipelineAttempt;
use crate::attempts::TrialFiles;
use crate::attempts::WaitModelAttempt;
use crate::attempts::{AttemptDeadline, AttemptError};
use crate::attempts::{CommandAttempt, end_orphans};
use crate::attempts::{NetworkAttempt, trained_epochs};
use crate::attempts::{SharedData, score_as_member, trial_data};
use crate::outcomes::earlier_trials;
use crate::plan::SweepFolder;
use crate::plan::trial_dir;
use crate::plan::{EarlierTrial, Proposal, TrialEnd, TrialRow};
use crate::plan::{TrialConfig, TrialModel};
use poolcast_base::manifest;
use poolcast_config::MetricName;
use poolcast_holds::config::TrainingSettings;
use poolcast_holds::training::{Epoch, RUN_FORMAT};
use poolcast_queue::{
    AttemptOutcome, ChunkEntry, Dispatch, Queue, TrialAttempt, WorkerTally, run_worker,
};

/// Runs trials of `sweep` until no trial is left or `stop` is set. A trial that takes longer than
/// `limit` fails. `workers` is the number of workers in this process, including this one. Calls
/// `progress` with each epoch and its trial, and `ended` with each row that counts.
///
/// # Errors
/// Fails with errors that no trial causes, such as a disk that stays full. The trial is then given
/// back.
pub fn work_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    limit: Duration,
    workers: usize,
    stop: &AtomicBool,
    progress: impl Fn(usize, &Epoch) + Sync,
    ended: impl Fn(&TrialRow),
) -> Result<WorkerTally> {
    if sweep.config.command.is_some() {
        end_orphans(queue)?;
    }
    let worker = SweepWorker {
        sweep,
        queue,
        workers,
        files: TrialFiles::new(sweep, queue),
        data: SharedData::default(),
    };

    let attempt = |attempt: &TrialAttempt<'_>| {
        let deadline = AttemptDeadline {
            began: Instant::now(),
            limit,
            stop,
            attempt: Some(attempt),
        };
        worker.attempt_trial(attempt, deadline, &progress)
    };
    let metric = &sweep.config.wandb.sweep.metric;
    let acknowledged = |entry: &ChunkEntry, row: &TrialRow| {
        // If this fails, the manager repeats it at the end.
        if !worker.is_behind(entry, row)
            && let Err(error) = worker.files.publish_trial(entry, row)
        {
            tracing::warn!("{error:#}");
        }
        if row.value.is_some_and(|value| metric.is_reached_by(value))
            && let Err(error) = queue.request_dispatch(Dispatch::Stopped)
        {
            tracing::warn!("{error:#}");
        }
        ended(row);
    };
    run_worker(queue, limit, stop, attempt, acknowledged)
}

/// The state that the trials of one worker share.
struct SweepWorker<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    /// Number of workers in this process.
    workers: usize,
    files: TrialFiles<'a>,
    data: SharedData,
}

/// An attempt at one trial.
struct TrialWork<'a> {
    attempt: &'a TrialAttempt<'a>,
    /// The trials that this one learns from.
    earlier: Vec<EarlierTrial>,
    trial: &'a TrialConfig,
    deadline: AttemptDeadline<'a>,
}

impl SweepWorker<'_> {
    fn attempt_trial(
        &self,
        attempt: &TrialAttempt<'_>,
        deadline: AttemptDeadline<'_>,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<AttemptOutcome<TrialRow>> {
        let trial = attempt.entry.next_item().trial;
        let proposal = self.proposal(attempt)?;
        let earlier = self.earlier_trials(proposal.as_ref())?;
        let written = self.sweep.trial_config(trial, proposal.as_ref())?;
        let mut row = TrialRow::begin(attempt.entry, attempt.worker(), &written)
            .without_missing(&self.sweep.config);
        row.unseen = proposal.and_then(|proposal| proposal.unseen);
        let trial = match TrialConfig::new(written) {
            Ok(trial) => trial,
            Err(error) => return Ok(deadline.fail(row, TrialEnd::Invalid, &error)),
        };

        // Data that this worker cannot find is not the trial's fault, so `?` gives the trial back.
        let work = TrialWork {
            attempt,
            earlier,
            trial: &trial,
            deadline,
        };
        let outcome = match self.score_answers(&work, &mut row)? {
            Ok(()) => self.make_model(work, &mut row, progress)?,
            failed => failed,
        };
        deadline.end_attempt(row, outcome)
    }

    /// Records the scores of the answers in `row` if the sweep compares trials by them.
    fn score_answers(
        &self,
        work: &TrialWork<'_>,
        row: &mut TrialRow,
    ) -> Result<Result<(), AttemptError>> {
        let mut metrics = self.sweep.config.wandb.sweep.metric.all();
        if !metrics.any(|metric| metric.name == MetricName::AnswersLogLoss) {
            return Ok(Ok(()));
        }
        let events = self.data.events(self.sweep)?;
        let scored = score_as_member(work.trial, &events, work.deadline);
        Ok(scored.map(|scores| row.answers = Some(scores)))
    }

    /// Makes the model of the trial, and records its result in `row`.
    fn make_model(
        &self,
        work: TrialWork<'_>,
        row: &mut TrialRow,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<Result<(), AttemptError>> {
        let trial = work.trial;
        let dir = self.queue.work_dir(work.attempt.entry);
        Ok(match &trial.model {
            TrialModel::Pipeline(task) => {
                let tables = self.data.tables(self.sweep, trial)?;
                let attempt = PipelineAttempt {
                    dir,
                    config: &trial.written,
                    task,
                    deadline: work.deadline,
                    files: Some(&self.files),
                };
                attempt.fit(row, &tables).map_err(AttemptError::from)
            }
            TrialModel::WaitModel(settings) => {
                let samples = self.data.waits(self.sweep)?;
                let attempt = WaitModelAttempt {
                    sweep: self.sweep,
                    queue: self.queue,
                    attempt: work.attempt,
                    dir,
                    settings,
                    deadline: work.deadline,
                };
                attempt.train(row, &samples)
            }
            TrialModel::Command(command) => {
                let attempt = CommandAttempt {
                    attempt: work.attempt,
                    // The program runs in another directory.
                    dir: std::path::absolute(dir)?,
                    earlier: work.earlier,
                    trial,
                    command,
                    deadline: work.deadline,
                };
                attempt.run(row)
            }
            TrialModel::Network(settings) => {
                let dataset = trial_data::trial_dataset(self.sweep, trial)?;
                let attempt = self.network_attempt(work, settings);
                let trained = attempt.train(row, &dataset, progress);
                trained.map_err(AttemptError::from)
            }
        })
    }

    fn network_attempt<'w>(
        &'w self,
        work: TrialWork<'w>,
        settings: &'w TrainingSettings,
    ) -> NetworkAttempt<'w> {
        NetworkAttempt {
            sweep: self.sweep,
            queue: self.queue,
            attempt: work.attempt,
            dir: self.queue.work_dir(work.attempt.entry),
            earlier: work.earlier,
            trial: work.trial,
            settings,
            deadline: work.deadline,
            workers: self.workers,
        }
    }

    /// Reads the proposal of a trial that is proposed during the sweep.
    fn proposal(&self, attempt: &TrialAttempt<'_>) -> Result<Option<Proposal>> {
        let trial = attempt.entry.next_item().trial;
        if !self.sweep.is_proposed(trial)? {
            return Ok(None);
        }
        let proposal = attempt.proposal::<Proposal>()?;
        let why = || format!("trial {trial} was not proposed by a manager of this sweep");
        proposal.with_context(why).map(Some)
    }

    /// The trials with which the trial of `proposal` is compared while it runs.
    fn earlier_trials(&self, proposal: Option<&Proposal>) -> Result<Vec<EarlierTrial>> {
        let compares = self.sweep.config.wandb.sweep.compares_trials();
        let Some(proposal) = proposal.filter(|_| compares) else {
            return Ok(Vec::new());
        };
        let mut ended = earlier_trials(self.sweep, self.queue, &self.queue.chunk_entries()?)?;
        ended.retain(|one| proposal.learns_from(one.trial));
        Ok(ended)
    }

    /// Returns true if other workers have trained the trial of `row` further. A worker that was
    /// suspended for long may finish a rung that they have already passed.
    fn is_behind(&self, entry: &ChunkEntry, row: &TrialRow) -> bool {
        if row.fit.is_some() || row.reported.is_some() {
            return false;
        }
        let from = self.queue.work_dir(entry);
        let to = trial_dir(&self.sweep.dir, entry.next_item().trial);
        manifest::finished_key(&to, RUN_FORMAT) == row.key
            && trained_epochs(&from) < trained_epochs(&to)
    }
}
