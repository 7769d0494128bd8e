//! A sweep → its end, on this machine: a manager and some workers in one process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::folder::SweepFolder;
use super::network_attempt::work_trials;
use super::results::manage_trials;
use super::trial_row::TrialRow;
use crate::config::Config;
use crate::queue::{ManagerOutcome, Queue};
use crate::training::Epoch;

/// TrialEnd [`run_locally`] goes about it.
#[derive(Debug, Clone, Copy)]
pub struct LocalWorkers<'a> {
    /// SweepTrials at once.
    pub workers: usize,
    /// The longest that a trial may take.
    pub limit: Duration,
    /// Of how many of the best trials the models stay.
    pub keep: usize,
    /// Set to make it stop.
    pub stop: &'a AtomicBool,
}

/// Manages `sweep` and works on it until all trials have ended or it is told to stop. Others may work on it at the same time,
/// and where another manager is at it, this process only works. `prepare` makes the tensors of trials, as in [`manage_trials`].
///
/// # Errors
/// Fails when no worker can go on, on a full disk, for instance; the same call goes on from there.
pub fn run_locally(
    sweep: &SweepFolder,
    queue: &Queue,
    hands: LocalWorkers<'_>,
    prepare: impl Fn(&[Config]) -> Result<()>,
    progress: impl Fn(usize, &Epoch) + Sync,
    ended: impl Fn(&TrialRow) + Sync,
    say: impl Fn(&str) + Sync,
) -> Result<ManagerOutcome> {
    let stop = hands.stop;
    let (left, failure) = (AtomicUsize::new(hands.workers), Mutex::new(None));
    let work = || {
        let worked = work_trials(sweep, queue, hands.limit, stop, &progress, &ended);
        // Who leaves without an error leaves as nothing is left to do, and with the last one nothing would ever happen.
        let is_last = left.fetch_sub(1, Ordering::Relaxed) == 1;
        stop.fetch_or(worked.is_ok() || is_last, Ordering::Relaxed);
        worked
            .err()
            .and_then(|error| failure.lock().ok()?.replace(error));
    };
    let managed = std::thread::scope(|scope| {
        (0..hands.workers).for_each(|_| drop(scope.spawn(work)));
        let managed = manage_trials(sweep, queue, hands.keep, stop, &prepare, &say);
        if !matches!(managed, Ok(ManagerOutcome::OtherManager(_))) {
            stop.store(true, Ordering::Relaxed);
        }
        managed
    })?;
    match (managed, failure.into_inner().ok().flatten()) {
        (ManagerOutcome::AllEnded(counts), _) => Ok(ManagerOutcome::AllEnded(counts)),
        (_, Some(error)) => Err(error),
        (managed, None) => Ok(managed),
    }
}
