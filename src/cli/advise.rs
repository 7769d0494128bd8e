//! The arguments of `poolcast advise`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use poolcast_holds::advice::HoldAction;
use poolcast_base::moment::parse_moment_ms;

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The run directory of a model, or the directory of a sweep that has chosen its best [default: that of the directory you are in, or the `out` of a configuration file there]
    pub run: Option<PathBuf>,
    /// The held jobs: `123.0`, or `123` for a whole cluster [default: every held job]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// The event log to read, an archive that `collect` made, or `-` for standard input; give the option again for each further log [default: the logs that the model was made from]
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Let the queue decide who is held: a file with what `condor_q -allusers -json` prints, `-` for standard input, or `now` to ask the queue of this access point
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    pub queue: Option<String>,
    /// The moment of asking: advise on the jobs that were held then, with what was known then; such as 2026-11-21T02:20:00Z (UTC if no zone is named), or seconds since 1970 [default: the end of the log]
    #[arg(long, value_name = "TIME", value_parser = moment_ms)]
    pub at: Option<i64>,
    /// The year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Print a line a job instead of a line a cause
    #[arg(long = "jobs", group = "view")]
    pub lists_jobs: bool,
    /// Print all that is known of each job
    #[arg(long, group = "view")]
    pub long: bool,
    /// Print only ids, a line each: those of jobs to release as they are, or those that other options choose
    #[arg(long, group = "view")]
    pub ids: bool,
    /// Print the advice as JSON
    #[arg(long, group = "view")]
    pub json: bool,
    /// Say what came of the answers given earlier, by the log read now
    #[arg(long, conflicts_with_all = ["lists_jobs", "long", "ids", "jobs", "queue", "at"])]
    pub check: bool,
    /// For DAGMan, as the SCRIPT HOLD of a node: leave the advice on the held jobs of this node in the file NODE.advice here, and exit with 0 whatever fails; condor/held-node.sh is an example
    #[arg(long, value_name = "NODE", conflicts_with_all = ["jobs", "queue", "at", "view", "check", "AdviceFilterArgs", "sort", "exit_code"])]
    pub dag: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub filter: AdviceFilterArgs,
    /// The order of jobs in --jobs, --long and --ids
    #[arg(
        long,
        value_enum,
        default_value = "action",
        hide_possible_values = false
    )]
    pub sort: JobOrder,
    /// Say by the exit code what to do, also with several jobs
    #[arg(long)]
    pub exit_code: bool,
    /// The moment that it is now, for tests
    #[arg(long, value_name = "TIME", value_parser = moment_ms, hide = true)]
    pub now: Option<i64>,
}

/// Which held jobs are shown; each option leaves fewer.
#[derive(Debug, Args)]
pub struct AdviceFilterArgs {
    /// Only jobs of this owner; give the option again for each further one
    #[arg(long = "owner", value_name = "NAME")]
    pub owners: Vec<String>,
    /// Only jobs held with this code, or code and subcode: 13 or 13/2
    #[arg(long = "code", value_name = "CODE[/SUBCODE]", value_parser = hold_code)]
    pub codes: Vec<HoldCodeFilter>,
    /// Only jobs of this cluster
    #[arg(long = "cluster", value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    pub clusters: Vec<i32>,
    /// Only jobs with this answer
    #[arg(long = "action", value_enum, value_name = "ACTION")]
    pub actions: Vec<ActionFilter>,
    /// Only jobs of these causes, by the names that the page has for them, commas between
    #[arg(long = "cause", value_name = "NAME", value_delimiter = ',')]
    pub causes: Vec<String>,
}

/// A hold code, and a subcode if one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldCodeFilter {
    /// The code.
    pub code: i32,
    /// The subcode; any if it is not named.
    pub subcode: Option<i32>,
}

/// What to do with a job, as the option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the answers of `advise`")]
pub enum ActionFilter {
    Release,
    Later,
    Fix,
    Remove,
    Leave,
    None,
}

impl ActionFilter {
    /// The action that it chooses.
    pub fn action(self) -> HoldAction {
        match self {
            ActionFilter::Release => HoldAction::Release,
            ActionFilter::Later => HoldAction::Later,
            ActionFilter::Fix => HoldAction::Fix,
            ActionFilter::Remove => HoldAction::Remove,
            ActionFilter::Leave => HoldAction::Leave,
            ActionFilter::None => HoldAction::None,
        }
    }
}

/// An order of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobOrder {
    /// What is to be done first comes first
    Action,
    /// By cluster and proc
    Id,
    /// Those held longest come first
    Since,
    /// Those likeliest to succeed come first
    Odds,
    /// By the name of the owner
    Owner,
    /// By hold code
    Code,
}

fn hold_code(text: &str) -> Result<HoldCodeFilter, String> {
    let number = |part: &str| {
        part.parse::<i32>()
            .map_err(|_| "write 13 or 13/2".to_owned())
    };
    let (code, subcode) = match text.split_once('/') {
        Some((code, subcode)) => (code, Some(number(subcode)?)),
        None => (text, None),
    };
    Ok(HoldCodeFilter {
        code: number(code)?,
        subcode,
    })
}

/// A moment as epoch ms: seconds since 1970, or as [`parse_moment_ms`] reads it.
pub(super) fn moment_ms(text: &str) -> Result<i64, String> {
    let moment_ms = match text.parse::<i64>() {
        Ok(seconds) => jiff::Timestamp::from_second(seconds)
            .ok()
            .map(jiff::Timestamp::as_millisecond),
        Err(_) => parse_moment_ms(text),
    };
    moment_ms.ok_or_else(|| "write 2026-11-21T02:20:00Z, or seconds since 1970".to_owned())
}
