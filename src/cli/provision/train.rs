//! The arguments of `poolcast provision train`.

use std::path::PathBuf;

use clap::Args;

use poolcast_config::{WaitModelName, WaitModelSize, WaitModelTarget};
use poolcast_models::DeviceName;

/// Arguments of `provision train`.
#[derive(Debug, Args)]
pub struct ProvisionTrainArgs {
    /// The samples that `provision samples` wrote
    pub samples: PathBuf,
    /// The directory of the model to write
    #[arg(short, long, value_name = "MODEL")]
    pub out: PathBuf,
    /// The configuration file; its keys under `provision.model` count, `provision.cost_ratio`, `epochs` and those of early stopping
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The kind of model
    #[arg(long, value_enum, value_name = "KIND")]
    pub model: Option<WaitModelName>,
    /// How large a network is
    #[arg(long, value_enum)]
    pub size: Option<WaitModelSize>,
    /// What is learned
    #[arg(long, value_enum)]
    pub target: Option<WaitModelTarget>,
    /// The model that `policy_gradient` stands on, or a sweep of such models, of which the best counts
    #[arg(long, value_name = "MODEL")]
    pub base: Option<PathBuf>,
    /// An hour without a running job costs as much as so many hours with two; a model of waits has an answer for each, others learn for the first
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub cost_ratio: Option<Vec<f64>>,
    /// The most epochs of a network
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// The learning rate of a network
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// The seed of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// The device that networks learn on: cpu, cuda, cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Replace another model
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}
