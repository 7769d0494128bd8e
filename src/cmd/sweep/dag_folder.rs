//! The steps of `sweep` in the directory of a DAG: how far it is, its best trial, its tidy
//! directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::cli::{SweepCleanupArgs, SweepShowArgs};
use crate::cmd::choices;
use crate::condor::{self, DagProgress, NodeCounts};
use crate::config::{Config, MetricName};
use crate::error::{EXIT_DONE, too_early};
use crate::eventlog::{self, HELD, ReadOptions};
use crate::sweep::{self, BestTrial, SweepFolder, SweepTrials};
use crate::{advice, escape, output};

/// The version of the JSON document of a DAG's status.
const STATUS_SCHEMA_VERSION: u32 = 1;

/// How far a DAG is.
#[derive(Serialize)]
struct DagStatus {
    /// What DAGMan says; absent before it has begun.
    nodes: Option<DagProgress>,
    /// For how many seconds nothing was heard of DAGMan.
    silent_s: Option<u64>,
    /// Why nodes have failed, as their jobs said.
    failures: BTreeMap<String, String>,
    /// How many trials there are.
    trials: usize,
    /// Trials with a model.
    done: usize,
    /// Trials that have failed for good, and why.
    failed: Vec<FailedTrial>,
    /// The best so far.
    best: Option<BestTrial>,
}

/// A trial without a model.
#[derive(Serialize)]
struct FailedTrial {
    trial: usize,
    error: String,
}

/// Shows how far the DAG is whose results are in `dir`.
pub(super) fn show_status(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let config = Config::read(dir)?;
    // What DAGMan writes until its end stays where the DAG was submitted.
    let nodes = DagProgress::read(&args.dir)?
        .map_or_else(|| DagProgress::read(dir), |nodes| Ok(Some(nodes)))?;
    let nodes = nodes
        .map(|nodes| nodes.with_failure_records(dir))
        .transpose()?;

    let rows = condor::read_rows(dir, &config)?;
    let mut failed = Vec::new();
    for row in &rows {
        if let Some(error) = &row.error {
            failed.push(FailedTrial {
                trial: row.trial,
                error: error.clone(),
            });
        }
    }

    let at_work = nodes.as_ref().filter(|nodes| !nodes.is_over());
    let failures = match &nodes {
        Some(nodes) => nodes.failure_reasons(dir),
        None => BTreeMap::new(),
    };
    let status = DagStatus {
        silent_s: at_work.and_then(DagProgress::silent_s),
        failures,
        nodes,
        trials: SweepTrials::from_config(&config)?.count(),
        done: rows.len() - failed.len(),
        failed,
        best: sweep::best_trial(&config.wandb.sweep.metric, &rows),
    };

    if args.json {
        output::print_json(STATUS_SCHEMA_VERSION, &status)?;
        return Ok(EXIT_DONE);
    }
    output::print(&status_text(&status, config.wandb.sweep.metric.name))?;
    if let Some(nodes) = &status.nodes {
        output::print(&held_text(dir, nodes))?;
    }
    if dir != args.dir {
        output::print(&format!("everything is in {}\n", escape::path(dir)))?;
    }
    Ok(EXIT_DONE)
}

fn status_text(status: &DagStatus, metric: MetricName) -> String {
    let mut text = match &status.nodes {
        None => "DAGMan has not begun\n".to_owned(),
        Some(nodes) => nodes_text(nodes, status.silent_s),
    };
    for (node, why) in &status.failures {
        text += &format!("  {} failed: {}\n", escape::value(node), escape::value(why));
    }

    let failed = status.failed.len();
    let rest = status.trials.saturating_sub(status.done + failed);
    text += &format!(
        "{}: {} done, {failed} failed, {rest} to come\n",
        output::counted(status.trials, "trial"),
        status.done
    );
    for FailedTrial { trial, error } in &status.failed {
        text += &format!("  trial {trial} failed: {}\n", escape::value(error));
    }

    if let Some(best) = &status.best {
        text += &format!(
            "best: trial {} with {metric} {:.4}\n",
            best.trial, best.value
        );
    }
    text
}

/// DAGMan writes its status twice a minute; after so long it is not at work.
const SILENT_S: u64 = 300;

