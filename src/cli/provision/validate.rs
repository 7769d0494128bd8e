//! The arguments of `poolcast provision validate`.

use std::path::PathBuf;

use clap::Args;

use super::window_args::WindowArgs;

/// Arguments of `provision validate`.
#[derive(Debug, Args)]
pub struct ProvisionValidateArgs {
    /// The trace that `provision trace` wrote
    pub trace: PathBuf,
    /// The directory to write: summary.json, and a reward.log for each policy
    #[arg(short, long, value_name = "OUT")]
    pub out: PathBuf,
    /// A model that `provision train` wrote, or a sweep of such models, of which the best counts: its policies are compared, too; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<PathBuf>,
    /// Which cluster is simulated, and which windows.
    #[command(flatten)]
    pub windows: WindowArgs,
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
