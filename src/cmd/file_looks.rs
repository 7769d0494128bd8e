//! Looks at the files that jobs name, if they are on this machine, and asks servers for others.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::own_logs::user_name;
use poolcast_advice::{
    InputLooks, JobAdvice, LookPlan, LookProcess, LookScope, UnheldJobs, UrlAnswer, UrlQuestion,
};
use poolcast_base::output;
use poolcast_base::process::Process;
use poolcast_cli::AdviseArgs;
use poolcast_sweep::condor;
use poolcast_tracking::ask_urls;

/// Time after which a look at files, and each request to a server, is given up.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// Looks at the files that `advice` is about, unless `args` forbid it, and adds the answers that follow.
/// `is_queue_here` says that the queue of this access point names the held jobs. Returns a caveat if
/// not all files could be looked at.
pub(super) fn add_looks(
    args: &AdviseArgs,
    is_queue_here: bool,
    now_ms: i64,
    advice: &mut [JobAdvice],
) -> Option<String> {
    if args.no_look || args.at.is_some() || advice.is_empty() {
        return None;
    }
    let plan = look_plan(args, is_queue_here, now_ms);
    if !args.no_network {
        plan.look_at_urls(advice, ask_servers);
    }
    let looked = look_process().and_then(|process| plan.look(process, advice));
    looked.unwrap_or_else(|failure| {
        note_failure(&failure);
        None
    })
}

/// Looks at the files that idle `jobs` will read, and asks servers for others, unless `args` forbid it.
/// `is_queue_here` says that the jobs are in the queue of this access point.
pub(super) fn look_at_inputs(
    args: &AdviseArgs,
    is_queue_here: bool,
    now_ms: i64,
    jobs: &UnheldJobs,
) -> InputLooks {
    if args.no_look {
        return InputLooks::none_of(jobs);
    }
    let plan = look_plan(args, is_queue_here, now_ms);
    let ask = |questions: &[UrlQuestion]| {
        if args.no_network {
            Vec::new()
        } else {
            ask_servers(questions)
        }
    };
    let looked = look_process().and_then(|process| plan.look_at_inputs(process, jobs, ask));
    looked.unwrap_or_else(|failure| {
        note_failure(&failure);
        InputLooks::none_of(jobs)
    })
}

fn look_plan(args: &AdviseArgs, is_queue_here: bool, now_ms: i64) -> LookPlan {
    let scope = if is_queue_here && !condor::queue_is_elsewhere() {
        LookScope::Queue
    } else if args.look {
        LookScope::All
    } else {
        LookScope::OfHost(Process::current().host)
    };
    LookPlan::new(scope, user_name().ok(), now_ms)
}

fn note_failure(failure: &anyhow::Error) {
    output::note(&format!("note: no file was looked at: {failure:#}"));
}

/// Asks servers the `questions`. A failure only causes a note.
fn ask_servers(questions: &[UrlQuestion]) -> Vec<UrlAnswer> {
    ask_urls(questions, LOOK_LIMIT).unwrap_or_else(|failure| {
        output::note(&format!("note: no server was asked: {failure:#}"));
        Vec::new()
    })
}

/// Returns this program as the process that looks.
fn look_process() -> Result<LookProcess> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(LookProcess::new(program, vec!["look"], LOOK_LIMIT))
}
