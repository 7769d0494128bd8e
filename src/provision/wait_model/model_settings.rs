//! A configuration → what one training learns, and how.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::network_training::LearningSettings;
use crate::config::{
    Config, WaitModelName, WaitModelParameters, WaitModelSize, WaitModelTarget,
};
use crate::pipelines::{check_hyper_parameters, hyper_parameter_names};

/// The learning rates of networks where none is given.
const SMALL_LEARNING_RATE: f64 = 1e-3;
const PUBLISHED_LEARNING_RATE: f64 = 1e-4;

/// What is learned, and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitModelSettings {
    /// The keys `provision.model`.
    pub model: WaitModelParameters,
    /// What an hour of interruption costs in hours of overlap.
    pub cost_ratios: Vec<f64>,
    /// The most epochs of a network.
    pub epochs: usize,
    /// A network ends after so many epochs without improvement.
    pub earlystop_threshold: usize,
    /// What is no improvement.
    pub earlystop_min_delta: f64,
    /// Every random choice follows from it.
    pub seed: u64,
}

impl WaitModelSettings {
    /// Those of `config`, which has one value for each key.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep draws from, and for a value out of range, also of a
    /// hyper-parameter that its pipeline does not have.
    pub fn from_config(config: &Config) -> Result<WaitModelSettings> {
        let mut model = config.provision.model.trial()?;
        let epochs = model.epochs.take().unwrap_or(config.epochs);
        if learns_features(model.name) {
            check_hyper_parameters(&model.name.to_string(), &model.parameters)?;
        }
        Ok(WaitModelSettings {
            model,
            cost_ratios: config.provision.cost_ratio.list(),
            epochs,
            earlystop_threshold: config.earlystop_threshold,
            earlystop_min_delta: config.earlystop_min_delta,
            seed: config.seed,
        })
    }

    /// How a network learns.
    pub(super) fn learning(&self) -> LearningSettings {
        let usual_rate = match self.model.size {
            WaitModelSize::Small => SMALL_LEARNING_RATE,
            WaitModelSize::Published => PUBLISHED_LEARNING_RATE,
        };
        LearningSettings {
            epochs: self.epochs,
            earlystop_threshold: self.earlystop_threshold,
            earlystop_min_delta: self.earlystop_min_delta,
            learning_rate: self.model.learning_rate.unwrap_or(usual_rate),
            batch_size: self.model.batch_size,
            seed: self.seed,
        }
    }
}

/// The kinds of models that are pipelines on the features, and have their hyper-parameters.
pub(super) const FEATURE_KINDS: [WaitModelName; 3] =
    [WaitModelName::Xgb, WaitModelName::Rf, WaitModelName::Nn];

fn learns_features(kind: WaitModelName) -> bool {
    FEATURE_KINDS.contains(&kind)
}

/// Whether a pipeline of this kind has the hyper-parameter `name`.
pub(super) fn has_parameter(kind: WaitModelName, name: &str) -> bool {
    let names = hyper_parameter_names(&kind.to_string());
    learns_features(kind) && names.is_ok_and(|names| names.contains(&name))
}

/// `drawn` without what does not count for its kind: that of a network for a pipeline, and the
/// hyper-parameters that only pipelines of other kinds have. Two draws that agree in the rest are one
/// training.
pub fn effective_parameters(drawn: &WaitModelParameters) -> WaitModelParameters {
    let usual = WaitModelParameters::default();
    if learns_features(drawn.name) {
        let is_of_others = |name: &String| {
            let mut others = FEATURE_KINDS.into_iter();
            !has_parameter(drawn.name, name) && others.any(|kind| has_parameter(kind, name))
        };
        let mut parameters: BTreeMap<String, Value> = drawn.parameters.clone();
        parameters.retain(|name, _| !is_of_others(name));
        return WaitModelParameters {
            name: drawn.name,
            target: drawn.target,
            parameters,
            ..usual
        };
    }
    let target = match drawn.name {
        // It learns the cost of a decision, whatever others say.
        WaitModelName::Dqn => WaitModelTarget::Wait,
        _ => drawn.target,
    };
    WaitModelParameters {
        target,
        parameters: BTreeMap::new(),
        ..drawn.clone()
    }
}
