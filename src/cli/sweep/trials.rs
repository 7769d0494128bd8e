//! The arguments of the steps that the jobs of a DAG run.

use std::path::PathBuf;

use clap::Args;

use poolcast_models::DeviceName;
use poolcast_sweep::condor;

/// Arguments of `sweep trials`.
#[derive(Debug, Args)]
pub struct SweepTrialsArgs {
    /// Directory of a DAG, or a copy of its files that these trials need
    pub dir: PathBuf,
    /// Numbers of the trials, and ranges of numbers, such as 1-8,12
    #[arg(value_name = "TRIALS", value_parser = trial_numbers)]
    pub trials: TrialsArg,
    /// Directory that travels with the job: rows of results, models and checkpoints
    #[arg(short, long, value_name = "PART")]
    pub out: PathBuf,
    /// Device to train on: cpu, cuda, cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Run as a job with `checkpoint_exit_code = 85`: on SIGTERM, and after this many minutes (60
    /// if none are given), write a checkpoint and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    pub self_checkpoint: Option<f64>,
    /// Stop each training once it has this many epochs: one step of a chain of jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Tar file to unpack into the working directory first; existing files are kept
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
}

/// Trial numbers, counted from 1.
#[derive(Debug, Clone)]
pub struct TrialsArg(pub Vec<usize>);

fn trial_numbers(text: &str) -> Result<TrialsArg, String> {
    let numbers = condor::parse_trial_ranges(text).map(TrialsArg);
    numbers.ok_or_else(|| "expected numbers and ranges, such as 1-8,12".to_owned())
}

/// Arguments of `sweep conclude`.
#[derive(Debug, Args)]
pub struct SweepConcludeArgs {
    /// Directory of a DAG, or a copy of its config.yaml, its rows, and the manifest of its events
    /// or its table
    pub dir: PathBuf,
    /// Directory for the results [default: the directory of the DAG]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
