//! Runs a sweep to its end in this process, as manager and workers, and shows the progress.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

use super::preparation::make_tensors;
use super::progress::{Progress, Stage};
use super::signals::{stop_signal, stopped_words};
use super::text::trials::{log_epoch, trial_line};
use super::tracking::{begin_tracking, end_tracking};
use poolcast_base::error::{EXIT_RETRY, too_early};
use poolcast_base::{manifest, output};
use poolcast_config::Metric;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::answers::{ANSWERS_FORMAT, HoldHistory};
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::rehearsal::{
    REHEARSAL_FILE, Rehearsal, RehearsalDir, RehearsalSettings, RehearsalTally, RehearsalTimes,
    SettledAnswers, rehearse,
};
use poolcast_holds::training::Epoch;
use poolcast_queue::{Dispatch, ManagerOutcome, Queue};
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{
    self as sweep, LocalWorkers, SweepFolder, TrialEnd, TrialOutcomes, TrialRow, events_dir,
};
use poolcast_tensors::TensorSettings;

/// Costs of work, in seconds on the machine on which they were measured. Only their ratios matter: the speed of the
/// stages before scales them.
const TRIAL_S_PER_HOLD: f64 = 4e-4;
const SCORE_S_PER_HOLD: f64 = 2e-7;
const ANSWER_S_PER_HOLD: f64 = 1.5e-4;

/// Holds whose columns take as long as the fits of a model, which learns from a limited number of rows.
const HOLDS_PER_FIT: u64 = 3000;

/// Units of the progress per trial.
const UNITS_PER_TRIAL: f64 = 1000.0;

