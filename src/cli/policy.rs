//! The arguments of `poolcast policy`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Directory of event shards that `parse` wrote
    #[arg(conflicts_with = "logs")]
    pub events: Option<PathBuf>,
    /// Event log to read, or an archive that `collect` writes; repeat the option for further logs
    /// [default: the logs of the configuration file, or of the run that `advise` finds in the
    /// current directory]
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Jobs that have left the queue, in place of logs: `now` for the history of this access point,
    /// files with the output of `condor_history -json` or `-l`, also with `-epochs`, a
    /// `PER_JOB_HISTORY_DIR`, or `-` for standard input. The ad of a job has its last hold alone
    #[arg(long, value_name = "now|FILE|DIR", num_args = 1.., conflicts_with_all = ["logs", "events"])]
    pub history: Vec<PathBuf>,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, conflicts_with = "events", value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Configuration file: `advice.cost` or `advice.probable_precision` defines when a release pays
    /// [default: the configuration of the run]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the policy as JSON
    #[arg(long)]
    pub json: bool,
}
