//! The arguments of `poolcast provision chain`.

use std::path::PathBuf;

use clap::Args;

use super::cluster_args::ClusterArgs;
use crate::advise::moment_ms;
use poolcast_slurm::chain::ChainTiming;

/// Arguments of `provision chain`.
#[derive(Debug, Args)]
pub struct ProvisionChainArgs {
    /// Script to submit; its `#SBATCH` lines contain its requests
    pub script: PathBuf,
    /// Arguments of the script
    #[arg(value_name = "ARG", last = true)]
    pub script_args: Vec<String>,
    /// Number of jobs in the chain; the most, with `--done`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub links: u32,
    /// When to submit the next job [default: `forecast` where there can be one, else `dependency`]
    #[arg(long, value_name = "TIME", value_enum)]
    pub when: Option<ChainTiming>,
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
    /// Interval between submit decisions, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub every: u32,
    /// Cost of an hour of interruption, in hours of overlap [default: the first of
    /// `provision.cost_ratio`]
    #[arg(long, value_name = "C")]
    pub cost_ratio: Option<f64>,
    /// Facts about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Submit nothing: print the state of the chain, the next command, and whether Slurm would
    /// accept it
    #[arg(long)]
    pub dry_run: bool,
    /// Print the links and their results as JSON
    #[arg(long)]
    pub json: bool,
}
