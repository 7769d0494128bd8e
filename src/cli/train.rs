//! The arguments of `poolcast train`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::parameter_flags::ParameterFlags;
use super::shards::ShardArgs;
use super::shared_flags::JsonFlag;
use poolcast_config::NetworkParameters;
use poolcast_models::EngineChoice;
use poolcast_models::{ARCHITECTURES, Architecture, DeviceName};

/// Arguments of `train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// Directory of tensors that `tensors` wrote
    pub tensors: PathBuf,
    /// Run directory to write
    #[arg(short, long, value_name = "RUN")]
    pub out: PathBuf,
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Architecture of the network
    #[arg(long, value_parser = models())]
    pub model: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub network: ParameterFlags<NetworkParameters>,
    /// Maximum number of epochs
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Stop after this many epochs without improvement
    #[arg(long, value_name = "N")]
    pub earlystop_threshold: Option<u32>,
    /// Minimum change of the watched metric: only a larger change is an improvement
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    pub earlystop_min_delta: Option<f64>,
    /// Seed of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Time between checkpoints within an epoch, in minutes; 0 writes one after every batch
    #[arg(long, value_name = "MINUTES", allow_negative_numbers = true)]
    pub checkpoint_minutes: Option<f64>,
    /// Device to train on: cpu, cuda, cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Engine that computes the network: the kernels for an LSTM on a CPU, candle, or the first
    /// that can
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub engine: Option<EngineChoice>,
    /// Continue from the last checkpoint
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Run as a job with `checkpoint_exit_code = 85`: continue from the last checkpoint; on
    /// SIGTERM, and after this many minutes (60 if none are given), write one and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    #[arg(conflicts_with = "overwrite")]
    pub self_checkpoint: Option<f64>,
    /// Exit once the run has this many epochs, including earlier calls: one step of a chain of jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Replace an earlier training
    #[arg(long)]
    pub overwrite: bool,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

fn models() -> PossibleValuesParser {
    let value = |architecture: &&dyn Architecture| {
        PossibleValue::new(architecture.name()).help(architecture.about())
    };
    PossibleValuesParser::new(ARCHITECTURES.iter().map(value))
}
