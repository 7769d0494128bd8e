//! The arguments of `poolcast publish`.

use std::path::PathBuf;

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Directory that `run` wrote
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Directory to write, or a tar file, whose name then ends with .tar
    #[arg(short, long, value_name = "DIR|FILE.tar")]
    pub out: PathBuf,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
