//! The arguments about decisions on a live Slurm that steps of `poolcast provision` share.

use std::path::PathBuf;

use clap::Args;

/// What is known of the cluster, and what it is decided by.
#[derive(Debug, Args)]
pub struct DecisionArgs {
    /// The configuration file; its keys under `provision` count
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How many nodes the job's partition has [default: as `sinfo` shows]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// How many jobs of one user may run at once; 0 for any number [default: as the trace shows]
    #[arg(long, value_name = "N")]
    pub max_jobs_per_user: Option<u32>,
    /// An hour without a running job costs as much as so many hours with two [default: the first of `provision.cost_ratio`]
    #[arg(long, value_name = "C")]
    pub cost_ratio: Option<f64>,
    /// How many times run times are drawn for a forecast
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,
}
