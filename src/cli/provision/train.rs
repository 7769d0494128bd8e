//! The arguments of `poolcast provision train`.

use std::path::PathBuf;

use clap::Args;

use crate::parameter_flags::ParameterFlags;
use crate::shared_flags::JsonFlag;
use poolcast_config::WaitModelParameters;
use poolcast_models::DeviceName;

/// Arguments of `provision train`.
#[derive(Debug, Args)]
pub struct ProvisionTrainArgs {
    /// Samples that `provision samples` wrote
    pub samples: PathBuf,
    /// Directory of the model to write
    #[arg(short, long, value_name = "MODEL")]
    pub out: PathBuf,
    /// Configuration file; only its keys under `provision.model`, `provision.cost_ratio`, `epochs`
    /// and the keys of early stopping are used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub model: ParameterFlags<WaitModelParameters>,
    /// Base model of `policy_gradient`, or a sweep of such models, whose best model is used
    #[arg(long, value_name = "MODEL")]
    pub base: Option<PathBuf>,
    /// Cost of an hour of interruption, in hours of overlap; a wait model has an answer for each
    /// value, other models learn for the first
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub cost_ratio: Option<Vec<f64>>,
    /// Maximum number of epochs of a network
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Seed of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Device that networks learn on: cpu, cuda, cuda:N, or auto for the first CUDA device if there
    /// is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Replace another model
    #[arg(long)]
    pub overwrite: bool,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
