//! A configuration → everything that decides what a training gives.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::run_dir::RUN_FORMAT;
use poolcast_config::{Config, EngineChoice, Metric, NetworkParameters, Threshold};
use poolcast_base::manifest;
use poolcast_models::{Architecture, find_architecture};

/// Everything that decides what a training gives, apart from its tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingSettings {
    /// The network, and how it learns.
    #[serde(flatten)]
    pub parameters: NetworkParameters,
    /// What computes it.
    pub engine: EngineChoice,
    /// The most epochs.
    pub epochs: usize,
    /// Epochs without improvement after which training stops.
    pub earlystop_threshold: usize,
    /// What does not improve the metric by more than this is no improvement.
    pub earlystop_min_delta: f64,
    /// What early stopping watches on the validation side.
    pub metric: Metric,
    /// From which probability on success is predicted.
    pub threshold: Threshold,
    /// Moments in time at which a model is trained anew, and judged on what follows.
    pub time_cuts: usize,
    /// The root seed.
    pub seed: u64,
}

impl TrainingSettings {
    /// The settings in `config`, whose network must leave nothing to draw.
    ///
    /// # Errors
    /// Fails for a distribution, for a value out of range, and for a model that there is not.
    pub fn from_config(config: &Config) -> Result<TrainingSettings> {
        let parameters = config.training.parameters.trial()?;
        find_architecture(&parameters.model)?;
        Ok(TrainingSettings {
            parameters,
            engine: config.training.engine,
            epochs: config.epochs,
            earlystop_threshold: config.earlystop_threshold,
            earlystop_min_delta: config.earlystop_min_delta,
            metric: config.earlystop_metric.clone(),
            threshold: config.training.threshold,
            time_cuts: config.training.time_cuts,
            seed: config.seed,
        })
    }

    /// What is trained.
    pub(super) fn architecture(&self) -> Result<&'static dyn Architecture> {
        find_architecture(&self.parameters.model)
    }

    /// The digest of everything that a training on the tensors `tensors_key` depends on.
    pub fn key(&self, tensors_key: &str) -> Result<String> {
        manifest::key(&(RUN_FORMAT.version, self, tensors_key))
    }
}
