//! The arguments of `poolcast provision advise`.

use std::path::PathBuf;

use clap::Args;

use super::decision_args::DecisionArgs;
use crate::cli::advise::moment_ms;

/// Arguments of `provision advise`.
#[derive(Debug, Args)]
pub struct ProvisionAdviseArgs {
    /// The trace that `provision trace` wrote, from which it is known how long jobs run [default: what `sacct` says of the last 30 days]
    pub trace: Option<PathBuf>,
    /// The running job whose successor, one like it, is to be submitted: `4711`, or the element `4711_3` of an array
    #[arg(long, value_name = "JOBID")]
    pub after: String,
    /// A model that `provision train` has learned on the features of a moment, or a sweep of such models, of which the best decides [default: forecasts]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// What `squeue --all --states=all --json` has printed, or `-` for standard input; then no program of Slurm's is asked
    #[arg(long, value_name = "FILE")]
    pub queue: Option<PathBuf>,
    /// What `sinfo --all --json` has printed
    #[arg(long, value_name = "FILE", requires = "queue")]
    pub node_list: Option<PathBuf>,
    /// The moment that the file of the queue is of, such as 2026-11-21T02:20:00Z (UTC if no zone is named), or seconds since 1970 [default: that of its last change]
    #[arg(long, value_name = "TIME", value_parser = moment_ms, requires = "queue")]
    pub at: Option<i64>,
    /// What it is decided by.
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}
