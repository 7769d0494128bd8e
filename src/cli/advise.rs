//! The arguments of `poolcast advise`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// A run, or a directory in which a best one was chosen
    pub run: PathBuf,
    /// Held jobs: `123.0`, or `123` for a whole cluster [default: every held job]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// The event log to read; may be given several times
    #[arg(long = "log", required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}
