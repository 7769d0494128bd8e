//! The arguments of `poolcast simulate`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The global event log to write
    #[arg(short, long, value_name = "LOG")]
    pub out: PathBuf,
    /// Where to write what is known of each hold: its cause, and the probability that releasing it ends well
    #[arg(long, value_name = "TRUTH")]
    pub truth: PathBuf,
    /// Jobs to submit
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub jobs: u64,
    /// Days until the log ends [default: as many as make 20000 jobs a day, at least 7]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: Option<u32>,
    /// The first day
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-05")]
    pub start: jiff::civil::Date,
    /// The root of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Rotate the log whenever it has so many bytes: LOG.1 is the newest generation, the highest number the oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub rotate_bytes: Option<u64>,
    /// Replace an earlier simulation
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
