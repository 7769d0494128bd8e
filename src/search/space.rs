//! A configuration → its search space, in W&B's words; and a point of the space → the configuration
//! of a trial.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use crate::config::{Config, Distribution};
use crate::error::hinted;

/// The sections of a configuration whose `parameters` a sweep draws; no two have a parameter of the
/// same name.
const SECTIONS: [&str; 2] = ["preprocessing", "training"];

/// What a sweep draws from: each parameter's name and distribution, in W&B's order: by name.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSpace {
    parameters: Vec<(String, Distribution)>,
}

/// A point of a search space: the value of each parameter. A parameter within another has a dotted
/// name.
pub type SearchPoint = BTreeMap<String, Value>;

impl SearchSpace {
    /// The space of `config`: its parameters that are distributions.
    pub fn from_config(config: &Config) -> Result<SearchSpace> {
        let config = serde_json::to_value(config)?;
        let parameters = SECTIONS
            .iter()
            .filter_map(|section| config[section]["parameters"].as_object());
        let drawn = parameters
            .flatten()
            .filter(|(_, written)| written.is_object());
        SearchSpace::from_parameters(
            &drawn
                .map(|(name, written)| (name.clone(), written.clone()))
                .collect(),
        )
    }

    /// The space of W&B's `parameters`, which may hold others: `{optimizer: {parameters: {rate:
    /// {min: 0.0, max: 1.0}}}}`.
    ///
    /// # Errors
    /// Fails for what W&B's schema refuses, and names the parameter.
    pub fn from_parameters(parameters: &Map<String, Value>) -> Result<SearchSpace> {
        let mut space = SearchSpace {
            parameters: Vec::new(),
        };
        space.add_parameters("", parameters)?;
        Ok(space)
    }

    fn add_parameters(&mut self, above: &str, parameters: &Map<String, Value>) -> Result<()> {
        ensure!(
            !parameters.is_empty() || above.is_empty(),
            "`{}parameters` is empty",
            above
        );
        let by_name: BTreeMap<&String, &Value> = parameters.iter().collect();
        for (name, written) in by_name {
            let name = format!("{above}{name}");
            let written = written
                .as_object()
                .with_context(|| format!("`{name}` must be a distribution, got {written}"))?;
            match written.get("parameters").and_then(Value::as_object) {
                Some(within) if written.len() == 1 => {
                    self.add_parameters(&format!("{name}."), within)?
                }
                _ => {
                    let read = Distribution::try_from(written.clone()).map_err(anyhow::Error::msg);
                    self.parameters.push((
                        name.clone(),
                        read.with_context(|| format!("cannot use `{name}`"))?,
                    ));
                }
            }
        }
        Ok(())
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[(String, Distribution)] {
        &self.parameters
    }

    /// The point at `quantiles`, one quantile in 0..1 a parameter.
    pub fn point_at(&self, quantiles: &[f64]) -> SearchPoint {
        let parameters = self.parameters.iter().zip(quantiles);
        parameters
            .map(|((name, distribution), quantile)| (name.clone(), distribution.draw(*quantile)))
            .collect()
    }

    /// The quantiles of `point`, one a parameter; `None` for a point of another space.
    pub fn quantiles(&self, point: &SearchPoint) -> Option<Vec<f64>> {
        self.parameters
            .iter()
            .map(|(name, distribution)| distribution.unit(point.get(name)?))
            .collect()
    }
}

/// The configuration `config` with the values of `point` in place of its distributions.
///
/// # Errors
/// Fails for a value that the configuration cannot have.
pub fn trial_at(config: &Config, point: &SearchPoint) -> Result<Config> {
    let mut trial = serde_json::to_value(config)?;
    for section in SECTIONS {
        let parameters = trial[section]["parameters"]
            .as_object_mut()
            .into_iter()
            .flatten();
        for (name, written) in parameters {
            if let Some(value) = point.get(name) {
                *written = value.clone();
            }
        }
    }
    serde_json::from_value(trial).context(hinted(
        "a point of the search space is no configuration",
        "`poolcast config` explains every key",
    ))
}

/// The point that the configuration of a trial of `config` was made from.
pub fn point_of_trial(config: &Config, trial: &Config) -> Result<SearchPoint> {
    let space = SearchSpace::from_config(config)?;
    let trial = serde_json::to_value(trial)?;
    let value = |name: &String| {
        SECTIONS
            .iter()
            .find_map(|section| trial[section]["parameters"].get(name))
            .cloned()
    };
    Ok(space
        .parameters
        .iter()
        .filter_map(|(name, _)| Some((name.clone(), value(name)?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn no_two_sections_have_a_parameter_of_the_same_name() {
        let config = serde_json::to_value(config(&[])).expect("JSON");
        let names = SECTIONS.iter().flat_map(|section| {
            config[section]["parameters"]
                .as_object()
                .expect("them")
                .keys()
        });
        let (count, distinct) = (
            names.clone().count(),
            names.collect::<std::collections::BTreeSet<_>>().len(),
        );
        assert_eq!(count, distinct);
    }

    #[test]
    fn a_trial_is_its_point() {
        let config = config(&[
            (
                "preprocessing.parameters.context",
                json!({"values": ["uniform", "recent"]}),
            ),
            ("preprocessing.parameters.j", json!({"min": 1, "max": 10})),
            (
                "training.parameters.learning_rate",
                json!({"min": 0.0, "max": 0.1}),
            ),
        ]);
        let space = SearchSpace::from_config(&config).expect("a space");
        let names: Vec<&str> = space
            .parameters()
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["context", "j", "learning_rate"]);
        let drawn = space.point_at(&[0.75, 0.5, 0.25]);
        assert_eq!(
            serde_json::to_value(&drawn).expect("JSON"),
            json!({"context": "recent", "j": 5, "learning_rate": 0.025})
        );
        let trial = trial_at(&config, &drawn).expect("drawn");
        assert_eq!(
            point_of_trial(&config, &trial).expect("a point")["learning_rate"],
            json!(0.025)
        );
        assert!(
            SearchSpace::from_config(&trial)
                .expect("a space")
                .parameters()
                .is_empty()
        );
        assert_eq!(space.quantiles(&drawn), Some(vec![0.75, 0.45, 0.25]));
        assert_eq!(space.quantiles(&SearchPoint::new()), None);
    }

    #[test]
    fn parameters_are_found_within_others() {
        let space = |parameters: Value| {
            SearchSpace::from_parameters(parameters.as_object().expect("an object"))
        };
        let nested = space(
            json!({"b": {"value": null}, "a": {"parameters": {"d": {"values": ["x"]}, "c": {"value": true}}}}),
        );
        let drawn = nested.expect("a space").point_at(&[0.5, 0.5, 0.5]);
        assert_eq!(
            serde_json::to_value(drawn).expect("JSON"),
            json!({"a.c": true, "a.d": "x", "b": null})
        );
        let refusal =
            |parameters: Value| format!("{:#}", space(parameters).expect_err("must be refused"));
        assert_eq!(
            refusal(json!({"a": 5})),
            "`a` must be a distribution, got 5"
        );
        assert!(
            refusal(json!({"a": {"parameters": {"b": {"min": 2, "max": 1}}}}))
                .contains("`a.b`: `int_uniform` needs min < max")
        );
        assert!(refusal(json!({"a": {"parameters": {}}})).contains("`a.parameters` is empty"));
        assert!(
            refusal(json!({"a": {"parameters": {"b": {"value": 1}}, "value": 1}}))
                .contains("`parameters`")
        );
    }
}
