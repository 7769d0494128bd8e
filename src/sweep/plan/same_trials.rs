//! Compares the trials of two configurations: a sweep can be extended if the trials that it has are
//! also trials of the new configuration.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Map, Value, json};
use twox_hash::XxHash3_128;

use super::trial_row::hyper_parameters;
use crate::config::{Config, Method, TrialSource};
use poolcast_pipelines::effective_hyper_parameters;
use poolcast_provision::wait_model::effective_parameters;

/// A key with different values in two configurations.
#[derive(Debug, PartialEq)]
pub(crate) struct KeyDifference {
    /// The dotted key.
    pub(crate) key: String,
    /// The value in the earlier configuration.
    pub(crate) earlier: Value,
    /// The value in the new one.
    pub(crate) new: Value,
}

/// Finds the first key that every trial depends on and that has another value in `config` than in
/// `earlier`. Hyper-parameters and the number of trials are no such keys, and neither are the paths of
/// data, whose contents are compared elsewhere.
pub(crate) fn first_difference(earlier: &Config, config: &Config) -> Result<Option<KeyDifference>> {
    let mut config = config.clone();
    // More splits of tables are more trials.
    config
        .data
        .splits
        .retain(|name, _| earlier.data.splits.contains_key(name));
    let (old, new) = (common_part(earlier)?, common_part(&config)?);
    Ok(difference("", &old.into(), &new.into()))
}

/// Keys that every trial depends on.
const COMMON: [&str; 11] = [
    "/seed",
    "/epochs",
    "/earlystop_threshold",
    "/earlystop_min_delta",
    "/earlystop_metric",
    "/wandb/sweep",
    "/preprocessing",
    "/training",
    "/data",
    "/provision/cost_ratio",
    "/command",
];

/// Keys below them that say how many trials there are, or where data are.
const NOT_COMMON: [(&str, &str); 6] = [
    ("/wandb/sweep", "name"),
    ("/wandb/sweep", "run_cap"),
    ("/wandb/sweep/metric", "target"),
    ("/data", "features"),
    ("/data", "metadata"),
    ("/data", "split_names"),
];

/// Hyper-parameters of trials. A search that learns from earlier trials depends on their distributions,
/// too.
const SEARCHED: [(&str, &str); 4] = [
    ("/preprocessing", "parameters"),
    ("/training", "parameters"),
    ("/command", "parameters"),
    ("/provision", "model"),
];

/// The keys of `config` that every trial depends on.
fn common_part(config: &Config) -> Result<Map<String, Value>> {
    let mut written = serde_json::to_value(config)?;
    let mut keys = NOT_COMMON.to_vec();
    let mut common = COMMON.to_vec();
    if config.wandb.sweep.method == Method::Bayes {
        common.push("/provision/model");
    } else {
        keys.extend(SEARCHED);
    }
    for (section, key) in keys {
        let section = written.pointer_mut(section).and_then(Value::as_object_mut);
        section.map(|section| section.remove(key));
    }
    let parts = common.into_iter().map(|path| {
        let value = written.pointer(path).cloned().unwrap_or_default();
        (path[1..].replace('/', "."), value)
    });
    Ok(parts.collect())
}

/// Finds the first key below `above` whose value differs.
fn difference(above: &str, earlier: &Value, new: &Value) -> Option<KeyDifference> {
    if earlier == new {
        return None;
    }
    let (Value::Object(old_keys), Value::Object(new_keys)) = (earlier, new) else {
        return Some(KeyDifference {
            key: above.to_owned(),
            earlier: earlier.clone(),
            new: new.clone(),
        });
    };
    let separator = if above.is_empty() { "" } else { "." };
    let names: BTreeSet<&String> = old_keys.keys().chain(new_keys.keys()).collect();
    names.into_iter().find_map(|name| {
        let value = |keys: &Map<String, Value>| keys.get(name).cloned().unwrap_or_default();
        let key = format!("{above}{separator}{name}");
        difference(&key, &value(old_keys), &value(new_keys))
    })
}

/// Returns a digest that is the same for two trials with equal hyper-parameters, if their sweeps do not
/// differ in anything else. `config` is the configuration of one trial.
///
/// # Errors
/// Fails for hyper-parameters that a trial cannot have.
pub(crate) fn trial_key(config: &Config) -> Result<u128> {
    let source = config.trial_source();
    let mut parameters = match (source, config.pipelines.first_key_value()) {
        (TrialSource::WaitSamples, _) => {
            json!(effective_parameters(&config.provision.model.trial()?))
        }
        (_, None) => json!(hyper_parameters(config)),
        (_, Some((name, spaces))) => {
            let mut values = BTreeMap::new();
            for (key, parameter) in spaces.all().iter().flat_map(|space| &space.parameters) {
                values.insert(key.clone(), parameter.constant(key)?.clone());
            }
            let split = config.data.split_names.first();
            json!([name, split, effective_hyper_parameters(name, &values)?])
        }
    };
    if source == TrialSource::Logs {
        parameters = json!([parameters, config.preprocessing.parameters]);
    }
    Ok(XxHash3_128::oneshot(&serde_json::to_vec(&parameters)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn only_keys_of_all_trials_are_compared() {
        let rate = |high: f64| json!({"min": 0.0, "max": high});
        let earlier = config(&[
            ("runs", json!(3)),
            ("training.parameters.learning_rate", rate(0.1)),
        ]);
        let longer = config(&[
            ("runs", json!(6)),
            ("wandb.sweep.run_cap", json!(5)),
            ("wandb.sweep.name", json!("longer")),
            ("training.parameters.learning_rate", rate(0.2)),
            ("pipelines.rf", json!({"runs": 2})),
        ]);
        assert_eq!(first_difference(&earlier, &longer).expect("compared"), None);

        let other = config(&[("runs", json!(6)), ("epochs", json!(7))]);
        let found = first_difference(&earlier, &other).expect("compared");
        let found = found.expect("a difference");
        assert_eq!((found.key.as_str(), found.new), ("epochs", json!(7)));

        let bayes = |high: f64| {
            config(&[
                ("wandb.sweep.method", json!("bayes")),
                ("training.parameters.learning_rate", rate(high)),
            ])
        };
        let found = first_difference(&bayes(0.1), &bayes(0.2)).expect("compared");
        assert_eq!(
            found.map(|found| found.key).as_deref(),
            Some("training.parameters.learning_rate.max")
        );
    }

    #[test]
    fn trials_are_equal_if_their_effective_parameters_are() {
        let key = |parameters: Value| {
            let pipeline = json!({"parameters": parameters});
            trial_key(&config(&[("pipelines.enet", pipeline)])).expect("a key")
        };
        assert_eq!(
            key(json!({"C": 1.0})),
            key(json!({"C": 1.0, "l1_ratio": 0.5}))
        );
        assert_ne!(key(json!({"C": 1.0})), key(json!({"C": 2.0})));
    }
}
