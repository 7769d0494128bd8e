//! `poolcast sweep`: a search space → trials by workers that share a folder, their results, the best one.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::run::{EVENTS, begin, make_tensors};
use super::train::{line, stop_signal};
use super::{choices, dag, evaluate, trials};
use crate::cli::{
    SweepCleanupArgs, SweepEvaluateArgs, SweepInitArgs, SweepManageArgs, SweepShowArgs, SweepStep, SweepWorkArgs,
};
use crate::condor::{self, is_dag, results};
use crate::config::Config;
use crate::error::{EXIT_DONE, EXIT_RETRY, early};
use crate::sweep::queue::Managed;
use crate::sweep::{self, Hands, Row, Running, Status, Sweep};
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
        SweepStep::Status(args) => match results(&args.dir)? {
            dir if is_dag(&dir) => dag::status(args, &dir),
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
    let begun = if args.overwrite { None } else { Sweep::begun(&config.out, &config)? };
    let sweep = match begun {
        Some(sweep) => sweep,
        None => begin(&config, &args.config, args.overwrite)?,
    };
    choices::note_repeats(&sweep)?;
    let (trials, are) = (sweep.plan.trials, if sweep.plan.trials == 1 { "is" } else { "are" });
    output::data(&format!("{} {are} to be done in {}\n", output::many(trials, "trial"), escape::path(&sweep.dir)))?;
    Ok(EXIT_DONE)
}

fn manage(args: &SweepManageArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = open(args)?;
    let Some(queue) = sweep.queue()? else { return summary(&sweep) };
    let prepare = |trials: &[Config]| make_tensors(&sweep, &sweep.dir.join(EVENTS), trials);
    match sweep::manage_trials(&sweep, &queue, keep(args), &stop, prepare, output::note)? {
        Managed::Over(_) => summary(&sweep),
        managed => Ok(not_over(&managed, &sweep)),
    }
}

fn work(args: &SweepWorkArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = Sweep::open(&args.dir)?;
    let Some(queue) = sweep.queue()? else {
        output::note("all trials have ended");
        return Ok(EXIT_DONE);
    };
    if queue.sealed()?.is_none() {
        output::note("waiting for `poolcast sweep manage` to fill the queue");
    }
    let limit = Duration::from_secs(args.trial_timeout.into());
    let tally = sweep::work_trials(&sweep, &queue, limit, &stop, tell, |row| output::note(&ended(row, &sweep)))?;
    output::data(&format!("{} done\n", output::many(tally.acknowledged, "trial")))?;
    if tally.stopped {
        output::note("stopped; what was begun is given back");
        return Ok(EXIT_RETRY);
    }
    Ok(EXIT_DONE)
}

/// The sweep in the folder, which must be the one that is asked for.
fn open(args: &SweepManageArgs) -> Result<Sweep> {
    let sweep = Sweep::open(&args.dir)?;
    choices::check_same(&sweep, &args.choice)?;
    Ok(sweep)
}

fn all(args: &SweepManageArgs, trial_timeout: u32, threads: usize) -> Result<u8> {
    let sweep = open(args)?;
    match to_end(&sweep, threads, Duration::from_secs(trial_timeout.into()), keep(args))? {
        true => summary(&sweep),
        false => Ok(EXIT_RETRY),
    }
}

/// Manages `sweep` and works on it in this process; whether all trials have ended.
pub(super) fn to_end(sweep: &Sweep, threads: usize, limit: Duration, keep: Option<usize>) -> Result<bool> {
    let stop = stop_signal()?;
    let Some(queue) = sweep.queue()? else { return Ok(true) };
    let hands = Hands { workers: threads.min(sweep.plan.trials), limit, keep, stop: &stop };
    // A trial of a pipeline counts as one epoch.
    let networks = sweep::networks(&sweep.config)?;
    let steps = networks * sweep.config.epochs + sweep.plan.trials.saturating_sub(networks);
    let bar = output::item_bar(steps as u64, "epochs of all trials");
    let prepare = |trials: &[Config]| bar.suspend(|| make_tensors(sweep, &sweep.dir.join(EVENTS), trials));
    let progress = |trial: usize, epoch: &Epoch| {
        bar.inc(1);
        tell(trial, epoch);
    };
    let ended = |row: &Row| {
        bar.inc(u64::from(!row.config.pipelines.is_empty()));
        tracing::info!("{}", ended(row, sweep));
    };
    let say = |text: &str| tracing::info!("{text}");
    let managed = sweep::run_here(sweep, &queue, hands, prepare, progress, ended, say);
    bar.finish_and_clear();
    let managed = managed?;
    let is_over = matches!(managed, Managed::Over(_));
    if !is_over {
        not_over(&managed, sweep);
    }
    Ok(is_over)
}

/// Says of an epoch of a trial what diagnostics show.
pub(super) fn tell(trial: usize, epoch: &Epoch) {
    tracing::info!("trial {trial}: {}", line(epoch));
}

fn keep(args: &SweepManageArgs) -> Option<usize> {
    args.keep.map(|keep| keep as usize)
}

fn not_over(managed: &Managed, sweep: &Sweep) -> u8 {
    let place = sweep.dir.display();
    match managed {
        Managed::Elsewhere(other) => output::note(&format!("`{place}` is managed by {other}")),
        _ => output::note(&format!("the sweep in `{place}` was stopped; the same command goes on from there")),
    }
    EXIT_RETRY
}

/// One line on a trial that has ended.
pub(super) fn ended(row: &Row, sweep: &Sweep) -> String {
    let what = match (&row.error, row.value) {
        (Some(error), _) => format!("{}: {}", row.ended, escape::value(error)),
        (None, Some(value)) => format!("{} {value:.4}", sweep.config.wandb.sweep.metric.name),
        (None, None) => row.ended.to_string(),
    };
    format!("trial {}: {what}, {:.1} s", row.trial, row.seconds)
}

