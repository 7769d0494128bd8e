//! The arguments of `poolcast provision samples`.

use std::path::PathBuf;

use clap::Args;

use super::window_args::WindowArgs;

/// Arguments of `provision samples`.
#[derive(Debug, Args)]
pub struct ProvisionSamplesArgs {
    /// Trace that `provision trace` wrote
    pub trace: PathBuf,
    /// Directory to write
    #[arg(short, long, value_name = "SAMPLES")]
    pub out: PathBuf,
    /// The simulated cluster and its windows.
    #[command(flatten)]
    pub windows: WindowArgs,
    /// Number of times in a window at which a successor is submitted
    #[arg(long, value_name = "N")]
    pub num_probe: Option<u32>,
    /// Replace earlier samples
    #[arg(long)]
    pub overwrite: bool,
    /// Print a summary of the samples as JSON
    #[arg(long)]
    pub json: bool,
}
