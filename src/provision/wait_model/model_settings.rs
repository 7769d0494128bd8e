//! Settings of one training, taken from the configuration.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::network_training::LearningSettings;
use crate::config::{ProvisionConfig, default_wait_model};
use poolcast_config::{
    TrainingKeys, WaitModelName, WaitModelParameters, WaitModelSize, WaitModelTarget,
};
use poolcast_models::optim::EarlyStopping;
use poolcast_pipelines::{check_hyper_parameters, hyper_parameter_names};

/// Default learning rates of networks, by size.
const SMALL_LEARNING_RATE: f64 = 1e-3;
const PUBLISHED_LEARNING_RATE: f64 = 1e-4;

/// Settings of one training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitModelSettings {
    /// The keys under `provision.model`.
    pub model: WaitModelParameters,
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratios: Vec<f64>,
    /// Maximum number of epochs of a network.
    pub epochs: usize,
    /// Early stopping: epochs without improvement until a network's training ends.
    pub earlystop_threshold: usize,
    /// Early stopping: smallest decrease of the loss that counts as an improvement.
    pub earlystop_min_delta: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl WaitModelSettings {
    /// Reads the settings from `provision`, which must have one value per key, and from `keys`, the
    /// keys at the top of the configuration.
    ///
    /// # Errors
    /// Fails for a distribution, from which only a sweep can draw. Fails for a value out of range,
    /// and for a hyper-parameter that its pipeline does not have.
    pub fn new(provision: &ProvisionConfig, keys: &TrainingKeys) -> Result<WaitModelSettings> {
        let mut model = provision.model.trial()?;
        let epochs = model.epochs.take().unwrap_or(keys.epochs);
        if is_feature_kind(model.name) {
            check_hyper_parameters(&model.name.to_string(), &model.parameters)?;
        }
        Ok(WaitModelSettings {
            model,
            cost_ratios: provision.cost_ratio.list(),
            epochs,
            earlystop_threshold: keys.earlystop_threshold,
            earlystop_min_delta: keys.earlystop_min_delta,
            seed: keys.seed,
        })
    }

    /// Returns the settings for training a network.
    pub(super) fn learning(&self) -> LearningSettings {
        let default_rate = match self.model.size {
            WaitModelSize::Small => SMALL_LEARNING_RATE,
            WaitModelSize::Published => PUBLISHED_LEARNING_RATE,
        };
        LearningSettings {
            stopping: EarlyStopping {
                epochs: self.epochs,
                threshold: self.earlystop_threshold,
                min_delta: self.earlystop_min_delta,
            },
            learning_rate: self.model.learning_rate.unwrap_or(default_rate),
            batch_size: self.model.batch_size,
            seed: self.seed,
        }
    }
}

/// Model kinds that are pipelines on the features, with hyper-parameters of their own.
pub(super) const FEATURE_KINDS: [WaitModelName; 3] =
    [WaitModelName::Xgb, WaitModelName::Rf, WaitModelName::Nn];

fn is_feature_kind(kind: WaitModelName) -> bool {
    FEATURE_KINDS.contains(&kind)
}

/// Returns true if a pipeline of this kind has the hyper-parameter `name`.
pub(super) fn has_parameter(kind: WaitModelName, name: &str) -> bool {
    let names = hyper_parameter_names(&kind.to_string());
    is_feature_kind(kind) && names.is_ok_and(|names| names.contains(&name))
}

/// Returns the entries of `drawn` that apply to pipelines of this kind. An entry for this kind
/// alone takes precedence over an entry for all kinds.
fn parameters_for(kind: WaitModelName, drawn: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let (own, of_all): (Vec<_>, Vec<_>) = drawn.iter().partition(|(name, _)| name.contains('.'));
    let mut parameters = BTreeMap::new();
    for (name, value) in of_all.into_iter().chain(own) {
        if let Some(name) = name_for(kind, name) {
            parameters.insert(name.to_owned(), value.clone());
        }
    }
    parameters
}

/// Returns the hyper-parameter name that `name` means for a pipeline of this kind. `None` if it is
/// for other kinds: `xgb.max_depth` is for boosted trees only. A name without a kind is for every
/// kind that has it.
fn name_for(kind: WaitModelName, name: &str) -> Option<&str> {
    if let Some((of, name)) = name.split_once('.') {
        return (of == kind.to_string()).then_some(name);
    }
    let is_for_others = FEATURE_KINDS.iter().any(|kind| has_parameter(*kind, name));
    (has_parameter(kind, name) || !is_for_others).then_some(name)
}

/// Removes from `drawn` the settings that have no effect for its kind: network settings of a
/// pipeline, and hyper-parameters of other pipeline kinds. Two draws that are equal afterwards are
/// the same training.
pub fn effective_parameters(drawn: &WaitModelParameters) -> WaitModelParameters {
    let usual = default_wait_model();
    if is_feature_kind(drawn.name) {
        return WaitModelParameters {
            name: drawn.name,
            target: drawn.target,
            parameters: parameters_for(drawn.name, &drawn.parameters),
            ..usual
        };
    }
    let target = match drawn.name {
        // `dqn` learns the cost of a decision, so the target has no effect.
        WaitModelName::Dqn => WaitModelTarget::Wait,
        _ => drawn.target,
    };
    WaitModelParameters {
        target,
        parameters: BTreeMap::new(),
        ..drawn.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(name: WaitModelName, parameters: Value) -> WaitModelParameters {
        WaitModelParameters {
            name,
            learning_rate: Some(0.01),
            batch_size: 16,
            epochs: Some(3),
            parameters: serde_json::from_value(parameters).expect("an object"),
            ..default_wait_model()
        }
    }

    #[test]
    fn settings_of_other_kinds_are_dropped() {
        let written = json!({"n_estimators": 5, "learning_rate": 0.1, "xgb.learning_rate": 0.2, "nn.alpha": 1});
        let parameters = |kind| effective_parameters(&drawn(kind, written.clone())).parameters;
        let as_json = |kind| json!(parameters(kind));
        assert_eq!(
            as_json(WaitModelName::Xgb),
            json!({"n_estimators": 5, "learning_rate": 0.2})
        );
        assert_eq!(as_json(WaitModelName::Rf), json!({"n_estimators": 5}));
        assert_eq!(
            as_json(WaitModelName::Nn),
            json!({"learning_rate": 0.1, "alpha": 1})
        );
        assert_eq!(as_json(WaitModelName::Lstm), json!({}));
        let unknown = effective_parameters(&drawn(WaitModelName::Rf, json!({"depth": 5})));
        assert_eq!(
            json!(unknown.parameters),
            json!({"depth": 5}),
            "refused later"
        );

        let forest = effective_parameters(&drawn(WaitModelName::Rf, json!({})));
        let usual = default_wait_model();
        assert_eq!((forest.learning_rate, forest.epochs), (None, None));
        assert_eq!(forest.batch_size, usual.batch_size);
        let mut values = drawn(WaitModelName::Dqn, json!({}));
        values.target = WaitModelTarget::Reward;
        let values = effective_parameters(&values);
        assert_eq!(
            (values.target, values.batch_size),
            (WaitModelTarget::Wait, 16)
        );
    }
}
