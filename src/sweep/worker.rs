//! A sweep's queue → the rows of its trials: one worker, that does one trial after another.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::deadline::{AttemptDeadline, AttemptError};
use super::folder::SweepFolder;
use super::network_attempt::{NetworkAttempt, trained_epochs};
use super::network_draws::network_trial_count;
use super::outcome::network_rows;
use super::paths::trial_dir;
use super::pipeline_attempt::PipelineAttempt;
use super::rounds;
use super::trial_config::{TrialConfig, TrialModel};
use super::trial_data::{self, SharedData};
use super::trial_files::TrialFiles;
use super::trial_row::{TrialEnd, TrialRow};
use super::wait_model_attempt::WaitModelAttempt;
use poolcast_base::manifest;
use poolcast_queue::{AttemptOutcome, ChunkEntry, Queue, TrialAttempt, WorkerTally, run_worker};
use poolcast_holds::training::{Epoch, RUN_FORMAT};

/// Does trials of `sweep` until none is left or `stop` is set; one that takes longer than `limit`
/// has failed. `workers` are those of this process, this one included. `progress` hears of each epoch
/// with its trial, `ended` of each row that counts.
///
/// # Errors
/// Fails on what is no trial's fault, such as a full disk that does not pass; the trial is given
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
    let acknowledged = |entry: &ChunkEntry, row: &TrialRow| {
        // Where this fails the manager does it in the end.
        if !worker.is_behind(entry, row)
            && let Err(error) = worker.files.publish_trial(entry, row)
        {
            tracing::warn!("{error:#}");
        }
        ended(row);
    };
    run_worker(queue, limit, stop, attempt, acknowledged)
}

/// What the trials of one worker share.
struct SweepWorker<'a> {
    sweep: &'a SweepFolder,
    queue: &'a Queue,
    /// Workers of this process.
    workers: usize,
    files: TrialFiles<'a>,
    data: SharedData,
}

impl SweepWorker<'_> {
    fn attempt_trial(
        &self,
        attempt: &TrialAttempt<'_>,
        deadline: AttemptDeadline<'_>,
        progress: &(impl Fn(usize, &Epoch) + Sync),
    ) -> Result<AttemptOutcome<TrialRow>> {
        let trial = attempt.entry.next_item().trial;
        let earlier = self.earlier_rows(trial)?;
        let written = self.sweep.trial_config(trial, &earlier)?;
        let mut row = TrialRow::begin(attempt.entry, attempt.worker(), &written);
        let trial = match TrialConfig::new(written) {
            Ok(trial) => trial,
            Err(error) => return Ok(deadline.fail(row, TrialEnd::Invalid, &error)),
        };

        // Data that this worker does not find is no fault of the trial, so that `?` gives the trial
        // back.
        let dir = self.queue.work_dir(attempt.entry);
        let outcome = match &trial.model {
            TrialModel::Pipeline(task) => {
                let tables = self.data.tables(self.sweep, &trial)?;
                let attempt = PipelineAttempt {
                    dir,
                    config: &trial.written,
                    task,
                    deadline,
                    files: Some(&self.files),
                };
                attempt.fit(&mut row, &tables).map_err(AttemptError::from)
            }
            TrialModel::WaitModel(settings) => {
                let samples = self.data.waits(self.sweep)?;
                let attempt = WaitModelAttempt {
                    sweep: self.sweep,
                    queue: self.queue,
                    attempt,
                    dir,
                    trial: &trial,
                    settings,
                    deadline,
                };
                attempt.train(&mut row, &samples)
            }
            TrialModel::Network(settings) => {
                let dataset = trial_data::trial_dataset(self.sweep, &trial)?;
                let attempt = NetworkAttempt {
                    sweep: self.sweep,
                    queue: self.queue,
                    attempt,
                    dir,
                    earlier,
                    trial: &trial,
                    settings,
                    deadline,
                    workers: self.workers,
                };
                let trained = attempt.train(&mut row, &dataset, progress);
                trained.map_err(AttemptError::from)
            }
        };
        deadline.end_attempt(row, outcome)
    }

    /// The rows of the trials that `trial` learns from.
    fn earlier_rows(&self, trial: usize) -> Result<Vec<TrialRow>> {
        let config = &self.sweep.config;
        let learns = rounds::learns_from_earlier(config) && trial <= network_trial_count(config)?;
        if !learns {
            return Ok(Vec::new());
        }
        network_rows(self.sweep, self.queue, &self.queue.chunk_entries()?)
    }

    /// Whether others have trained the trial of `row` further: a worker that slept for long comes
    /// with a rung that they have gone beyond.
    fn is_behind(&self, entry: &ChunkEntry, row: &TrialRow) -> bool {
        if row.fit.is_some() {
            return false;
        }
        let from = self.queue.work_dir(entry);
        let to = trial_dir(&self.sweep.dir, entry.next_item().trial);
        manifest::finished_key(&to, RUN_FORMAT) == row.key
            && trained_epochs(&from) < trained_epochs(&to)
    }
}
