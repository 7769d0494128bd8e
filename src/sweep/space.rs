//! A configuration → its search space, in W&B's words; and a point of the space → the configuration of a trial.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use crate::config::{Config, Distribution};
use crate::error::hinted;

/// The sections of a configuration whose `parameters` a sweep draws; no two have a parameter of the same name.
const SECTIONS: [&str; 2] = ["preprocessing", "training"];

/// What a sweep draws from: each parameter's name and distribution, in W&B's order: by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parameters: Vec<(String, Distribution)>,
}

/// A point of a search space: the value of each parameter. A parameter within another has a dotted name.
pub type Point = BTreeMap<String, Value>;

impl Space {
    /// The space of `config`: its parameters that are distributions.
    pub fn of(config: &Config) -> Result<Space> {
        let config = serde_json::to_value(config)?;
        let parameters = SECTIONS
            .iter()
            .filter_map(|section| config[section]["parameters"].as_object());
        let drawn = parameters
            .flatten()
            .filter(|(_, written)| written.is_object());
        Space::read(
            &drawn
                .map(|(name, written)| (name.clone(), written.clone()))
                .collect(),
        )
    }

    /// The space of W&B's `parameters`, which may hold others: `{optimizer: {parameters: {rate: {min: 0.0, max: 1.0}}}}`.
    ///
    /// # Errors
    /// Fails for what W&B's schema refuses, and names the parameter.
    pub fn read(parameters: &Map<String, Value>) -> Result<Space> {
        let mut space = Space {
            parameters: Vec::new(),
        };
        space.add("", parameters)?;
        Ok(space)
    }

    fn add(&mut self, above: &str, parameters: &Map<String, Value>) -> Result<()> {
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
                Some(within) if written.len() == 1 => self.add(&format!("{name}."), within)?,
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

    /// The point at `units`, one quantile in 0..1 a parameter.
    pub fn at(&self, units: &[f64]) -> Point {
        let parameters = self.parameters.iter().zip(units);
        parameters
            .map(|((name, distribution), unit)| (name.clone(), distribution.draw(*unit)))
            .collect()
    }

    /// The quantiles of `point`, one a parameter; `None` for a point of another space.
    pub fn units(&self, point: &Point) -> Option<Vec<f64>> {
        self.parameters
            .iter()
            .map(|(name, distribution)| distribution.unit(point.get(name)?))
            .collect()
    }
}

/// The configuration `config` with the values of `point` in place of its distributions.
pub(super) fn set(config: &Config, point: &Point) -> Result<Config> {
    let mut set = serde_json::to_value(config)?;
    for section in SECTIONS {
        let parameters = set[section]["parameters"]
            .as_object_mut()
            .into_iter()
            .flatten();
        for (name, written) in parameters {
            if let Some(value) = point.get(name) {
                *written = value.clone();
            }
        }
    }
    serde_json::from_value(set).context(hinted(
        "a point of the search space is no configuration",
        "`poolcast config` explains every key",
    ))
}

/// The point that the configuration of a trial of `config` was made from.
pub fn point(config: &Config, trial: &Config) -> Result<Point> {
    let space = Space::of(config)?;
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
        let space = Space::of(&config).expect("a space");
        let names: Vec<&str> = space
            .parameters()
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["context", "j", "learning_rate"]);
        let drawn = space.at(&[0.75, 0.5, 0.25]);
        assert_eq!(
            serde_json::to_value(&drawn).expect("JSON"),
            json!({"context": "recent", "j": 5, "learning_rate": 0.025})
        );
        let trial = set(&config, &drawn).expect("set");
        assert_eq!(
            point(&config, &trial).expect("a point")["learning_rate"],
            json!(0.025)
        );
        assert!(Space::of(&trial).expect("a space").parameters().is_empty());
        assert_eq!(space.units(&drawn), Some(vec![0.75, 0.45, 0.25]));
        assert_eq!(space.units(&Point::new()), None);
    }

    #[test]
    fn parameters_are_found_within_others() {
        let space = |parameters: Value| Space::read(parameters.as_object().expect("an object"));
        let nested = space(
            json!({"b": {"value": null}, "a": {"parameters": {"d": {"values": ["x"]}, "c": {"value": true}}}}),
        );
        let drawn = nested.expect("a space").at(&[0.5, 0.5, 0.5]);
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
