//! The arguments of the steps that the jobs of a DAG take.

use std::path::PathBuf;

use clap::Args;

use crate::condor;
use crate::models::DeviceName;

/// Arguments of `sweep trials`.
#[derive(Debug, Args)]
pub struct SweepTrialsArgs {
    /// The directory of a DAG, or what of it these trials need
    pub dir: PathBuf,
    /// The trials: their numbers, and ranges of them
    #[arg(value_name = "TRIALS", value_parser = trial_numbers)]
    pub trials: TrialNumbers,
    /// The directory that travels, with rows, models and checkpoints
    #[arg(short, long, value_name = "PART")]
    pub out: PathBuf,
    /// What to train on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// As a job with `checkpoint_exit_code = 85`: when told to stop (SIGTERM), and after so many minutes (60 unless given),
    /// write a checkpoint and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    pub self_checkpoint: Option<f64>,
    /// Leave trainings once so many epochs are done: the step of a chain of jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Unpack this tar file first, where the program runs; what is there already stays as it is
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
}

/// Numbers of trials, counted from 1.
#[derive(Debug, Clone)]
pub struct TrialNumbers(pub Vec<usize>);

fn trial_numbers(text: &str) -> Result<TrialNumbers, String> {
    let numbers = condor::parse_trial_ranges(text).map(TrialNumbers);
    numbers.ok_or_else(|| "it takes numbers and ranges of them, such as 1-8,12".to_owned())
}

/// Arguments of `sweep conclude`.
#[derive(Debug, Args)]
pub struct SweepConcludeArgs {
    /// The directory of a DAG, or what of it this needs: config.yaml, rows, the manifest of its events or its table
    pub dir: PathBuf,
    /// Where to leave the results [default: in that directory]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
