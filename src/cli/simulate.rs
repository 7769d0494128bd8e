//! The arguments of `poolcast simulate`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The global event log to write
    #[arg(short, long, value_name = "LOG")]
    pub out: PathBuf,
    /// The truth file to write: the cause of each hold, and the probability that the job succeeds once it is released
    #[arg(long, value_name = "TRUTH")]
    pub truth: PathBuf,
    /// The number of jobs to submit
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub jobs: u64,
    /// The number of days in the log [default: enough for 20000 jobs a day at most, and at least 7]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: Option<u32>,
    /// The first day of the log
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-05")]
    pub start: jiff::civil::Date,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Rotate the log whenever it reaches this many bytes; LOG.1 is the newest generation, and the highest number the oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub rotate_bytes: Option<u64>,
    /// Replace an earlier simulation
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
