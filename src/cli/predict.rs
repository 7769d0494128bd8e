//! The arguments of `poolcast predict`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// A run, a trial, or a sweep in which a best one was chosen
    pub run: PathBuf,
    /// New rows, as a CSV or Parquet table with the index and the features; for a network a directory that `parse` or
    /// `tensors` wrote
    #[arg(
        value_name = "TABLE",
        required_unless_present = "logs",
        conflicts_with = "logs"
    )]
    pub input: Option<PathBuf>,
    /// For a network: an event log to read; may be given several times
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, requires = "logs")]
    pub year: Option<i16>,
    /// Of a sweep over tables: the split whose best trial predicts, where there are several
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// The file to write: Parquet if its name ends in .parquet, else CSV; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an earlier file
    #[arg(long)]
    pub overwrite: bool,
    /// Print the rows as JSON
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}
