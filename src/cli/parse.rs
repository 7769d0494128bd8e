//! The arguments of `poolcast parse`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `parse`.
#[derive(Debug, Args)]
pub struct ParseArgs {
    /// Event logs: text, JSON or XML; plain, gzip, xz or zstd, told apart by content. Rotated generations beside a global
    /// event log are read, too
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The directory to write
    #[arg(short, long, value_name = "DIR", required_unless_present = "dump")]
    pub out: Option<PathBuf>,
    /// The access point's name [default: what the log says]
    #[arg(long)]
    pub ap: Option<String>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
    /// Damage within a log is an error
    #[arg(long)]
    pub strict: bool,
    /// Print the holds by code, too: how many were released, and how many of those succeeded
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    /// Print one JSON line an event instead, and write nothing
    #[arg(long, conflicts_with_all = ["out", "json", "stats", "strict"])]
    pub dump: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}
