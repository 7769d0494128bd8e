//! The arguments of `poolcast train`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::shards::ShardArgs;
use crate::models::{ARCHITECTURES, Architecture, DeviceName};

/// Arguments of `train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// A directory that `tensors` wrote
    pub tensors: PathBuf,
    /// The directory of the run
    #[arg(short, long, value_name = "RUN")]
    pub out: PathBuf,
    /// A configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What is trained
    #[arg(long, value_parser = models())]
    pub model: Option<String>,
    /// Layers, whatever the model
    #[arg(long, value_name = "N")]
    pub lstm_layers: Option<u32>,
    /// Width of each layer
    #[arg(long, value_name = "N")]
    pub hidden_size: Option<u32>,
    /// Adam's learning rate
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// The share of the learning rate by which every weight shrinks at each step
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub weight_decay: Option<f64>,
    /// The largest norm of a gradient, 0 for no limit
    #[arg(long, value_name = "NORM", allow_negative_numbers = true)]
    pub clip_grad_norm: Option<f64>,
    /// Samples a step
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,
    /// What a success counts in the loss, where a failure counts 1
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    pub pos_weight: Option<f64>,
    /// The most epochs
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Stop after so many epochs without improvement
    #[arg(long, value_name = "N")]
    pub earlystop_threshold: Option<u32>,
    /// What does not improve by more than this is no improvement
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    pub earlystop_min_delta: Option<f64>,
    /// The root of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write a checkpoint so often within an epoch, too; 0 for every batch
    #[arg(long, value_name = "MINUTES", allow_negative_numbers = true)]
    pub checkpoint_minutes: Option<f64>,
    /// What to train on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Go on from the last checkpoint
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// As a job with `checkpoint_exit_code = 85`: go on from the last checkpoint, as with --resume; when told to stop
    /// (SIGTERM), and after so many minutes (60 unless given), write one and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    #[arg(conflicts_with = "overwrite")]
    pub self_checkpoint: Option<f64>,
    /// Leave once so many epochs are done, whoever did them: the step of a chain of jobs; the next one goes on from there
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Start anew where a training is already
    #[arg(long)]
    pub overwrite: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
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
