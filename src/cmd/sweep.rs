//! `poolcast sweep`: a search space → trials by workers that share a folder, their results, the best one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use indicatif::ProgressBar;

use super::run::{EVENTS, begin, make_tensors};
use super::train::{line, stop_signal};
use super::{choices, dag, evaluate, listing, trials};
use crate::cli::{
    SweepCleanupArgs, SweepEvaluateArgs, SweepInitArgs, SweepManageArgs, SweepShowArgs,
    SweepStatusArgs, SweepStep, SweepWorkArgs,
};
use crate::condor::{self, is_dag, results};
use crate::config::Config;
use crate::error::{EXIT_DONE, EXIT_RETRY, hinted, too_early};
use crate::queue::{ManagerOutcome, Queue};
use crate::sweep::{
    self, LocalWorkers, RunningTrial, SweepFolder, SweepStatus, TrialOutcomes, TrialRow,
};
use crate::training::Epoch;
use crate::{escape, manifest, output};

/// How often a status on a terminal is drawn anew.
const REDRAW: Duration = Duration::from_secs(2);

/// Does one step.
pub fn run(step: &SweepStep, threads: usize) -> Result<u8> {
    match step {
        SweepStep::Init(args) => init(args),
        SweepStep::Manage(args) => manage(args),
        SweepStep::Work(args) => work(args),
        SweepStep::Run(args) => all(&args.manage, args.trial_timeout, threads),
        SweepStep::List(args) => listing::list(args),
        SweepStep::Pause(args) => pause(&args.dir),
        SweepStep::Resume(args) => resume(&args.dir),
        SweepStep::Status(args) => match results(&args.show.dir)? {
            dir if is_dag(&dir) => dag::status(&args.show, &dir),
            _ => status(args),
        },
        SweepStep::Best(args) => match results(&args.dir)? {
            dir if is_dag(&dir) => dag::best(args, &dir),
            dir => best(args, &dir),
        },
        SweepStep::Evaluate(args) => evaluate(args),
        SweepStep::Trials(args) => trials::run(args),
        SweepStep::Conclude(args) => trials::conclude(args),
        SweepStep::Cleanup(args) => cleanup(args),
    }
}

fn init(args: &SweepInitArgs) -> Result<u8> {
    let config = choices::config(args)?;
    let begun = if args.overwrite {
        None
    } else {
        SweepFolder::open_if_begun(&config.out, &config)?
    };
    let sweep = match begun {
        Some(sweep) => sweep,
        None => begin(&config, &args.config, args.overwrite)?,
    };
    choices::note_repeats(&sweep)?;
    let (trials, are) = (
        sweep.plan.trials,
        if sweep.plan.trials == 1 { "is" } else { "are" },
    );
    output::print(&format!(
        "{} {are} to be done in {}\n",
        output::counted(trials, "trial"),
        escape::path(&sweep.dir)
    ))?;
    Ok(EXIT_DONE)
}

fn manage(args: &SweepManageArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = open(args)?;
    let Some(queue) = sweep.queue()? else {
        return summary(&sweep);
    };
    note_pause(&queue, &sweep);
    let prepare = |trials: &[Config]| make_tensors(&sweep, &sweep.dir.join(EVENTS), trials);
    match sweep::manage_trials(
        &sweep,
        &queue,
        args.keep as usize,
        &stop,
        prepare,
        output::note,
    )? {
        ManagerOutcome::AllEnded(_) => summary(&sweep),
        managed => Ok(not_over(&managed, &sweep)),
    }
}

fn work(args: &SweepWorkArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = SweepFolder::open(&args.dir)?;
    let Some(queue) = sweep.queue()? else {
        output::note("all trials have ended");
        return Ok(EXIT_DONE);
    };
    if queue.sealed_trials()?.is_none() {
        output::note("waiting for `poolcast sweep manage` to fill the queue");
    }
    note_pause(&queue, &sweep);
    let (count, last) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let ended = |row: &TrialRow| {
        let text = ended(row, &sweep);
        count.fetch_add(1, Ordering::Relaxed);
        // Fits may end by the thousand a second.
        if row.fit.is_some() {
            tracing::info!("{text}")
        } else {
            output::note(&text)
        }
        if let Ok(mut last) = last.lock() {
            *last = text;
        }
    };
    let far = || {
        let last = last.lock().map(|last| last.clone()).unwrap_or_default();
        format!(
            "{} done here; the last was {}",
            output::counted(count.load(Ordering::Relaxed), "trial"),
            if last.is_empty() { "none" } else { &last }
        )
    };
    let limit = trial_limit(args.trial_timeout);
    let tally = output::with_progress_notes(far, || {
        sweep::work_trials(&sweep, &queue, limit, &stop, tell, ended)
    })?;
    output::print(&format!(
        "{} done\n",
        output::counted(tally.acknowledged, "trial")
    ))?;
    if tally.stopped {
        output::note("stopped; what was begun is given back");
        return Ok(EXIT_RETRY);
    }
    Ok(EXIT_DONE)
}

