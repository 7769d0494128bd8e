//! The arguments of `poolcast provision advise`.

use std::path::PathBuf;

use clap::Args;

use super::decision_args::DecisionArgs;
use crate::advise::moment_ms;

/// Arguments of `provision advise`.
#[derive(Debug, Args)]
pub struct ProvisionAdviseArgs {
    /// Trace that `provision trace` wrote, the source of the run times of jobs [default: the
    /// accounting of the last 30 days from `sacct`]
    pub trace: Option<PathBuf>,
    /// Running job whose successor, a job like it, is to be submitted: `4711`, or the element
    /// `4711_3` of an array
    #[arg(long, value_name = "JOBID")]
    pub after: String,
    /// Model that `provision train` has learned on the features at prediction time, or a sweep of
    /// such models, whose best one decides [default: forecasts]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// File with the output of `squeue --all --states=all --json`, or `-` for standard input; no
    /// program of Slurm is then queried
    #[arg(long, value_name = "FILE")]
    pub queue: Option<PathBuf>,
    /// File with the output of `sinfo --all --json`, or of `scontrol --all --oneliner show node` where jobs share nodes
    #[arg(long, value_name = "FILE", requires = "queue")]
    pub node_list: Option<PathBuf>,
    /// Time of the queue in the file, such as 2026-11-21T02:20:00Z (UTC if no zone is named), or
    /// seconds since 1970 [default: the time of its last change]
    #[arg(long, value_name = "TIME", value_parser = moment_ms, requires = "queue")]
    pub at: Option<i64>,
    /// Settings of the decision.
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}
