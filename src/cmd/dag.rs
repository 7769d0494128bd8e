//! `poolcast dag`: a search space → a DAG of HTCondor jobs; and how far such a DAG is, its best trial, its tidy directory.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::{flag, flags};
use crate::cli::{DagArgs, SweepCleanupArgs, SweepShowArgs};
use crate::condor::{self, Counts, DAG_FILE, Nodes, Plan};
use crate::config::Config;
use crate::error::{EXIT_DONE, early, hinted};
use crate::eventlog::{self, HELD, Options};
use crate::sweep::{self, Best};
use crate::{advice, escape, output};

/// Writes the DAG, prints it, or submits it.
pub fn run(args: &DagArgs) -> Result<u8> {
    let given = flags([("out", flag(&args.out)), ("dag.image", flag(&args.image)), ("dag.site", flag(&args.site))]);
    let config = Config::load(Some(&args.config), &given)?;
    let plan = Plan::of(&config).with_context(|| format!("cannot use `{}`", args.config.display()))?;
    if args.dry_run {
        output::file(&preview(&plan)?)?;
        return Ok(EXIT_DONE);
    }
    condor::write(&plan)?;
    let dir = escape::path(&config.out);
    let (trials, tensors) = (plan.trials.len(), plan.tensors.len());
    output::data(&format!("{trials} trials on {tensors} different tensors: {dir}/{DAG_FILE}\n"))?;
    if std::env::var_os("POOLCAST_OWNER_SALT").is_some() {
        output::note("note: secrets do not travel with jobs: owners are hashed without `POOLCAST_OWNER_SALT`");
    }
    if args.submit {
        if condor::runs_images() == Some(false) {
            output::note("note: no slot has HasSIF now; until one has, the jobs stay idle");
        }
        condor::start(&config.out, &config.wandb.sweep.name)?.lines().for_each(output::note);
    } else {
        output::note(&format!("submit it with: cd {dir} && condor_submit_dag {DAG_FILE}"));
    }
    Ok(EXIT_DONE)
}

/// The DAG and what it refers to, but for the configurations of its trials.
fn preview(plan: &Plan) -> Result<String> {
    let files = plan.files()?;
    let shown = files.iter().filter(|(name, _)| name.starts_with("condor/") || *name == DAG_FILE);
    let mut text: String = shown.map(|(name, text)| format!("==> {name} <==\n{text}\n")).collect();
    text += &format!("{} configurations of trials in trials/\n", plan.trials.len());
    Ok(text)
}

/// How far a DAG is.
#[derive(Serialize)]
struct Status {
    /// What DAGMan says; absent before it has begun.
    nodes: Option<Nodes>,
    /// How many trials there are.
    trials: usize,
    /// Trials with a model.
    done: usize,
    /// Trials that have failed for good, and why.
    failed: Vec<(usize, String)>,
    /// The best so far.
    best: Option<Best>,
}

/// Shows how far the DAG is whose results are in `dir`.
pub(super) fn status(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let config = Config::read(dir)?;
    // What DAGMan writes until its end stays where the DAG was submitted.
    let nodes = Nodes::read(&args.dir)?.map_or_else(|| Nodes::read(dir), |nodes| Ok(Some(nodes)))?;
    let trials = condor::trials(dir, &config)?;
    let ended = trials.iter().flatten();
    let failed = ended.clone().filter_map(|result| Some((result.trial, result.error.clone()?))).collect::<Vec<_>>();
    let status = Status {
        nodes,
        trials: trials.len(),
        done: ended.count() - failed.len(),
        failed,
        best: condor::choose(dir, &config).ok().map(|(best, _)| best),
    };
    if args.json {
        output::json(&status)?;
    } else {
        output::data(&text(&status))?;
        output::data(&status.nodes.map_or(String::new(), |nodes| held_text(dir, &nodes)))?;
        if dir != args.dir {
            output::data(&format!("everything is in {}\n", escape::path(dir)))?;
        }
    }
    Ok(EXIT_DONE)
}