fn nodes_text(nodes: &DagProgress, silent_s: Option<u64>) -> String {
    let mut text = match (nodes.is_done, nodes.has_failed) {
        (true, _) => "the DAG is done\n".to_owned(),
        (_, true) => "the DAG has failed; submitted again, it goes on from there\n".to_owned(),
        _ if nodes.held > 0 => format!(
            "the DAG runs; jobs on hold, which it waits for: {}\n",
            nodes.held
        ),
        _ => "the DAG runs\n".to_owned(),
    };
    if let Some(silent_s) = silent_s {
        text += &format!("as of {} ago\n", output::time_span(1000 * silent_s as i64));
        if silent_s >= SILENT_S {
            text += "DAGMan is silent: `condor_q -nobatch` shows whether it is in the queue. If it is not, submit the DAG again; if\n\
                     it is, `condor_rm` its job first: it goes on from its rescue file\n";
        }
    }
    if nodes.waits_for_nothing() {
        text += "all jobs are done, and DAGMan has not ended: if that lasts, `condor_rm` its job and submit the DAG again: it goes\n\
                 on from its rescue file\n";
    }
    text + &step_table(&nodes.steps)
}

/// How many nodes of each step are done, at work, waiting and failed.
fn step_table(steps: &BTreeMap<String, NodeCounts>) -> String {
    let head = ["", "done", "at work", "waiting", "failed"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (step, counts) in steps {
        rows.push(vec![
            step.clone(),
            counts.done.to_string(),
            counts.at_work.to_string(),
            counts.waiting.to_string(),
            (counts.failed + counts.futile).to_string(),
        ]);
    }
    output::aligned_table(&rows)
}

/// Why the jobs of nodes are held, as their logs in `dir` say; `condor_q -hold` says more.
fn held_text(dir: &Path, nodes: &DagProgress) -> String {
    let mut text = String::new();
    for node in &nodes.held_nodes {
        let log = dir.join(format!("logs/{node}.log"));
        let reason = last_hold(&log).unwrap_or_default();
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        text += &format!("  {} is held{reason}\n", escape::value(node));
    }
    text
}

/// Why a job was held last.
fn last_hold(log: &Path) -> Result<Option<String>> {
    let mut last = None;
    eventlog::read(log, &ReadOptions::default(), |_| {}, &mut |batch| {
        last = batch
            .events
            .iter()
            .rfind(|event| event.number == HELD)
            .copied()
            .or(last);
        Ok(())
    })?;
    Ok(last.map(|event| {
        format!(
            "{}/{} {}",
            event.hold_code,
            event.hold_subcode,
            advice::code_meaning(event.hold_code, event.hold_subcode)
        )
    }))
}

/// Shows the best trial so far of the DAG whose results are in `dir`.
pub(super) fn show_best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let sweep = condor::open_sweep(dir)?;
    let rows = condor::read_rows(dir, &sweep.config)?;
    if !sweep.config.pipelines.is_empty() {
        choices::print_choices(
            &sweep,
            &mut sweep::TrialOutcomes::from_rows(rows),
            args.json,
        )?;
        return Ok(EXIT_DONE);
    }

    let best = sweep::choose_model(&sweep, &rows).map_err(|error| {
        // Where all trials have ended, it says why none is the best.
        let hint = "`poolcast sweep status DIR` shows how far it is";
        let context = || {
            too_early(
                format!("the sweep in `{}` has no best trial", dir.display()),
                hint,
            )
        };
        if rows.len() == sweep.plan.trials {
            error
        } else {
            error.context(context())
        }
    })?;

    if args.json {
        let row = rows.iter().find(|row| row.trial == best.trial);
        let row = row.context("the best trial has a row")?;
        output::print_json(choices::BEST_SCHEMA_VERSION, row)?;
    } else {
        output::print_file(&sweep::best_model_info(dir, dir, &best)?)?;
    }
    Ok(EXIT_DONE)
}

/// Moves what a finished DAG left to one directory.
pub(super) fn clean_up(args: &SweepCleanupArgs) -> Result<u8> {
    let tidy = condor::plan_cleanup(&args.dir)?;
    if let Some(directory) = &tidy.removes {
        output::print(&format!("{} is removed\n", escape::path(directory)))?;
    }
    if tidy.moves.is_empty() {
        output::print(&format!("everything is in {}\n", escape::path(&tidy.to)))?;
    }
    for (from, to) in &tidy.moves {
        output::print(&format!("{} -> {}\n", escape::path(from), escape::path(to)))?;
    }
    if args.dry_run {
        output::note("nothing was moved");
        return Ok(EXIT_DONE);
    }
    tidy.apply()?;
    if args.keep.is_some() {
        sweep::clean_up(
            &SweepFolder::open(&tidy.to)?,
            args.keep.map(|keep| keep as usize),
        )?;
    }
    Ok(EXIT_DONE)
}
