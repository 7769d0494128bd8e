//! The arguments on simulated windows, which several steps of `poolcast provision` share.

use std::path::PathBuf;

use clap::Args;

/// The simulated cluster, and the windows of its trace.
#[derive(Debug, Args)]
pub struct WindowArgs {
    /// Configuration file; only its keys under `provision` are used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Number of nodes in the cluster [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Maximum number of jobs that one user may run at once; 0 for any number [default: as the
    /// trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// Start of the first window: a date in the cluster's zone [default: 30 days into the trace, or
    /// half way]
    #[arg(long, value_name = "DATE")]
    pub start_time: Option<String>,
    /// Date before which windows begin [default: as long as they fit into the trace]
    #[arg(long, value_name = "DATE")]
    pub end_time: Option<String>,
    /// Hours from one window to the next
    #[arg(long, value_name = "H")]
    pub interval: Option<u32>,
    /// Number of nodes of the chained jobs
    #[arg(long, value_name = "N")]
    pub job_nodes: Option<u32>,
    /// Time limit of the chained jobs, in minutes
    #[arg(long, value_name = "MIN")]
    pub job_limit: Option<u32>,
    /// Start each window with an empty cluster, as published
    #[arg(long)]
    pub cold_start: bool,
}
