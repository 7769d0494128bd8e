//! The arguments of `poolcast evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use poolcast_models::DeviceName;
use poolcast_models::EngineChoice;
use poolcast_tensors::Split;

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Run directory of a model, or directory of a sweep that has chosen its best
    pub run: PathBuf,
    /// Directory of tensors that `tensors` wrote
    pub tensors: PathBuf,
    /// Split of the tensors to score the model on
    #[arg(long, value_enum, default_value = "test")]
    pub side: Split,
    /// Truth file that `simulate` wrote; also scores the best prediction that is possible at the
    /// hold
    #[arg(long, value_name = "TRUTH")]
    pub truth: Option<PathBuf>,
    /// Device to compute on: cpu, cuda, cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Engine that computes the network; it may differ from the engine of the training
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// Number of bootstrap resamples for each interval [default: as the run was configured]
    #[arg(long, value_name = "N")]
    pub resamples: Option<usize>,
    /// Print the scores as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}
