//! The arguments of `poolcast evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use crate::models::DeviceName;
use crate::tensors::SplitSide;

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// A run, or a directory in which a best one was chosen
    pub run: PathBuf,
    /// A directory that `tensors` wrote
    pub tensors: PathBuf,
    /// The side to score
    #[arg(long, value_enum, default_value = "test")]
    pub side: SplitSide,
    /// The truth of a simulated log: also scores the best that anybody could predict at the hold
    #[arg(long, value_name = "TRUTH")]
    pub truth: Option<PathBuf>,
    /// What to score on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Bootstrap resamples behind each interval [default: as the run was configured]
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
