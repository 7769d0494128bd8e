//! Runs a sweep to its end in this process, as manager and workers, with a progress bar.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;

use super::preparation::make_tensors;
use super::signals::stop_signal;
use super::text::trials::{log_epoch, trial_line};
use super::tracking::{begin_tracking, end_tracking};
use poolcast_base::error::{EXIT_RETRY, too_early};
use poolcast_base::{manifest, output};
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::answers::{ANSWERS_FORMAT, HoldHistory};
use poolcast_holds::rehearsal::{
    REHEARSAL_FILE, Rehearsal, RehearsalDir, RehearsalSettings, RehearsalTally, RehearsalTimes,
    SettledAnswers, rehearse,
};
use poolcast_holds::training::Epoch;
use poolcast_queue::{Dispatch, ManagerOutcome, Queue};
use poolcast_sweep::config::Config;
use poolcast_sweep::{
    self as sweep, LocalWorkers, SweepFolder, TrialOutcome, TrialOutcomes, TrialRow, events_dir,
};
use poolcast_tensors::TensorSettings;

/// Manages `sweep` and works on it in this process; returns true if all trials have ended.
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

    let workers = LocalWorkers {
        workers: threads.min(sweep.plan.trials),
        limit,
        keep,
        stop: &stop,
    };
    let progress = TrialProgress::new(sweep)?;
    let tracking = begin_tracking(&sweep.config, &sweep.dir, &stop);

    let prepare = |samples: &[TensorSettings]| {
        progress
            .bar
            .suspend(|| make_tensors(sweep, &events_dir(&sweep.dir), samples))
    };
    let epoch = |trial: usize, epoch: &Epoch| {
        progress.epoch(trial, epoch.epoch);
        log_epoch(trial, epoch);
    };
    let ended = |row: &TrialRow| {
        progress.ended(row);
        tracing::info!("{}", trial_line(row, sweep));
    };
    let say = |text: &str| tracing::info!("{text}");
    let managed = output::with_progress_notes(
        || progress.text(),
        || sweep::run_locally(sweep, &queue, workers, prepare, epoch, ended, say),
    );
    progress.bar.finish_and_clear();
    end_tracking(tracking);

    let managed = managed?;
    let is_over = matches!(managed, ManagerOutcome::AllEnded(_));
    if !is_over {
        explain_unfinished(&managed, sweep)?;
    }
    Ok(is_over)
}

/// Refits the model that answers on all outcomes decided by the end of the log, and writes it to
/// `out`. All trials of `sweep` must have ended. Returns false if a signal stopped the fit.
pub(super) fn refit_best(sweep: &SweepFolder, out: &Path) -> Result<bool> {
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let say = || "the model that answers is fitted again, on all holds of the log".to_owned();
    let fitted = output::with_progress_notes(say, || sweep::refit_best(sweep, out, &is_stopped));
    if fitted.is_err() && is_stopped() {
        output::note("stopped; the same command goes on from there");
        return Ok(false);
    }
    fitted?;
    learn_answers(sweep, out, &is_stopped)
}

/// Learns what a log with too few holds for a trial's model shows, and writes it to `out`. Returns
/// false if a signal stopped it.
pub(super) fn learn_without_model(sweep: &SweepFolder, out: &Path) -> Result<bool> {
    let stop = stop_signal()?;
    learn_answers(sweep, out, &|| stop.load(Ordering::Relaxed))
}

