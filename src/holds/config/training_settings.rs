//! Settings of a training, read from a configuration.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::training::TrainingConfig;
use poolcast_config::{Metric, NetworkParameters, Threshold, TrainingKeys};
use poolcast_models::EngineChoice;
use poolcast_models::{Architecture, TrainingRecipe, find_architecture};

/// All settings that determine the result of a training, apart from its tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingSettings {
    /// Network and optimiser parameters.
    #[serde(flatten)]
    pub parameters: NetworkParameters,
    /// Engine that computes the network.
    pub engine: EngineChoice,
    /// Maximum number of epochs.
    pub epochs: usize,
    /// Epochs without improvement after which training stops.
    pub earlystop_threshold: usize,
    /// Change of the metric that an improvement must exceed.
    pub earlystop_min_delta: f64,
    /// Metric that early stopping watches on the validation samples.
    pub metric: Metric,
    /// Decision threshold, or the rule that chooses it.
    pub threshold: Threshold,
    /// Number of cuts in time. At each, a model is trained from scratch and judged on the samples
    /// that follow.
    pub time_cuts: usize,
    /// Root seed.
    pub seed: u64,
}

impl TrainingSettings {
    /// Reads the settings from `training` and from `keys`, the keys at the top of the configuration.
    /// Every network parameter must have a single value.
    ///
    /// # Errors
    /// Fails for a distribution, for a value out of range, and for an unknown model.
    pub fn new(training: &TrainingConfig, keys: TrainingKeys) -> Result<TrainingSettings> {
        let mut parameters = training.parameters.trial()?;
        let recipe = find_architecture(&parameters.model)?.recipe();
        parameters.weight_decay.get_or_insert(recipe.weight_decay);
        parameters
            .clip_grad_norm
            .get_or_insert(recipe.clip_grad_norm);
        let limit = recipe.max_epochs.unwrap_or(usize::MAX);
        let epochs = keys.epochs.min(limit);
        Ok(TrainingSettings {
            parameters,
            engine: training.engine,
            epochs,
            earlystop_threshold: match recipe.max_epochs {
                Some(_) => epochs,
                None => keys.earlystop_threshold,
            },
            earlystop_min_delta: keys.earlystop_min_delta,
            metric: keys.earlystop_metric,
            threshold: training.threshold,
            time_cuts: training.time_cuts,
            seed: keys.seed,
        })
    }

    /// The architecture of the network.
    pub(crate) fn architecture(&self) -> Result<&'static dyn Architecture> {
        find_architecture(&self.parameters.model)
    }

    /// How the architecture is trained where the parameters do not say.
    pub(crate) fn recipe(&self) -> Result<TrainingRecipe> {
        Ok(self.architecture()?.recipe())
    }
}

#[cfg(test)]
impl crate::test_config::TestConfig {
    pub(crate) fn training_settings(&self) -> TrainingSettings {
        TrainingSettings::new(&self.training, self.keys.clone()).expect("settings")
    }
}
