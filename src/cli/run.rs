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
    #[arg(required_unless_present_any = ["logs", "history"])]
    pub config: Option<PathBuf>,
    /// Event logs to read, directories of them, archives that `collect` writes, or `mine` for the
    /// logs that your jobs in the queue and in the history name, instead of the logs in the
    /// configuration
    #[arg(long = "log", value_name = "LOG", num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// Jobs that have left the queue, in place of logs: `now` for the history of this access point,
    /// files with the output of `condor_history -json` or `-l`, also with `-epochs`, a
    /// `PER_JOB_HISTORY_DIR`, or `-` for standard input. The ad of a job has its last hold alone
    #[arg(long, value_name = "now|FILE|DIR", num_args = 1.., conflicts_with = "logs")]
    pub history: Vec<PathBuf>,
    /// Directory for all results [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run every stage and all trials again, even if they are finished
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