/// Learns the model for questions in the middle of a hold, and writes it to `out`, with the counts
/// of the rehearsal beside it, unless both are there or the sweep has no events of a log. Returns
/// false if a signal stopped it.
fn learn_answers(
    sweep: &SweepFolder,
    out: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let events = events_dir(&sweep.dir);
    let Some(events_key) = manifest::finished_key(&events, EVENTS_FORMAT) else {
        return Ok(true);
    };
    let Config { advice, seed, .. } = &sweep.config;
    let dir = sweep::answers_dir(out);
    let key = manifest::key(&(events_key, advice, seed))?;
    let is_counted = out.join(REHEARSAL_FILE).is_file();
    if is_counted && manifest::finished_key(&dir, ANSWERS_FORMAT).as_ref() == Some(&key) {
        return Ok(true);
    }

    let store = EventStore::open(&events)?;
    let history = HoldHistory::new(&store);
    let settings = RehearsalSettings {
        times: RehearsalTimes::Models(advice.rehearsed_models),
        advice,
        seed: *seed,
    };
    let learned = rehearse_with_progress(&history, &settings, None, is_stopped).and_then(|made| {
        let tally = RehearsalTally::new(&SettledAnswers::by_evidence(&made.answers, &history));
        let answers = made.learn_answers(&history, &settings, is_stopped)?;
        Ok((tally, answers))
    });
    match learned {
        Ok((tally, answers)) => {
            tally.write(out)?;
            if let Some(answers) = answers {
                answers.write(&dir, &key)?;
            }
            Ok(true)
        }
        Err(_) if is_stopped() => {
            output::note("stopped; the same command goes on from there");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Rehearses with a progress bar over the models. The answers of finished models are in `kept`.
pub(super) fn rehearse_with_progress(
    history: &HoldHistory<'_>,
    settings: &RehearsalSettings<'_>,
    kept: Option<&RehearsalDir>,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Rehearsal> {
    let models = settings.times.models(history)?;
    let bar = output::item_bar(models as u64, "rehearsed models");
    let done = kept.map_or(0, |kept| kept.kept_models(models));
    if done > 0 {
        output::note(&format!(
            "the answers of {done} of {} are kept",
            output::counted(models, "model")
        ));
    }
    let rehearsal = rehearse(history, settings, kept, is_stopped, |models| {
        bar.set_position(models as u64);
    });
    bar.finish_and_clear();
    rehearsal
}

/// Progress of the trials of a sweep, in epochs. The trial of a pipeline counts as one epoch.
struct TrialProgress {
    bar: ProgressBar,
    trials: usize,
    /// Epochs of a network.
    epochs: usize,
    /// Epochs that earlier calls have done.
    begun: u64,
    ended: AtomicUsize,
    /// Epochs counted so far, by trial of a network at work.
    counted: Mutex<BTreeMap<usize, usize>>,
}

impl TrialProgress {
    /// Starts with the trials that have already ended.
    fn new(sweep: &SweepFolder) -> Result<TrialProgress> {
        let networks = sweep::network_trial_count(&sweep.config)?;
        let trials = sweep.plan.trials;
        let epochs = sweep.config.epochs;
        let steps = |networks: usize, trials: usize| {
            (networks * epochs + trials.saturating_sub(networks)) as u64
        };

        let outcomes = TrialOutcomes::read(sweep)?;
        let ended = outcomes.all().len();
        let is_network = |outcome: &&TrialOutcome| outcome.trial <= networks;
        let ended_networks = outcomes.all().iter().filter(is_network).count();

        let bar = output::item_bar(steps(networks, trials), "epochs of all trials");
        let begun = steps(ended_networks, ended);
        bar.set_position(begun);

        Ok(TrialProgress {
            bar,
            trials,
            epochs,
            begun,
            ended: AtomicUsize::new(ended),
            counted: Mutex::default(),
        })
    }

    /// Counts the epochs that the network of `trial` has done. An earlier process may have done
    /// most of them.
    fn epoch(&self, trial: usize, epochs: usize) {
        let Ok(mut counted) = self.counted.lock() else {
            return;
        };
        let before = counted.insert(trial, epochs).unwrap_or(0);
        self.bar.inc(epochs.saturating_sub(before) as u64);
    }

    fn ended(&self, row: &TrialRow) {
        let is_fit = !row.config.pipelines.is_empty();
        let has_full_budget = row.budget >= self.epochs;
        if is_fit {
            self.bar.inc(1);
        } else if has_full_budget {
            // The network stopped early or failed, so the bar skips its remaining epochs.
            self.epoch(row.trial, self.epochs);
        }

        if is_fit || has_full_budget {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The progress in words, for output without a bar.
    fn text(&self) -> String {
        let done = self.bar.position();
        let all = self.bar.length().unwrap_or(0);
        let ended = self.ended.load(Ordering::Relaxed);

        format!(
            "{ended} of {} have ended, {done} of {}{}",
            output::counted(self.trials, "trial"),
            output::counted(all as usize, "epoch"),
            self.remaining_words(done, all)
        )
    }

    /// The forecast of the remaining time; empty until an epoch of this call is done.
    fn remaining_words(&self, done: u64, all: u64) -> String {
        let done_here = done.saturating_sub(self.begun);
        let rest = all.saturating_sub(done);
        let left = output::remaining_time(done_here, rest, self.bar.elapsed());
        match left.map(|left| i64::try_from(left.as_millis())) {
            Some(Ok(left_ms)) => format!(", about {} remain", output::time_span(left_ms)),
            _ => String::new(),
        }
    }
}

/// Prints a note if the sweep is paused.
pub(super) fn note_pause(queue: &Queue, sweep: &SweepFolder) {
    if queue.is_paused() || queue.hand_out() == Dispatch::Paused {
        let place = sweep.dir.display();
        output::note(&format!(
            "the sweep is paused; `poolcast sweep resume {place}` lets it go on"
        ));
    }
}

/// Prints that a sweep was stopped; returns the exit code.
///
/// # Errors
/// Fails with a retryable error if another process manages the sweep.
pub(super) fn explain_unfinished(managed: &ManagerOutcome, sweep: &SweepFolder) -> Result<u8> {
    let place = sweep.dir.display();
    if let ManagerOutcome::OtherManager(other) = managed {
        return Err(too_early(
            format!("`{place}` is managed by {other}"),
            format!("wait until it is done; `poolcast sweep status {place}` shows how far it is"),
        )
        .into());
    }
    output::note(&format!(
        "the sweep in `{place}` was stopped; the same command goes on from there"
    ));
    Ok(EXIT_RETRY)
}
