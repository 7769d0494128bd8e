//! The arguments of `poolcast parse`.

use std::path::PathBuf;

use clap::Args;

use super::shared_flags::{JsonFlag, OverwriteFlag};

/// Arguments of `parse`.
#[derive(Debug, Args)]
pub struct ParseArgs {
    /// Event logs: text, JSON or XML; plain or compressed with gzip, xz or zstd. Rotated
    /// generations beside a global event log are also read
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Directory of event shards to write
    #[arg(short, long, value_name = "DIR", required_unless_present = "dump")]
    pub out: Option<PathBuf>,
    /// Name of the access point [default: the name in the log]
    #[arg(long)]
    pub ap: Option<String>,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Treatment of an earlier result.
    #[command(flatten)]
    pub earlier: OverwriteFlag,
    /// Fail if a log is damaged, instead of counting the damage
    #[arg(long)]
    pub strict: bool,
    /// Also print the number of holds that were released for each hold code, and how many of these
    /// jobs then succeeded
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    /// Print each event as one line of JSON, and write no shards
    #[arg(long, conflicts_with_all = ["out", "json", "stats", "strict"])]
    pub dump: bool,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
