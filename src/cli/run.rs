//! The arguments of `poolcast run`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use super::shared_flags::JsonFlag;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Configuration file [default: the built-in config/quickstart.yaml, with time frames that fit
    /// the log]
    #[arg(required_unless_present = "logs")]
    pub config: Option<PathBuf>,
    /// Event logs to read, directories of them, archives that `collect` writes, or `mine` for the
    /// logs that your jobs in the queue and in the history name, instead of the logs in the
    /// configuration
    #[arg(long = "log", value_name = "LOG", num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// Directory for all results [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run every stage again, even if it is finished
    #[arg(long)]
    pub overwrite: bool,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}
