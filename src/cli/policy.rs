//! The arguments of `poolcast policy`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// The directory of event shards that `parse` wrote
    #[arg(conflicts_with = "logs")]
    pub events: Option<PathBuf>,
    /// The event log to read, or an archive that `collect` writes; give the option again for each further log [default: the logs of the configuration file, or of the run that `advise` finds in the directory you are in]
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, conflicts_with = "events", value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// The configuration file: `advice.cost` or `advice.probable_precision` says when a release pays [default: that of the run]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the policy as JSON
    #[arg(long)]
    pub json: bool,
}
