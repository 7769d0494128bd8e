//! Names of hyper-parameters across the kinds of models in a sweep. Two kinds may have different
//! hyper-parameters of one name, such as the learning rate of `xgb` and of networks.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::config::{Config, TrialSource};
use poolcast_config::Parameter;

/// The kind of the trials that train a network.
pub const NETWORK_KIND: &str = "network";

/// The names that the hyper-parameters of a sweep have where several kinds of models are shown
/// together.
#[derive(Debug, Clone, Default)]
pub struct ParameterNames {
    /// Names that several kinds define differently.
    ambiguous: BTreeSet<String>,
}

impl ParameterNames {
    /// Finds the names that the kinds in the sweep `config` define differently.
    pub fn from_config(config: &Config) -> ParameterNames {
        let mut definitions: BTreeMap<Cow<'_, str>, BTreeMap<&str, Vec<&Parameter>>> =
            BTreeMap::new();
        for (kind, name, parameter) in parameters_by_kind(config) {
            let by_kind = definitions.entry(name).or_default();
            by_kind.entry(kind).or_default().push(parameter);
        }
        definitions.retain(|_, by_kind| {
            let mut of_kinds = by_kind.values();
            let first = of_kinds.next();
            of_kinds.any(|other| Some(other) != first)
        });
        ParameterNames {
            ambiguous: definitions.into_keys().map(Cow::into_owned).collect(),
        }
    }

    /// The name of hyper-parameter `name` of `kind`: `xgb.learning_rate` if kinds differ in it.
    pub fn name(&self, kind: &str, name: &str) -> String {
        if self.ambiguous.contains(name) {
            format!("{kind}.{name}")
        } else {
            name.to_owned()
        }
    }

    /// Returns `parameters` of a trial of `kind` with their names across kinds.
    pub fn renamed(
        &self,
        kind: &str,
        parameters: BTreeMap<String, Value>,
    ) -> BTreeMap<String, Value> {
        let named = parameters.into_iter();
        named
            .map(|(name, value)| (self.name(kind, &name), value))
            .collect()
    }
}

/// Lists the kind, the name and the definition of each hyper-parameter of the models in a sweep.
/// Hyper-parameters of samples are left out, because all kinds share them.
pub fn parameters_by_kind(config: &Config) -> Vec<(&str, Cow<'_, str>, &Parameter)> {
    let mut all = Vec::new();
    if config.trial_source() == TrialSource::Logs && config.runs > 0 {
        for (name, parameter) in config.training.parameters.all() {
            all.push((NETWORK_KIND, name, parameter));
        }
    }
    for (kind, spaces) in &config.pipelines {
        for space in spaces.all() {
            for (name, parameter) in &space.parameters {
                all.push((kind.as_str(), Cow::Borrowed(name), parameter));
            }
        }
    }
    all
}

/// The kind of a trial with this configuration: its pipeline, or `network`.
pub fn trial_kind(config: &Config) -> &str {
    let pipeline = config.pipelines.first_key_value();
    pipeline.map_or(NETWORK_KIND, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_kinds_define_differently_get_the_kind() {
        let pipelines = json!({
            "xgb": {"parameters": {
                "learning_rate": {"distribution": "log_uniform_values", "min": 0.01, "max": 0.3},
                "n_estimators": {"values": [50, 100]},
            }},
            "rf": {"parameters": {"n_estimators": {"values": [50, 100]}}},
        });
        let changes = BTreeMap::from([("pipelines", pipelines)]);
        let config = Config::load(None, &changes).expect("a configuration");
        let names = ParameterNames::from_config(&config);
        assert_eq!(names.name("xgb", "learning_rate"), "xgb.learning_rate");
        assert_eq!(
            names.name(NETWORK_KIND, "learning_rate"),
            "network.learning_rate"
        );
        assert_eq!(names.name("rf", "n_estimators"), "n_estimators");
        assert_eq!(names.name("rf", "j"), "j");

        let values = BTreeMap::from([("learning_rate".to_owned(), json!(0.1))]);
        let renamed = names.renamed("xgb", values);
        assert_eq!(renamed.keys().collect::<Vec<_>>(), ["xgb.learning_rate"]);
        assert_eq!(trial_kind(&config), "rf", "the first of its pipelines");
    }
}
