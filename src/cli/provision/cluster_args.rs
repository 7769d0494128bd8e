//! The arguments on a live Slurm, which several steps of `poolcast provision` share.

use std::path::PathBuf;

use clap::Args;

use crate::advise::moment_ms;

/// Facts about the cluster, and settings of forecasts.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Configuration file; only its keys under `provision` are used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Number of nodes in the job's partition [default: as `sinfo` shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Maximum number of jobs that one user may run at once; 0 for any number [default: as the
    /// trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// Number of random draws of run times for a forecast
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,
}

/// The queue, if it is not queried from Slurm, and the past of its jobs.
#[derive(Debug, Args)]
pub struct QueueArgs {
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
}