fn summary(sweep: &Sweep) -> Result<u8> {
    output::data(&text(&sweep::status(sweep)?))?;
    output::data(&format!("results are in {}\n", escape::path(&sweep.dir.join(sweep::ROWS_FILE))))?;
    let rows = sweep::rows(sweep)?;
    if sweep.config.pipelines.is_empty() {
        sweep::choose(sweep, &rows)?;
        return Ok(EXIT_DONE);
    }
    output::data(&choices::text(&choices::of(sweep, &rows)?))?;
    Ok(EXIT_DONE)
}

fn status(args: &SweepShowArgs) -> Result<u8> {
    let sweep = Sweep::open(&args.dir)?;
    if args.json {
        output::json(&sweep::status(&sweep)?)?;
        return Ok(EXIT_DONE);
    }
    let stop = stop_signal()?;
    loop {
        let status = sweep::status(&sweep)?;
        if !output::is_live() {
            output::data(&text(&status))?;
            return Ok(EXIT_DONE);
        }
        output::screen(&text(&status))?;
        if status.is_over || stop.load(Ordering::Relaxed) {
            return Ok(EXIT_DONE);
        }
        std::thread::sleep(REDRAW);
    }
}

fn text(status: &Status) -> String {
    let failed: usize = status.failed.values().sum();
    let mut text = format!(
        "{}: {} done, {failed} failed, {} running, {} ready\n",
        output::many(status.trials, "trial"),
        status.done,
        status.running.len(),
        status.ready
    );
    for (how, count) in &status.failed {
        text.push_str(&format!("  failed, {how}: {count}\n"));
    }
    if let Some(best) = &status.best {
        text.push_str(&format!("best: trial {} with {} {:.4}\n", best.trial, status.metric.name, best.value));
    }
    if let (Some(rate), Some(remaining_s)) = (status.rate_per_hour, status.remaining_s) {
        text.push_str(&format!("{rate:.0} trials an hour, {} remain\n", output::span((1000.0 * remaining_s) as i64)));
    }
    if let Some(manager) = &status.manager {
        text.push_str(&format!("managed by {}, heartbeat {}\n", manager.worker, ago(manager.heartbeat_s)));
    }
    if !status.running.is_empty() {
        let head = ["running", "attempt", "epoch", "value", "for", "heartbeat", "worker"].map(str::to_owned).to_vec();
        text.push_str(&output::table(&std::iter::once(head).chain(status.running.iter().map(row)).collect::<Vec<_>>()));
    }
    text
}

fn row(running: &Running) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        format!("trial {}", running.trial),
        running.attempt.to_string(),
        or_dash(running.epoch.map(|epoch| format!("{epoch}/{}", running.budget))),
        or_dash(running.value.map(|value| format!("{value:.4}"))),
        or_dash(running.seconds.map(|seconds| output::span((1000.0 * seconds) as i64))),
        ago(running.by.heartbeat_s),
        running.by.worker.clone(),
    ]
}

fn ago(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |seconds| format!("{} ago", output::span((1000.0 * seconds) as i64)))
}

pub(super) fn best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let sweep = Sweep::open(dir)?;
    let rows = sweep::rows(&sweep)?;
    if !sweep.config.pipelines.is_empty() {
        choices::show(&sweep, &rows, args.json)?;
        return Ok(EXIT_DONE);
    }
    let best = sweep::choose(&sweep, &rows).with_context(|| choices::no_best(&sweep))?;
    let row = rows.iter().find(|row| row.trial == best.trial).context("the best trial has a row")?;
    if args.json {
        output::json(row)?;
    } else {
        output::data(&best_text(&sweep, row, rows.len()))?;
    }
    Ok(EXIT_DONE)
}

fn best_text(sweep: &Sweep, row: &Row, ended: usize) -> String {
    let dir = sweep::trial_dir(&sweep.dir, row.trial);
    let mut text =
        format!("{}\nof {ended} trials that have ended, of {}\n", self::ended(row, sweep), sweep.plan.trials);
    let rows = row.parameters.iter().map(|(name, value)| vec![format!("  {name}"), value.to_string()]);
    text.push_str(&output::table(&rows.collect::<Vec<_>>()));
    text.push_str(&format!("its model is in {}\n", escape::path(&dir)));
    text
}

/// Scores the best trials of a finished sweep.
fn evaluate(args: &SweepEvaluateArgs) -> Result<u8> {
    let dir = results(&args.dir)?;
    let sweep = Sweep::open(&dir)?;
    ensure!(
        sweep.is_finished(),
        early(
            format!("the sweep in `{}` has not finished", dir.display()),
            "`poolcast sweep status DIR` shows how far it is"
        )
    );
    let out = args.out.as_deref().unwrap_or(&dir);
    let judged = sweep::judge(&sweep, &sweep::rows(&sweep)?, out)?;
    if let Some((_, evaluation)) = &judged.network {
        output::data(&evaluate::text(evaluation))?;
        output::data(&fs_err::read_to_string(out.join(sweep::INFO_FILE))?)?;
    }
    if !judged.choices.is_empty() {
        output::data(&choices::text(&judged.choices))?;
    }
    Ok(EXIT_DONE)
}

fn cleanup(args: &SweepCleanupArgs) -> Result<u8> {
    if condor::is_untidied(&args.dir)? || !args.dir.join(manifest::FILE).exists() {
        return dag::cleanup(args);
    }
    ensure!(!args.dry_run, "`--dry-run` is for the directory of a DAG; here nothing moves");
    sweep::cleanup(&Sweep::open(&args.dir)?, args.keep.map(|keep| keep as usize))?;
    Ok(EXIT_DONE)
}