fn text(status: &Status) -> String {
    let mut text = match &status.nodes {
        None => "DAGMan has not begun\n".to_owned(),
        Some(nodes) => nodes_text(nodes),
    };
    let (trials, failed) = (status.trials, status.failed.len());
    let rest = trials - status.done - failed;
    text += &format!("{trials} trials: {} done, {failed} failed, {rest} to come\n", status.done);
    for (trial, error) in &status.failed {
        text += &format!("  trial {trial} failed: {}\n", escape::value(error));
    }
    if let Some(best) = &status.best {
        text += &format!("best: trial {} with {} {:.4}\n", best.trial, best.metric.name, best.value);
    }
    text
}

fn nodes_text(nodes: &Nodes) -> String {
    let mut text = match (nodes.is_done, nodes.has_failed) {
        (true, _) => "the DAG is done\n".to_owned(),
        (_, true) => "the DAG has failed; submitted again, it goes on from there\n".to_owned(),
        _ if nodes.held > 0 => format!("the DAG runs; jobs on hold, which it waits for: {}\n", nodes.held),
        _ => "the DAG runs\n".to_owned(),
    };
    let head = ["", "done", "at work", "waiting", "failed"].map(str::to_owned).to_vec();
    let row = |(step, counts): (&String, &Counts)| {
        let Counts { done, at_work, waiting, failed, futile } = *counts;
        let numbers = [done, at_work, waiting, failed + futile].map(|count| count.to_string());
        std::iter::once(step.clone()).chain(numbers).collect()
    };
    text += &output::table(&std::iter::once(head).chain(nodes.steps.iter().map(row)).collect::<Vec<_>>());
    text
}

/// Why the jobs of nodes are held, as their logs in `dir` say; `condor_q -hold` says more.
fn held_text(dir: &Path, nodes: &Nodes) -> String {
    let why = |node: &String| {
        let why = last_hold(&dir.join(format!("logs/{node}.log"))).unwrap_or_default();
        format!("  {} is held{}\n", escape::value(node), why.map_or(String::new(), |why| format!(": {why}")))
    };
    nodes.held_nodes.iter().map(why).collect()
}

/// Why a job was held last.
fn last_hold(log: &Path) -> Result<Option<String>> {
    let mut last = None;
    eventlog::read(log, &Options::default(), |_| {}, &mut |batch| {
        last = batch.events.iter().rfind(|event| event.number == HELD).copied().or(last);
        Ok(())
    })?;
    Ok(last.map(|event| {
        format!("{}/{} {}", event.hold_code, event.hold_subcode, advice::meaning(event.hold_code, event.hold_subcode))
    }))
}

/// Chooses the best trial of the DAG whose results are in `dir`, and keeps the choice once all trials have ended.
pub(super) fn best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let config = Config::read(dir)?;
    let (best, is_over) = condor::choose(dir, &config).or_else(|error| {
        // Where all trials have ended, it says why none is the best.
        let is_over = condor::trials(dir, &config)?.iter().all(Option::is_some);
        let hint = "`poolcast sweep status DIR` shows how far it is";
        let context = || early(format!("the sweep in `{}` has no best trial", dir.display()), hint);
        if is_over { Err(error) } else { Err(error.context(context())) }
    })?;
    if is_over {
        sweep::write_best(dir, &best)?;
    }
    if args.json {
        output::json(&best)?;
    } else {
        output::file(&sweep::info(dir, &best)?)?;
    }
    Ok(EXIT_DONE)
}

/// Moves what a finished DAG left to one directory.
pub(super) fn cleanup(args: &SweepCleanupArgs) -> Result<u8> {
    ensure!(
        args.keep.is_none(),
        hinted("a DAG keeps the models of all its trials", "leave out `--keep`; the directory may be moved as it is")
    );
    let tidy = condor::tidy(&args.dir)?;
    if tidy.moves.is_empty() {
        output::data(&format!("everything is in {}\n", escape::path(&tidy.to)))?;
        return Ok(EXIT_DONE);
    }
    for (from, to) in &tidy.moves {
        output::data(&format!("{} -> {}\n", escape::path(from), escape::path(to)))?;
    }
    if args.dry_run {
        output::note("nothing was moved");
    } else {
        tidy.apply()?;
    }
    Ok(EXIT_DONE)
}
