//! The arguments of `poolcast provision replay`.

use std::path::PathBuf;

use clap::Args;

use poolcast_provision::config::SchedulerKind;

/// Arguments of `provision replay`.
#[derive(Debug, Args)]
pub struct ProvisionReplayArgs {
    /// Trace that `provision trace` wrote
    pub trace: PathBuf,
    /// Configuration file; only its keys under `provision` are used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Scheduler to simulate
    #[arg(long, value_enum)]
    pub scheduler: Option<SchedulerKind>,
    /// Number of nodes in the cluster [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Maximum number of jobs that one user may run at once; 0 for any number [default: as the
    /// trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// First submit date of the compared jobs, in the cluster's zone, such as 2022-11-01
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Write a line for each job that started: its id, its start, and 1 if it passed another job in
    /// the queue, else 0
    #[arg(long, value_name = "FILE")]
    pub starts: Option<PathBuf>,
    /// File slurm_config.json of the published scheduler [default: the published values]
    #[arg(long, value_name = "FILE")]
    pub slurm_config: Option<PathBuf>,
    /// File backfill_config.json of the published scheduler [default: the published values]
    #[arg(long, value_name = "FILE")]
    pub backfill_config: Option<PathBuf>,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}
