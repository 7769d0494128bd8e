//! The settings of a network that answers about held jobs.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::training_settings::TrainingSettings;
use poolcast_config::WindowPosition;
use poolcast_tensors::TensorSettings;

/// The settings of a network and of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkSettings {
    pub(crate) training: TrainingSettings,
    pub(crate) tensors: TensorSettings,
}

impl NetworkSettings {
    /// Lets the frames of the samples end at the prediction time, wherever they are in `tensors`, and gives
    /// the samples outcome tokens if the network reads them.
    ///
    /// # Errors
    /// Fails if the architecture is unknown.
    pub fn new(training: TrainingSettings, tensors: TensorSettings) -> Result<NetworkSettings> {
        let tensors = TensorSettings {
            window: WindowPosition::Release,
            outcomes: training.architecture()?.takes_tokens(),
            ..tensors
        };
        Ok(NetworkSettings { training, tensors })
    }

    /// The name of the architecture.
    pub(crate) fn name(&self) -> &str {
        &self.training.parameters.model
    }
}
