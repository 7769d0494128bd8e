//! The arguments of `poolcast provision advise`.

use std::path::PathBuf;

use clap::Args;

use super::cluster_args::{ClusterArgs, QueueArgs};

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
    /// The queue.
    #[command(flatten)]
    pub queue: QueueArgs,
    /// Cost of an hour of interruption, in hours of overlap [default: the first of
    /// `provision.cost_ratio`]
    #[arg(long, value_name = "C")]
    pub cost_ratio: Option<f64>,
    /// Facts about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}
