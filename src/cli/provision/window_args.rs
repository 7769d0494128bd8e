//! The arguments about simulated windows that steps of `poolcast provision` share.

use std::path::PathBuf;

use clap::Args;

/// Which cluster is simulated, and which windows of its trace.
#[derive(Debug, Args)]
pub struct WindowArgs {
    /// The configuration file; its keys under `provision` count
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How many nodes the cluster has [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// How many jobs of one user may run at once; 0 for any number [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// Where the first window begins: a date of the cluster's zone [default: 30 days into the trace, or half way]
    #[arg(long, value_name = "DATE")]
    pub start_time: Option<String>,
    /// Before when windows begin [default: as long as they fit into the trace]
    #[arg(long, value_name = "DATE")]
    pub end_time: Option<String>,
    /// Hours from one window to the next
    #[arg(long, value_name = "H")]
    pub interval: Option<u32>,
    /// How many nodes the chained jobs have
    #[arg(long, value_name = "N")]
    pub job_nodes: Option<u32>,
    /// Their time limit, minutes
    #[arg(long, value_name = "MIN")]
    pub job_limit: Option<u32>,
    /// Let windows begin with an empty cluster, as published
    #[arg(long)]
    pub cold_start: bool,
}