/// The sweep in the folder, which must be the one that is asked for.
fn open(args: &SweepManageArgs) -> Result<SweepFolder> {
    let sweep = SweepFolder::open(&args.dir)?;
    choices::check_same(&sweep, &args.choice)?;
    Ok(sweep)
}

/// How long a trial may take; for ever, unless it is said.
fn trial_limit(seconds: Option<u32>) -> Duration {
    seconds.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()))
}

fn all(args: &SweepManageArgs, trial_timeout: Option<u32>, threads: usize) -> Result<u8> {
    let sweep = open(args)?;
    match to_end(
        &sweep,
        threads,
        trial_limit(trial_timeout),
        args.keep as usize,
    )? {
        true => summary(&sweep),
        false => Ok(EXIT_RETRY),
    }
}

/// Manages `sweep` and works on it in this process; whether all trials have ended.
pub(super) fn to_end(
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
            .suspend(|| make_tensors(sweep, &sweep.dir.join(EVENTS), trials))
    };
    let epoch = |trial: usize, epoch: &Epoch| {
        progress.epoch(trial, epoch.epoch);
        tell(trial, epoch);
    };
    let ended = |row: &TrialRow| {
        progress.ended(row);
        tracing::info!("{}", ended(row, sweep));
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

fn note_pause(queue: &Queue, sweep: &SweepFolder) {
    if queue.is_paused() {
        let place = sweep.dir.display();
        output::note(&format!(
            "the sweep is paused; `poolcast sweep resume {place}` lets it go on"
        ));
    }
}

fn pause(dir: &Path) -> Result<u8> {
    let is_new = open_queue(dir)?.pause()?;
    output::note(match is_new {
        true => {
            "paused: workers give back what they are at within seconds, and take nothing until `poolcast sweep resume`"
        }
        false => "it is paused already; `poolcast sweep resume` lets it go on",
    });
    Ok(EXIT_DONE)
}

fn resume(dir: &Path) -> Result<u8> {
    let was_paused = open_queue(dir)?.resume()?;
    output::note(if was_paused {
        "workers go on"
    } else {
        "it is not paused"
    });
    Ok(EXIT_DONE)
}

/// The queue of the sweep in `dir`, whose trials have not all ended.
fn open_queue(dir: &Path) -> Result<Queue> {
    ensure!(
        !is_dag(dir),
        hinted(
            format!("`{}` is the directory of a DAG", dir.display()),
            "`condor_hold` and `condor_release` pause its jobs"
        )
    );
    SweepFolder::open(dir)?.queue()?.with_context(|| {
        hinted(
            format!("all trials of `{}` have ended", dir.display()),
            "`poolcast sweep best DIR` shows the best",
        )
    })
}

/// Says of an epoch of a trial what diagnostics show.
pub(super) fn tell(trial: usize, epoch: &Epoch) {
    tracing::info!("trial {trial}: {}", line(epoch));
}

fn not_over(managed: &ManagerOutcome, sweep: &SweepFolder) -> u8 {
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

/// One line on a trial that has ended.
pub(super) fn ended(row: &TrialRow, sweep: &SweepFolder) -> String {
    let what = match (&row.error, row.value) {
        (Some(error), _) => format!("{}: {}", row.ended, escape::value(error)),
        (None, Some(value)) => format!("{} {value:.4}", sweep.config.wandb.sweep.metric.name),
        (None, None) => row.ended.to_string(),
    };
    format!("trial {}: {what}, {:.1} s", row.trial, row.seconds)
}

fn summary(sweep: &SweepFolder) -> Result<u8> {
    output::print(&text(&sweep::sweep_status(sweep)?))?;
    output::print(&format!(
        "results are in {}\n",
        escape::path(&sweep.dir.join(sweep::ROWS_FILE))
    ))?;
    if sweep.config.pipelines.is_empty() {
        sweep::choose_network(sweep, &sweep::trial_rows(sweep)?)?;
        return Ok(EXIT_DONE);
    }
    output::print(&choices::text(&choices::of(
        sweep,
        &mut TrialOutcomes::read(sweep)?,
    )?))?;
    Ok(EXIT_DONE)
}

fn status(args: &SweepStatusArgs) -> Result<u8> {
    let sweep = SweepFolder::open(&args.show.dir)?;
    if args.show.json {
        output::print_json(&sweep::sweep_status(&sweep)?)?;
        return Ok(EXIT_DONE);
    }
    let stop = stop_signal()?;
    loop {
        let status = sweep::sweep_status(&sweep)?;
        if args.once || !output::is_live() {
            output::print(&text(&status))?;
            return Ok(EXIT_DONE);
        }
        output::replace_screen(&text(&status))?;
        if status.is_over || stop.load(Ordering::Relaxed) {
            return Ok(EXIT_DONE);
        }
        std::thread::sleep(REDRAW);
    }
}

fn text(status: &SweepStatus) -> String {
    let failed: usize = status.failed.values().sum();
    let mut text = format!(
        "{}: {} done, {failed} failed, {} running, {} ready\n",
        output::counted(status.trials, "trial"),
        status.done,
        status.running.len(),
        status.ready
    );
    if status.is_paused {
        text.push_str("paused: nobody takes a trial until `poolcast sweep resume`\n");
    }
    for (how, count) in &status.failed {
        text.push_str(&format!("  failed, {how}: {count}\n"));
    }
    if let Some(best) = &status.best {
        text.push_str(&format!(
            "best: trial {} with {} {:.4}\n",
            best.trial, status.metric.name, best.value
        ));
    }
    if let (Some(rate), Some(remaining_s)) = (status.rate_per_hour, status.remaining_s) {
        text.push_str(&format!(
            "{} an hour, {} remain\n",
            output::counted(rate.round() as usize, "trial"),
            output::time_span((1000.0 * remaining_s) as i64)
        ));
    }
    if let Some(manager) = &status.manager {
        text.push_str(&format!(
            "managed by {}, heartbeat {}\n",
            manager.worker,
            ago(manager.heartbeat_s)
        ));
    }
    if !status.running.is_empty() {
        let head = [
            "running",
            "attempt",
            "epoch",
            "value",
            "for",
            "heartbeat",
            "worker",
        ]
        .map(str::to_owned)
        .to_vec();
        text.push_str(&output::aligned_table(
            &std::iter::once(head)
                .chain(status.running.iter().map(row))
                .collect::<Vec<_>>(),
        ));
    }
    text
}

fn row(running: &RunningTrial) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        format!("trial {}", running.trial),
        running.attempt.to_string(),
        or_dash(
            running
                .epoch
                .map(|epoch| format!("{epoch}/{}", running.budget)),
        ),
        or_dash(running.value.map(|value| format!("{value:.4}"))),
        or_dash(
            running
                .seconds
                .map(|seconds| output::time_span((1000.0 * seconds) as i64)),
        ),
        ago(running.by.heartbeat_s),
        running.by.worker.clone(),
    ]
}

