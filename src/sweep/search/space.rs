//! The search space of a configuration, in W&B's terms, and its points.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::{Config, read_init_points};
use poolcast_config::Distribution;

/// Search space of a sweep: the name and the distribution of each parameter, by name as in W&B.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSpace {
    parameters: Vec<(String, Distribution)>,
    first_points: Vec<SearchPoint>,
}

/// Point of a search space: the value of each parameter. A nested parameter has a dotted name.
pub type SearchPoint = BTreeMap<String, Value>;

impl SearchSpace {
    /// Creates the space of `config`: the parameters that it draws for samples and networks, or for
    /// models of waits or for a program.
    pub fn from_config(config: &Config) -> SearchSpace {
        let drawn = config.drawn_parameters();
        // Loading a configuration has checked its points.
        let points = read_init_points("init_points", &config.wandb.sweep.init_points, &drawn);
        SearchSpace {
            first_points: points.unwrap_or_default(),
            ..SearchSpace::new(drawn)
        }
    }

    /// Returns the same space with points that are tried first.
    pub(crate) fn with_first_points(self, first_points: Vec<SearchPoint>) -> SearchSpace {
        SearchSpace {
            first_points,
            ..self
        }
    }

    /// Returns the values that the configuration gives to trial `trial`, counted from 1, if it is one
    /// of the first.
    pub(super) fn first_point(&self, trial: usize) -> Option<&SearchPoint> {
        self.first_points.get(trial.wrapping_sub(1))
    }

    /// Creates the space of these parameters.
    pub fn new(parameters: BTreeMap<String, Distribution>) -> SearchSpace {
        SearchSpace {
            parameters: parameters.into_iter().collect(),
            first_points: Vec::new(),
        }
    }

    /// The parameters, sorted by name.
    pub fn parameters(&self) -> &[(String, Distribution)] {
        &self.parameters
    }

    /// Returns the point at `quantiles`, one quantile in 0..1 per parameter.
    pub fn point_at(&self, quantiles: &[f64]) -> SearchPoint {
        let parameters = self.parameters.iter().zip(quantiles);
        parameters
            .map(|((name, distribution), quantile)| (name.clone(), distribution.draw(*quantile)))
            .collect()
    }

    /// Returns the values `given`, and for all other parameters those at `quantiles`.
    pub(super) fn completed_point(&self, given: &SearchPoint, quantiles: &[f64]) -> SearchPoint {
        let mut point = self.point_at(quantiles);
        point.extend(given.clone());
        point
    }

    /// Returns the range of quantiles of each value of `point`, or `None` if the point is from another
    /// space.
    pub fn quantile_ranges(&self, point: &SearchPoint) -> Option<Vec<[f64; 2]>> {
        self.parameters
            .iter()
            .map(|(name, distribution)| distribution.unit_range(point.get(name)?))
            .collect()
    }
}

/// Creates the space of W&B's `parameters`, which may be nested: `{optimizer: {parameters: {rate:
/// {min: 0.0, max: 1.0}}}}` has `optimizer.rate`.
#[cfg(test)]
pub(super) fn space_of(parameters: &Value) -> SearchSpace {
    fn add(found: &mut BTreeMap<String, Distribution>, above: &str, parameters: &Value) {
        for (name, written) in parameters.as_object().expect("an object") {
            let name = format!("{above}{name}");
            match written.get("parameters") {
                Some(within) => add(found, &format!("{name}."), within),
                None => {
                    let read = serde_json::from_value(written.clone());
                    found.insert(name, read.expect("a distribution"));
                }
            }
        }
    }

    let mut found = BTreeMap::new();
    add(&mut found, "", parameters);
    SearchSpace::new(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_config::{
        ContextChoice, NetworkParameters, SampleParameters, TrialParameters as _,
    };
    use serde_json::json;

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn parameter_names_are_unique_across_sections() {
        let samples = SampleParameters::NAMES;
        let both = samples.iter().chain(NetworkParameters::NAMES);
        let distinct: std::collections::BTreeSet<_> = both.clone().collect();
        assert_eq!(both.count(), distinct.len());
    }

    #[test]
    fn trial_has_the_values_of_its_point() {
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
        let space = SearchSpace::from_config(&config);
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
        let trial = config.with_point(&drawn);
        let samples = trial.preprocessing.parameters.trial().expect("plain");
        assert_eq!((samples.j, samples.context), (5, ContextChoice::Recent));
        let network = trial.training.parameters.trial().expect("plain");
        assert_eq!(network.learning_rate, 0.025);
        assert!(SearchSpace::from_config(&trial).parameters().is_empty());
        assert_eq!(
            space.quantile_ranges(&drawn),
            Some(vec![[0.5, 1.0], [0.4, 0.5], [0.25, 0.25]])
        );
        assert_eq!(space.quantile_ranges(&SearchPoint::new()), None);
    }
}
