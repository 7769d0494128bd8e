//! The arguments of `poolcast provision samples`.

use std::path::PathBuf;

use clap::Args;

use super::window_args::WindowArgs;

/// Arguments of `provision samples`.
#[derive(Debug, Args)]
pub struct ProvisionSamplesArgs {
    /// The trace that `provision trace` wrote
    pub trace: PathBuf,
    /// The directory to write
    #[arg(short, long, value_name = "SAMPLES")]
    pub out: PathBuf,
    /// Which cluster is simulated, and which windows.
    #[command(flatten)]
    pub windows: WindowArgs,
    /// At how many moments of a window a successor is submitted
    #[arg(long, value_name = "N")]
    pub num_probe: Option<u32>,
    /// Replace earlier samples
    #[arg(long)]
    pub overwrite: bool,
    /// Print what they are as JSON
    #[arg(long)]
    pub json: bool,
}
