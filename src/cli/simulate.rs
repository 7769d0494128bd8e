//! The arguments of `poolcast simulate`.

use std::path::PathBuf;

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Global event log to write
    #[arg(short, long, value_name = "LOG")]
    pub out: PathBuf,
    /// Truth file to write: the cause of each hold, and the probability that the job succeeds once
    /// it is released
    #[arg(long, value_name = "TRUTH")]
    pub truth: PathBuf,
    /// Number of jobs to submit
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub jobs: u64,
    /// Number of days in the log [default: enough for at most 20000 jobs a day, and at least 7]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: Option<u32>,
    /// First day of the log
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-05")]
    pub start: jiff::civil::Date,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of the log, in bytes, at which it is rotated; LOG.1 is the newest generation, and the
    /// highest number the oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub rotate_bytes: Option<u64>,
    /// Replace an earlier simulation
    #[arg(long)]
    pub overwrite: bool,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
