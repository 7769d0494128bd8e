//! The arguments of `poolcast share`.

use std::path::PathBuf;

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `share`.
#[derive(Debug, Args)]
pub struct ShareArgs {
    /// Directory of event shards that `parse` wrote, or of a run or sweep
    #[arg(value_name = "RUN")]
    pub source: PathBuf,
    /// File to write, in the format safetensors [default: nothing is written]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