fn ago(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |seconds| {
        format!("{} ago", output::time_span((1000.0 * seconds) as i64))
    })
}

pub(super) fn best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let sweep = SweepFolder::open(dir)?;
    if !sweep.config.pipelines.is_empty() {
        choices::show(&sweep, &mut TrialOutcomes::read(&sweep)?, args.json)?;
        return Ok(EXIT_DONE);
    }
    let rows = sweep::trial_rows(&sweep)?;
    let best = sweep::choose_network(&sweep, &rows).with_context(|| choices::no_best(&sweep))?;
    let row = rows
        .iter()
        .find(|row| row.trial == best.trial)
        .context("the best trial has a row")?;
    if args.json {
        output::print_json(row)?;
    } else {
        output::print(&best_text(&sweep, row, rows.len()))?;
    }
    Ok(EXIT_DONE)
}

fn best_text(sweep: &SweepFolder, row: &TrialRow, ended: usize) -> String {
    let dir = sweep::trial_dir(&sweep.dir, row.trial);
    let mut text = format!(
        "{}\nof {} that ended, of {}\n",
        self::ended(row, sweep),
        output::counted(ended, "trial"),
        sweep.plan.trials
    );
    let rows = row
        .parameters
        .iter()
        .map(|(name, value)| vec![format!("  {name}"), sweep::plain_value(value)]);
    text.push_str(&output::aligned_table(&rows.collect::<Vec<_>>()));
    text.push_str(&format!("its model is in {}\n", escape::path(&dir)));
    text
}

/// Scores the best trials of a finished sweep.
fn evaluate(args: &SweepEvaluateArgs) -> Result<u8> {
    let dir = results(&args.dir)?;
    let sweep = SweepFolder::open(&dir)?;
    ensure!(
        sweep.is_finished(),
        too_early(
            format!("the sweep in `{}` has not finished", dir.display()),
            "`poolcast sweep status DIR` shows how far it is"
        )
    );
    let out = args.out.as_deref().unwrap_or(&dir);
    let judged = sweep::evaluate_choices(&sweep, &sweep::trial_rows(&sweep)?, out)?;
    if let Some((_, evaluation)) = &judged.network {
        output::print(&evaluate::text(evaluation))?;
        output::print(&fs_err::read_to_string(out.join(sweep::INFO_FILE))?)?;
    }
    if !judged.choices.is_empty() {
        output::print(&choices::text(&judged.choices))?;
    }
    Ok(EXIT_DONE)
}

fn cleanup(args: &SweepCleanupArgs) -> Result<u8> {
    if condor::is_untidied(&args.dir)? || !args.dir.join(manifest::FILE).exists() {
        return dag::cleanup(args);
    }
    ensure!(
        !args.dry_run,
        "`--dry-run` is for the directory of a DAG; here nothing moves"
    );
    sweep::clean_up(
        &SweepFolder::open(&args.dir)?,
        args.keep.map(|keep| keep as usize),
    )?;
    Ok(EXIT_DONE)
}
