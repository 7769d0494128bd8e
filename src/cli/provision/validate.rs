//! The arguments of `poolcast provision validate`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `provision validate`.
#[derive(Debug, Args)]
pub struct ProvisionValidateArgs {
    /// The trace that `provision trace` wrote
    pub trace: PathBuf,
    /// The directory to write: summary.json, and a reward.log for each policy
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// A model that `provision train` wrote, whose policies are compared, too; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<PathBuf>,
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
    /// An hour without a running job costs as much as so many hours with two; several are compared
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub cost_ratio: Option<Vec<f64>>,
    /// How many times run times are drawn for a forecast
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
