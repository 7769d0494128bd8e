//! A sweep to its end in this process: managed and worked on, with a bar.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;

use super::preparation::make_tensors;
use super::signals::stop_signal;
use super::text::trials::{tell_epoch, trial_line};
use crate::config::Config;
use crate::error::EXIT_RETRY;
use crate::output;
use crate::queue::{ManagerOutcome, Queue};
use crate::sweep::{self, LocalWorkers, SweepFolder, TrialOutcomes, TrialRow, events_dir};
use crate::training::Epoch;

/// Manages `sweep` and works on it in this process; whether all trials have ended.
pub(super) fn run_to_end(
    sweep: &SweepFolder,
    threads: usize,
    limit: Duration,
    keep: usize,
) -> Result<bool> {
    let stop = stop_signal()?;
    let Some(queue) = sweep.queue()? else {
        return Ok(true);
    };
    note_pause(&queue, sweep);
    let hands = LocalWorkers {
        workers: threads.min(sweep.plan.trials),
        limit,
        keep,
        stop: &stop,
    };
    let progress = TrialProgress::new(sweep)?;
    let prepare = |trials: &[Config]| {
        progress
            .bar
            .suspend(|| make_tensors(sweep, &events_dir(&sweep.dir), trials))
    };
    let epoch = |trial: usize, epoch: &Epoch| {
        progress.epoch(trial, epoch.epoch);
        tell_epoch(trial, epoch);
    };
    let ended = |row: &TrialRow| {
        progress.ended(row);
        tracing::info!("{}", trial_line(row, sweep));
    };
    let say = |text: &str| tracing::info!("{text}");
    let managed = output::with_progress_notes(
        || progress.text(),
        || sweep::run_locally(sweep, &queue, hands, prepare, epoch, ended, say),
    );
    progress.bar.finish_and_clear();
    let managed = managed?;
    let is_over = matches!(managed, ManagerOutcome::AllEnded(_));
    if !is_over {
        not_over(&managed, sweep);
    }
    Ok(is_over)
}

/// How far the trials of a sweep are, counted in epochs; a trial of a pipeline counts as one epoch.
struct TrialProgress {
    bar: ProgressBar,
    trials: usize,
    /// The epochs of a network.
    epochs: usize,
    ended: AtomicUsize,
    /// Of networks at work: the epochs that are counted.
    counted: Mutex<BTreeMap<usize, usize>>,
}

impl TrialProgress {
    /// Begins with what was done before.
    fn new(sweep: &SweepFolder) -> Result<TrialProgress> {
        let (networks, trials, epochs) = (
            sweep::network_trial_count(&sweep.config)?,
            sweep.plan.trials,
            sweep.config.epochs,
        );
        let steps = |networks: usize, trials: usize| {
            (networks * epochs + trials.saturating_sub(networks)) as u64
        };
        let bar = output::item_bar(steps(networks, trials), "epochs of all trials");
        let before = TrialOutcomes::read(sweep)?;
        let ended = before.all().len();
        bar.set_position(steps(
            before
                .all()
                .iter()
                .filter(|outcome| outcome.trial <= networks)
                .count(),
            ended,
        ));
        bar.reset_eta();
        Ok(TrialProgress {
            bar,
            trials,
            epochs,
            ended: AtomicUsize::new(ended),
            counted: Mutex::default(),
        })
    }

    /// A network has gone through so many epochs, perhaps most of them before.
    fn epoch(&self, trial: usize, epochs: usize) {
        let Ok(mut counted) = self.counted.lock() else {
            return;
        };
        let before = counted.insert(trial, epochs).unwrap_or(0);
        self.bar.inc(epochs.saturating_sub(before) as u64);
    }

    fn ended(&self, row: &TrialRow) {
        if !row.config.pipelines.is_empty() {
            self.bar.inc(1);
        } else if row.budget >= self.epochs {
            // Stopped early or failed: the rest will not come.
            self.epoch(row.trial, self.epochs);
        }
        self.ended.fetch_add(
            usize::from(row.budget >= self.epochs || !row.config.pipelines.is_empty()),
            Ordering::Relaxed,
        );
    }

    /// For those who see no bar.
    fn text(&self) -> String {
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let ended = self.ended.load(Ordering::Relaxed);
        let left = output::time_span(i64::try_from(self.bar.eta().as_millis()).unwrap_or(i64::MAX));
        let left = if self.bar.eta().is_zero() {
            String::new()
        } else {
            format!(", about {left} remain")
        };
        format!(
            "{ended} of {} have ended, {done} of {}{left}",
            output::counted(self.trials, "trial"),
            output::counted(all as usize, "epoch")
        )
    }
}

/// Says that nobody works on a sweep that is paused.
pub(super) fn note_pause(queue: &Queue, sweep: &SweepFolder) {
    if queue.is_paused() {
        let place = sweep.dir.display();
        output::note(&format!(
            "the sweep is paused; `poolcast sweep resume {place}` lets it go on"
        ));
    }
}

/// Says why a sweep has not ended; returns the exit code.
pub(super) fn not_over(managed: &ManagerOutcome, sweep: &SweepFolder) -> u8 {
    let place = sweep.dir.display();
    match managed {
        ManagerOutcome::OtherManager(other) => {
            output::note(&format!("`{place}` is managed by {other}"))
        }
        _ => output::note(&format!(
            "the sweep in `{place}` was stopped; the same command goes on from there"
        )),
    }
    EXIT_RETRY
}
