//! The arguments that the forms of a chain of jobs share.

use std::path::PathBuf;

use clap::Args;

use super::cluster_args::ClusterArgs;
use crate::advise::moment_ms;

/// The end of a chain, its state and its forecasts.
#[derive(Debug, Args)]
pub struct ChainOptions {
    /// Command for `sh` that is run after each job; if it exits with 0, the work is done: the chain
    /// ends, and cancels the next job
    #[arg(long, value_name = "COMMAND")]
    pub done: Option<String>,
    /// Time after which no job is to start, such as 2026-11-21T02:20:00Z (UTC if no zone is named), or seconds since
    /// 1970: a job that would start later is not submitted, and the chain ends
    #[arg(long, value_name = "TIME", value_parser = moment_ms)]
    pub deadline: Option<i64>,
    /// Directory with the state of the chain [default: the name of the script with `.chain`]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Trace that `provision trace` wrote, the source of the run times of jobs [default: the
    /// accounting of the last 30 days from `sacct`]
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Cost of an hour of interruption, in hours of overlap [default: the first of
    /// `provision.cost_ratio`]
    #[arg(long, value_name = "C")]
    pub cost_ratio: Option<f64>,
    /// Facts about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
