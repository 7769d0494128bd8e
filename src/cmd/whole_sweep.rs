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
use htcondor_eventlog::HELD;
use poolcast_base::error::{EXIT_RETRY, too_early};
use poolcast_base::{manifest, output};
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::answers::{ANSWERS_FORMAT, HoldHistory};
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::rehearsal::{
    REHEARSAL_FILE, Rehearsal, RehearsalDir, RehearsalSettings, RehearsalTally, RehearsalTimes,
    SettledAnswers, rehearse, time_first_model,
};
use poolcast_holds::training::Epoch;
use poolcast_queue::{Dispatch, ManagerOutcome, Queue};
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{
    self as sweep, LocalWorkers, SweepFolder, TrialOutcome, TrialOutcomes, TrialRow, events_dir,
};
use poolcast_tensors::TensorSettings;

/// Number of holds from which on the time of the answers is forecast. The first model of the rehearsal
/// learns once more for that; fewer holds are rehearsed within seconds.
const MIN_FORECAST_HOLDS: u64 = 20_000;

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
    let is_stopped = || stop.load(Ordering::Relaxed);
    // A failure is reported when the answers are learned.
    let answers_time = forecast_answers(sweep, &is_stopped).unwrap_or_default();
    let progress = TrialProgress::new(sweep, answers_time)?;
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

