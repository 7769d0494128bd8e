//! The arguments of `poolcast provision replay`.

use std::path::PathBuf;

use clap::Args;

use poolcast_config::SchedulerKind;

/// Arguments of `provision replay`.
#[derive(Debug, Args)]
pub struct ProvisionReplayArgs {
    /// The trace that `provision trace` wrote
    pub trace: PathBuf,
    /// The configuration file; its keys under `provision` count
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which scheduler is simulated
    #[arg(long, value_enum)]
    pub scheduler: Option<SchedulerKind>,
    /// How many nodes the cluster has [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// How many jobs of one user may run at once; 0 for any number [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// Compare only jobs that were submitted from this date of the cluster's zone on, such as 2022-11-01
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Write a line for each job that started: its id, its start, and 1 if it passed another job in the queue, else 0
    #[arg(long, value_name = "FILE")]
    pub starts: Option<PathBuf>,
    /// The file slurm_config.json of the published scheduler [default: the published values]
    #[arg(long, value_name = "FILE")]
    pub slurm_config: Option<PathBuf>,
    /// The file backfill_config.json of the published scheduler [default: the published values]
    #[arg(long, value_name = "FILE")]
    pub backfill_config: Option<PathBuf>,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}
