//! The verbs of the command line: each one turns arguments into library calls and messages.
//!
//! Each verb has its own file, and no verb imports another one. Code that several verbs share is in
//! the files that are not named after a verb.

// The verbs.
pub mod advise;
pub mod collect;
pub mod dag;
mod default_schedd;
pub mod doctor;
pub mod evaluate;
pub mod explain;
pub mod learn;
pub mod look;
pub mod manual;
pub mod parse;
pub mod policy;
pub mod predict;
pub mod provision;
pub mod publish;
pub mod rehearse;
pub mod report;
pub mod run;
pub mod share;
pub mod simulate;
pub mod site;
pub mod sweep;
pub mod tensors;
pub mod track;
pub mod train;

// Code that the verbs share.
mod advice_outlets;
mod advice_sources;
mod advice_watch;
mod asked_advice;
mod best_wait_model;
mod choices;
mod file_looks;
mod flags;
mod history_log;
mod idle_advice;
mod learned_report;
mod logs;
mod named_inputs;
mod node_advice;
mod others_jobs;
mod own_logs;
mod page_numbers;
mod preparation;
mod progress;
mod report_page;
mod results_here;
mod run_answers;
mod run_config;
mod signals;
mod study;
mod text;
mod time_left;
mod tracking;
pub mod threads;
mod trained_run;
mod whole_sweep;

use std::collections::BTreeMap;

use anyhow::Result;

use poolcast_base::error::EXIT_DONE;
use poolcast_base::{files, manifest, output, pager};
use poolcast_cli::{ConfigArgs, SweepStep, Verb};
use poolcast_config::{DEFAULT, yaml};
use poolcast_sweep::config::Config;

/// Runs `verb` with `threads` threads; returns the exit code.
pub fn run(verb: Verb, threads: usize) -> Result<u8> {
    files::apply_file_mode()?;
    if trusts_shards(&verb) {
        manifest::skip_digests();
    }

    let code = match verb {
        Verb::Learn(args) => learn::run(&args),
        Verb::Run(args) => run::run(&args, threads),
        Verb::Collect(args) => collect::run(&args),
        Verb::Parse(args) => parse::run(&args),
        Verb::Tensors(args) => tensors::run(&args),
        Verb::Train(args) => train::run(&args),
        Verb::Sweep(args) => sweep::run(&args.step, threads),
        Verb::Dag(args) => dag::run(&args),
        Verb::Evaluate(args) => evaluate::run(&args),
        Verb::Advise(args) => advise::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Policy(args) => policy::run(&args),
        Verb::Rehearse(args) => rehearse::run(&args),
        Verb::Share(args) => share::run(&args),
        Verb::Publish(args) => publish::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Site(args) => site::run(&args.step),
        Verb::Report(args) => report::run(&args),
        Verb::Track(args) => track::run(&args),
        Verb::Predict(args) => predict::run(&args),
        Verb::Simulate(args) => simulate::run(&args),
        Verb::Provision(args) => provision::run(&args.step),
        Verb::Config(args) => print_config(&args),
        Verb::Completions(args) => manual::completions(&args),
        Verb::Man(args) => manual::pages(&args),
        Verb::Look { user } => look::run(user.as_deref()),
    }?;
    Ok(signals::exit_code(code))
}

/// Returns true if the verb skips the digests of shards and trusts their manifests.
fn trusts_shards(verb: &Verb) -> bool {
    match verb {
        Verb::Learn(args) | Verb::Run(args) => args.shards.no_verify,
        Verb::Tensors(args) => args.shards.no_verify,
        Verb::Train(args) => args.shards.no_verify,
        Verb::Evaluate(args) => args.shards.no_verify,
        Verb::Sweep(args) => match &args.step {
            SweepStep::Manage(args) => args.shards.no_verify,
            SweepStep::Work(args) => args.shards.no_verify,
            SweepStep::Run(args) => args.manage.shards.no_verify,
            _ => false,
        },
        _ => false,
    }
}

/// Prints the configuration. Without a file and without overrides from the environment, these are
/// the defaults with their comments; otherwise it is the merged configuration.
fn print_config(args: &ConfigArgs) -> Result<u8> {
    let config = Config::load(args.file.as_deref(), &BTreeMap::new())?;
    let text = if args.file.is_none() && config.is_default()? {
        DEFAULT.to_owned()
    } else {
        yaml::write(&config)?
    };
    pager::show(&output::shown_file(&text))?;
    Ok(EXIT_DONE)
}