/// Learns the model for questions in the middle of a hold, and writes it to `out`, with the counts
/// of the rehearsal beside it, unless both are there or the sweep has no events of a log. Returns
/// false if a signal stopped it.
pub(super) fn learn_answers(sweep: &SweepFolder, out: &Path) -> Result<bool> {
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let advice = sweep::find_members(&sweep.config)?;
    let Some(key) = key_of_missing_answers(sweep, &advice, out)? else {
        return Ok(true);
    };
    let store = EventStore::open(&events_dir(&sweep.dir))?;
    let history = HoldHistory::new(&store);
    let settings = rehearsal_settings(&advice, sweep.config.seed);
    let progress = LearningProgress::new(settings.times.models(&history)?);
    let learned = progress.show(|| -> Result<_> {
        let made = rehearse(&history, &settings, None, &is_stopped, |models| {
            progress.asked(models);
        })?;
        let settled = SettledAnswers::by_evidence(&made.answers, &history);
        let tally = RehearsalTally::of_rehearsal(&settled, &settings);
        let answers = made.learn_answers(&history, &settings, &is_stopped)?;
        Ok((tally, answers))
    });
    match learned {
        Ok((tally, answers)) => {
            tally.write(out)?;
            if let Some(answers) = answers {
                answers.write(&sweep::answers_dir(out), &key)?;
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

/// Returns the digest of what the answers of `sweep` are learned from, with the settings `advice`; `None`
/// if they are in `out`, with the counts of their rehearsal, or if the sweep has no events of a log.
fn key_of_missing_answers(
    sweep: &SweepFolder,
    advice: &AdviceConfig,
    out: &Path,
) -> Result<Option<String>> {
    let events_key = manifest::finished_key(&events_dir(&sweep.dir), EVENTS_FORMAT);
    let Some(events_key) = events_key else {
        return Ok(None);
    };
    let key = manifest::key(&(events_key, advice, sweep.config.seed))?;
    let found = manifest::finished_key(&sweep::answers_dir(out), ANSWERS_FORMAT);
    let is_there = out.join(REHEARSAL_FILE).is_file() && found.as_ref() == Some(&key);
    Ok((!is_there).then_some(key))
}

fn rehearsal_settings(advice: &AdviceConfig, seed: u64) -> RehearsalSettings<'_> {
    RehearsalSettings {
        times: RehearsalTimes::Models(advice.rehearsed_models),
        advice,
        seed,
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
    let done = kept.map_or(0, |kept| kept.kept_models(models));
    if done > 0 {
        output::note(&format!(
            "the answers of {done} of {} are kept",
            output::counted(models, "model")
        ));
    }
    let progress = LearningProgress::new(models);
    progress.show(|| {
        rehearse(history, settings, kept, is_stopped, |models| {
            progress.asked(models);
        })
    })
}

/// Progress of a rehearsal, and of the model that learns from the whole log after it.
struct LearningProgress {
    bar: ProgressBar,
    /// Number of models of the rehearsal.
    models: usize,
    /// Those that have been asked.
    asked: AtomicUsize,
}

impl LearningProgress {
    fn new(models: usize) -> LearningProgress {
        let bar = output::fraction_bar();
        bar.set_message("models rehearsed");
        bar.set_length(work_of(models + 1, models));
        let progress = LearningProgress {
            bar,
            models,
            asked: AtomicUsize::new(0),
        };
        progress.asked(0);
        progress
    }

    /// Shows the progress while `work` lasts.
    fn show<T>(&self, work: impl FnOnce() -> T) -> T {
        let done = output::with_progress_notes(|| self.text(), work);
        self.bar.finish_and_clear();
        done
    }

    /// Shows that `models` models have learned and been asked.
    fn asked(&self, models: usize) {
        self.asked.store(models, Ordering::Relaxed);
        self.bar.set_prefix(format!("{models}/{}", self.models));
        self.bar.set_position(work_of(models, self.models));
    }

    /// The progress in words, for output without a bar.
    fn text(&self) -> String {
        let asked = self.asked.load(Ordering::Relaxed);
        if asked == self.models {
            return "the answers are learned from the whole log".to_owned();
        }
        let done = work_of(asked, self.models);
        let rest = work_of(self.models + 1, self.models) - done;
        let left = output::remaining_time(done, rest, self.bar.elapsed());
        format!(
            "the answers are rehearsed: {asked} of {}{}",
            output::counted(self.models, "model"),
            left.map_or_else(String::new, |left| format!(", {}", remaining_words(left)))
        )
    }
}

/// The work of the first `count` of the `models` models of a rehearsal, and of the one that learns from
/// the whole log after them. A model takes as long as the part of the log that it learns from, which is
/// 30 % for the first one.
fn work_of(count: usize, models: usize) -> u64 {
    let share_of_log = |model: usize| (3 * models + 7 * model) as u64;
    (0..count).map(share_of_log).sum()
}

/// The forecast that the time `left` remains.
fn remaining_words(left: Duration) -> String {
    let left_ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
    format!("about {} remain", output::time_span(left_ms))
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
    /// The time that the answers take after the trials.
    answers_time: Duration,
    /// Epochs counted so far, by trial of a network at work.
    counted: Mutex<BTreeMap<usize, usize>>,
}

impl TrialProgress {
    /// Starts with the trials that have already ended.
    fn new(sweep: &SweepFolder, answers_time: Duration) -> Result<TrialProgress> {
        let networks = sweep::network_trial_count(&sweep.config)?;
        let trials = sweep.plan.trials;
        let epochs = sweep.config.epochs;
        let steps = |networks: usize, trials: usize| {
            (networks * epochs + trials.saturating_sub(networks)) as u64
        };

        let outcomes = TrialOutcomes::read(sweep)?;
        let ended = outcomes.all().len();
        let numbered = sweep.trials()?;
        let is_network = |outcome: &&TrialOutcome| numbered.is_network(outcome.trial);
        let ended_networks = outcomes.all().iter().filter(is_network).count();

        let what = if answers_time.is_zero() {
            match sweep.config.trial_source() {
                TrialSource::Command => "trials".to_owned(),
                _ => "epochs of all trials".to_owned(),
            }
        } else {
            let answers_ms = i64::try_from(answers_time.as_millis()).unwrap_or(i64::MAX);
            format!(
                "epochs of all trials, before {} for the answers",
                output::time_span(answers_ms)
            )
        };
        let bar = output::item_bar(steps(networks, trials), &what);
        let begun = steps(ended_networks, ended);
        bar.set_position(begun);

        Ok(TrialProgress {
            bar,
            trials,
            epochs,
            begun,
            ended: AtomicUsize::new(ended),
            answers_time,
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

        let trials = output::counted(self.trials, "trial");
        let epochs = if all == self.trials as u64 {
            String::new()
        } else {
            format!(", {done} of {}", output::counted(all as usize, "epoch"))
        };
        let remaining = self.remaining_words(done, all);
        format!("{ended} of {trials} have ended{epochs}{remaining}")
    }

    /// The forecast of the remaining time; empty until an epoch of this call is done.
    fn remaining_words(&self, done: u64, all: u64) -> String {
        let done_here = done.saturating_sub(self.begun);
        let rest = all.saturating_sub(done);
        match output::remaining_time(done_here, rest, self.bar.elapsed()) {
            Some(left) => format!(
                ", {}",
                remaining_words(left.saturating_add(self.answers_time))
            ),
            None => String::new(),
        }
    }
}

/// Returns the time that the answers of `sweep` will take to be rehearsed and learned after its trials;
/// zero if they are there, or if the log is so short that it takes seconds.
fn forecast_answers(
    sweep: &SweepFolder,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Duration> {
    let advice = sweep::find_members(&sweep.config)?;
    if key_of_missing_answers(sweep, &advice, &sweep.dir)?.is_none() {
        return Ok(Duration::ZERO);
    }
    let store = EventStore::open(&events_dir(&sweep.dir))?;
    let holds = store.summary.events_by_number.get(&HELD);
    if holds.is_none_or(|holds| *holds < MIN_FORECAST_HOLDS) {
        return Ok(Duration::ZERO);
    }
    let settings = rehearsal_settings(&advice, sweep.config.seed);
    let first = time_first_model(&HoldHistory::new(&store), &settings, is_stopped)?;
    let models = advice.rehearsed_models as usize;
    let work = work_of(models + 1, models) as f64 / work_of(1, models) as f64;
    Ok(first.mul_f64(work))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecast_of_the_trials_counts_the_answers_after_them() {
        let progress = TrialProgress {
            bar: output::item_bar(10, "epochs of all trials"),
            trials: 2,
            epochs: 5,
            begun: 0,
            ended: AtomicUsize::new(0),
            answers_time: Duration::from_secs(9 * 3600),
            counted: Mutex::default(),
        };
        progress.bar.set_position(5);
        assert_eq!(
            progress.text(),
            "0 of 2 trials have ended, 5 of 10 epochs, about 9 h 0 min remain"
        );
    }

    #[test]
    fn later_models_of_a_rehearsal_take_longer() {
        assert_eq!(work_of(0, 20), 0);
        let [half, all] = [10, 21].map(|count| work_of(count, 20) as f64);
        assert!((2.9..3.1).contains(&(all / half)), "{half} of {all}");

        let progress = LearningProgress::new(2);
        assert_eq!(progress.text(), "the answers are rehearsed: 0 of 2 models");
        progress.asked(1);
        let text = progress.text();
        assert!(
            text.starts_with("the answers are rehearsed: 1 of 2 models, about "),
            "{text}"
        );
        progress.asked(2);
        assert_eq!(
            progress.text(),
            "the answers are learned from the whole log"
        );
    }
}
