//! The arguments of `poolcast collect`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Global event logs; their rotated generations are found beside them
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Directory of the archive, used for nothing else
    #[arg(short, long, value_name = "ARCHIVE")]
    pub out: PathBuf,
    /// Print the contents of the archive as JSON
    #[arg(long)]
    pub json: bool,
}
