//! The arguments of `poolcast predict`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// Directory of a run, of a trial, or of a sweep with a best trial
    pub run: PathBuf,
    /// For a pipeline: a CSV or Parquet table with the index and the features. For a network: a
    /// directory that `parse` or `tensors` wrote
    #[arg(
        value_name = "TABLE",
        required_unless_present = "logs",
        conflicts_with = "logs"
    )]
    pub input: Option<PathBuf>,
    /// For a network: the event log to read; repeat the option for further logs
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, requires = "logs")]
    pub year: Option<i16>,
    /// For a sweep over several splits of tables: the split whose best trial predicts
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// File to write: Parquet if its name ends in .parquet, otherwise CSV; - is standard output
    /// [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an earlier file
    #[arg(long)]
    pub overwrite: bool,
    /// Print the predictions as JSON
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}
