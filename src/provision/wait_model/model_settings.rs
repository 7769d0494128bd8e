//! A configuration → what one training learns, and how.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::network_training::LearningSettings;
use poolcast_config::{Config, WaitModelName, WaitModelParameters, WaitModelSize, WaitModelTarget};
use poolcast_pipelines::{check_hyper_parameters, hyper_parameter_names};

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

/// Those of `drawn` that are for pipelines of this kind. One that is for it alone counts before one that is
/// for all.
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

/// What a hyper-parameter that is written as `name` is called by a pipeline of this kind; `None` where it
/// is for others: `xgb.max_depth` is for boosted trees alone, and a name without a kind is for all that
/// have it.
fn name_for(kind: WaitModelName, name: &str) -> Option<&str> {
    if let Some((of, name)) = name.split_once('.') {
        return (of == kind.to_string()).then_some(name);
    }
    let is_of_others = FEATURE_KINDS.iter().any(|kind| has_parameter(*kind, name));
    (has_parameter(kind, name) || !is_of_others).then_some(name)
}

/// `drawn` without what does not count for its kind: that of a network for a pipeline, and the
/// hyper-parameters that are for pipelines of other kinds. Two draws that agree in the rest are one
/// training.
pub fn effective_parameters(drawn: &WaitModelParameters) -> WaitModelParameters {
    let usual = WaitModelParameters::default();
    if learns_features(drawn.name) {
        return WaitModelParameters {
            name: drawn.name,
            target: drawn.target,
            parameters: parameters_for(drawn.name, &drawn.parameters),
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
            ..WaitModelParameters::default()
        }
    }

    #[test]
    fn what_does_not_count_for_a_kind_is_left_out() {
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
        let usual = WaitModelParameters::default();
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
