//! Runs a sweep on this machine, with a manager and some workers in one process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::manager::manage_trials;
use super::worker::work_trials;
use crate::plan::SweepFolder;
use crate::plan::TrialRow;
use poolcast_holds::training::Epoch;
use poolcast_queue::{ManagerOutcome, Queue, WorkerTally};
use poolcast_tensors::TensorSettings;

/// The settings of [`run_locally`].
#[derive(Debug, Clone, Copy)]
pub struct LocalWorkers<'a> {
    /// Number of trials that run at the same time.
    pub workers: usize,
    /// Maximum duration of a trial.
    pub limit: Duration,
    /// Number of best trials whose models are kept.
    pub keep: usize,
    /// A flag that, once set, stops the sweep.
    pub stop: &'a AtomicBool,
}

/// The workers of this process. Each ends once.
struct RunningWorkers {
    left: AtomicUsize,
    /// Whether a worker found that all trials have ended.
    have_all_ended: AtomicBool,
    last_failure: Mutex<Option<anyhow::Error>>,
}

impl RunningWorkers {
    /// Notes how a worker ended. Sets `look_again` or `stop` for the manager if it has to know.
    fn end(&self, worked: Result<WorkerTally>, stop: &AtomicBool, look_again: &AtomicBool) {
        // A worker that returns Ok found that all trials have ended. The manager must find that,
        // too, and write the results, although it may still wait for the seat of a dead manager.
        // Therefore it is woken, but not stopped.
        if worked.is_ok() {
            self.have_all_ended.store(true, Ordering::Relaxed);
            look_again.store(true, Ordering::Relaxed);
        }

        // If all workers have failed, the manager would wait forever.
        let is_last = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !self.have_all_ended.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
        if let Err(error) = worked
            && let Ok(mut failure) = self.last_failure.lock()
        {
            *failure = Some(error);
        }
    }
}

/// Manages `sweep` and works on it until all trials have ended or `stop` is set. Other processes
/// may work on it at the same time. If another process already manages it, this process only works.
/// `prepare` makes the tensors of trials, as in [`manage_trials`].
///
/// # Errors
/// Fails if no worker can continue, for example on a full disk. The same call continues from there.
pub fn run_locally(
    sweep: &SweepFolder,
    queue: &Queue,
    workers: LocalWorkers<'_>,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
    progress: impl Fn(usize, &Epoch) + Sync,
    ended: impl Fn(&TrialRow) + Sync,
    note: impl Fn(&str) + Sync,
) -> Result<ManagerOutcome> {
    let stop = workers.stop;
    let look_again = AtomicBool::new(false);
    let running = RunningWorkers {
        left: AtomicUsize::new(workers.workers),
        have_all_ended: AtomicBool::new(false),
        last_failure: Mutex::new(None),
    };

    let work = || {
        let worked = work_trials(
            sweep,
            queue,
            workers.limit,
            workers.workers,
            stop,
            &progress,
            &ended,
        );
        running.end(worked, stop, &look_again);
    };

    let managed = std::thread::scope(|scope| {
        for _ in 0..workers.workers {
            scope.spawn(work);
        }
        let keep = workers.keep;
        let managed = manage_trials(sweep, queue, keep, stop, &look_again, &prepare, &note);
        // If another process manages the sweep, the workers of this process continue until no trial
        // is left.
        if !matches!(managed, Ok(ManagerOutcome::OtherManager(_))) {
            stop.store(true, Ordering::Relaxed);
        }
        managed
    })?;

    let failure = running.last_failure.into_inner().ok().flatten();
    match (managed, failure) {
        (ManagerOutcome::AllEnded(counts), _) => Ok(ManagerOutcome::AllEnded(counts)),
        (_, Some(error)) => Err(error),
        (managed, None) => Ok(managed),
    }
}
