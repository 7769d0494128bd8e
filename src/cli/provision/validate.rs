//! The arguments of `poolcast provision validate`.

use std::path::PathBuf;

use clap::Args;

use super::window_args::WindowArgs;
use crate::shared_flags::{JsonFlag, OverwriteFlag};

/// Arguments of `provision validate`.
#[derive(Debug, Args)]
pub struct ProvisionValidateArgs {
    /// Trace that `provision trace` wrote
    pub trace: PathBuf,
    /// Directory to write: summary.json, and a reward.log for each policy
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// Model that `provision train` wrote, or a sweep of such models, whose best model is used: its
    /// policies are also compared; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<PathBuf>,
    /// The simulated cluster and its windows.
    #[command(flatten)]
    pub windows: WindowArgs,
    /// Cost of an hour of interruption, in hours of overlap; several values are compared
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub cost_ratio: Option<Vec<f64>>,
    /// Number of random draws of run times for a forecast
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,
    /// Treatment of an earlier result.
    #[command(flatten)]
    pub earlier: OverwriteFlag,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
