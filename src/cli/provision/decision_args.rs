//! The arguments on decisions about a live Slurm, which several steps of `poolcast provision`
//! share.

use std::path::PathBuf;

use clap::Args;

/// Facts about the cluster, and settings of the decision.
#[derive(Debug, Args)]
pub struct DecisionArgs {
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
    /// Cost of an hour of interruption, in hours of overlap [default: the first of
    /// `provision.cost_ratio`]
    #[arg(long, value_name = "C")]
    pub cost_ratio: Option<f64>,
    /// Number of random draws of run times for a forecast
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,
}