/// Manages `sweep` and works on it in this process; returns true if all trials have ended.
pub(super) fn run_to_end(
    sweep: &SweepFolder,
    threads: usize,
    limit: Duration,
    keep: usize,
    progress: &Progress,
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
    foresee(sweep, threads, progress)?;
    let shown = TrialProgress::begin(sweep, workers.workers, progress)?;
    let tracking = begin_tracking(&sweep.config, &sweep.dir, &stop);

    let prepare = |samples: &[TensorSettings]| {
        make_tensors(sweep, &events_dir(&sweep.dir), samples, progress)?;
        shown.show();
        Ok(())
    };
    let epoch = |trial: usize, epoch: &Epoch| {
        shown.epoch(trial, epoch.epoch);
        log_epoch(trial, epoch);
    };
    let ended = |row: &TrialRow| {
        shown.ended(row);
        tracing::info!("{}", trial_line(row, sweep));
    };
    let say = |text: &str| tracing::info!("{text}");
    let managed = sweep::run_locally(sweep, &queue, workers, prepare, epoch, ended, say);
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
pub(super) fn learn_answers(sweep: &SweepFolder, out: &Path, progress: &Progress) -> Result<bool> {
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let advice = sweep::find_members(&sweep.config)?;
    let Some(key) = key_of_missing_answers(sweep, &advice, out)? else {
        return Ok(true);
    };
    let store = EventStore::open(&events_dir(&sweep.dir))?;
    let history = HoldHistory::new(&store);
    let settings = rehearsal_settings(&advice, sweep.config.seed);
    let learn = || -> Result<_> {
        let holds = store.summary.hold_count();
        let made = rehearse_with_progress(&history, holds, &settings, None, &is_stopped, progress)?;
        let settled = SettledAnswers::by_evidence(&made.answers, &history);
        let tally = RehearsalTally::of_rehearsal(&settled, &settings);
        let answers = made.learn_answers(&history, &settings, &is_stopped)?;
        Ok((tally, answers))
    };
    match learn() {
        Ok((tally, answers)) => {
            tally.write(out)?;
            if let Some(answers) = answers {
                answers.write(&sweep::answers_dir(out), &key)?;
            }
            Ok(true)
        }
        Err(_) if is_stopped() => {
            output::note(&stopped_words(out));
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

/// Rehearses a log with `holds` holds, and shows the models that are done. The answers of finished models are in `kept`.
pub(super) fn rehearse_with_progress(
    history: &HoldHistory<'_>,
    holds: u64,
    settings: &RehearsalSettings<'_>,
    kept: Option<&RehearsalDir>,
    is_stopped: &(dyn Fn() -> bool + Sync),
    progress: &Progress,
) -> Result<Rehearsal> {
    let models = settings.times.models(history)?;
    let done = kept.map_or(0, |kept| kept.kept_models(models));
    if done > 0 {
        output::note(&format!(
            "the answers of {done} of {} are kept",
            output::counted(models, "model")
        ));
    }

    let work = |count| work_of(count, models, holds);
    progress.begin(Stage::Answers, work(models + 1), work(done));
    progress.expect(Stage::Answers, answers_s(models, holds));
    let asked = |count: usize| {
        let text = match count == models {
            true => "learning the answers from the whole log".to_owned(),
            false => format!(
                "rehearsing answers, {count} of {}",
                output::counted(models, "model")
            ),
        };
        progress.set(Stage::Answers, work(count), text);
    };
    asked(done);
    rehearse(history, settings, kept, is_stopped, asked)
}

/// The work of the first `count` of the `models` models of a rehearsal of a log with `holds` holds, and of the one that
/// learns from the whole log after them. A model is fitted to a limited number of rows, and looks at all holds of the
/// part of the log that it learns from, which is 30 % for the first one.
fn work_of(count: usize, models: usize, holds: u64) -> u64 {
    let seen = |model: usize| holds * (3 * models + 7 * model) as u64 / (10 * models.max(1)) as u64;
    (0..count).map(|model| HOLDS_PER_FIT + seen(model)).sum()
}

/// The expected time of a rehearsal and of the learning after it, in seconds.
fn answers_s(models: usize, holds: u64) -> f64 {
    ANSWER_S_PER_HOLD * work_of(models + 1, models, holds) as f64
}

/// Sets the expected times of the stages after the logs were read, if the sweep has logs.
fn foresee(sweep: &SweepFolder, threads: usize, progress: &Progress) -> Result<()> {
    if sweep.config.trial_source() != TrialSource::Logs {
        progress.expect(Stage::Answers, 0.0);
        return Ok(());
    }
    let holds = EventStore::open(&events_dir(&sweep.dir))?
        .summary
        .hold_count();
    let trials = (sweep.plan.trials as u64 * holds) as f64 / threads.max(1) as f64;
    progress.expect(Stage::Trials, TRIAL_S_PER_HOLD * trials);
    let resampled = sweep.config.evaluation.resamples as u64 * holds;
    progress.expect(Stage::Scores, SCORE_S_PER_HOLD * resampled as f64);
    let models = sweep.config.advice.rehearsed_models as usize;
    progress.expect(Stage::Answers, answers_s(models, holds));
    Ok(())
}

/// Progress of the trials of a sweep. The share of a network's epochs counts while it is at work.
struct TrialProgress<'a> {
    progress: &'a Progress,
    trials: usize,
    /// Epochs of a network.
    epochs: usize,
    workers: usize,
    metric: Metric,
    counts: Mutex<TrialCounts>,
}

/// The trials that have ended, and the networks at work.
#[derive(Default)]
struct TrialCounts {
    done: usize,
    failed: usize,
    /// The best trial, with its value.
    best: Option<(usize, f64)>,
    /// Epochs of networks at work, by trial.
    at_work: BTreeMap<usize, usize>,
}

impl TrialProgress<'_> {
    /// Begins with the trials that have already ended.
    fn begin<'a>(
        sweep: &SweepFolder,
        workers: usize,
        progress: &'a Progress,
    ) -> Result<TrialProgress<'a>> {
        let outcomes = TrialOutcomes::read(sweep)?;
        let metric = sweep.config.wandb.sweep.metric.first().clone();
        let done = outcomes
            .all()
            .iter()
            .filter(|outcome| outcome.ended == TrialEnd::Done);
        let done = done.count();
        let best = sweep::best_outcome(&metric, &outcomes);
        let counts = TrialCounts {
            done,
            failed: outcomes.all().len() - done,
            best: best.map(|best| (best.trial, best.value)),
            at_work: BTreeMap::new(),
        };
        let trials = sweep.plan.trials;
        let units = |trials: usize| (trials as f64 * UNITS_PER_TRIAL) as u64;
        progress.begin(Stage::Trials, units(trials), units(outcomes.all().len()));
        let shown = TrialProgress {
            progress,
            trials,
            epochs: sweep.config.epochs.max(1),
            workers,
            metric,
            counts: Mutex::new(counts),
        };
        shown.show();
        Ok(shown)
    }

    /// Counts the epochs that the network of `trial` has done.
    fn epoch(&self, trial: usize, epochs: usize) {
        self.change(|counts| {
            counts.at_work.insert(trial, epochs.min(self.epochs));
        });
    }

    fn ended(&self, row: &TrialRow) {
        if row.config.pipelines.is_empty() && row.budget < self.epochs {
            // A network that may go on at the next rung.
            return self.epoch(row.trial, row.budget);
        }
        self.change(|counts| {
            counts.at_work.remove(&row.trial);
            match row.ended {
                TrialEnd::Done => counts.done += 1,
                _ => counts.failed += 1,
            }
            if let Some(value) = row.value {
                let next = (row.trial, value);
                let both = counts.best.into_iter().chain([next]);
                counts.best = self.metric.goal.best(both, |(_, value)| *value);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut TrialCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        self.show();
    }

    /// Shows the counts in the words of `sweep status`.
    fn show(&self) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = counts.done + counts.failed;
        let mut text = format!(
            "{}: {} done, {} failed, {} running",
            output::counted(self.trials, "trial"),
            counts.done,
            counts.failed,
            self.trials.saturating_sub(ended).min(self.workers)
        );
        if let Some((trial, value)) = counts.best {
            let (title, value) = (self.metric.title(), self.metric.value_text(value));
            text += &format!("; best: trial {trial} with {title} {value}");
        }
        let epochs: usize = counts.at_work.values().sum();
        let units = ended as f64 + epochs as f64 / self.epochs as f64;
        let units = (units * UNITS_PER_TRIAL) as u64;
        self.progress.set(Stage::Trials, units, text);
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
    output::note(&stopped_words(&sweep.dir));
    Ok(EXIT_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_models_of_a_rehearsal_take_longer_in_long_logs() {
        assert_eq!(work_of(0, 20, 1000), 0);
        let ratio = |holds| work_of(21, 20, holds) as f64 / work_of(10, 20, holds) as f64;
        assert!((2.0..2.2).contains(&ratio(100)), "{}", ratio(100));
        assert!(
            (2.8..3.1).contains(&ratio(1_000_000)),
            "{}",
            ratio(1_000_000)
        );
    }
}
