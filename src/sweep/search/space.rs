//! The search space of a configuration, in W&B's terms, and its points.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::{Config, read_init_points};
use poolcast_config::Distribution;

/// Search space of a sweep: the name and the distribution of each parameter, by name as in W&B.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSpace {
    parameters: Vec<(String, Distribution)>,
    /// The index of the parameter that the condition of each one is on, if any.
    parents: Vec<Option<usize>>,
    first_points: Vec<SearchPoint>,
}

/// Point of a search space: the value of each parameter that it has. A nested parameter has a dotted
/// name.
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

    /// Creates the space of these parameters. A condition on a parameter that is not among them always
    /// holds.
    pub fn new(parameters: BTreeMap<String, Distribution>) -> SearchSpace {
        SearchSpace::with_prefix(parameters, "")
    }

    /// Like [`SearchSpace::new`], but the names in conditions lack `prefix`.
    pub(crate) fn with_prefix(
        parameters: BTreeMap<String, Distribution>,
        prefix: &str,
    ) -> SearchSpace {
        let parameters: Vec<(String, Distribution)> = parameters.into_iter().collect();
        let index = |name: &str| parameters.binary_search_by(|(known, _)| known.as_str().cmp(name));
        let parent = |(_, distribution): &(String, Distribution)| {
            let other = &distribution.condition()?.parameter;
            let own = index(&format!("{prefix}{other}"));
            own.or_else(|_| index(other)).ok()
        };
        SearchSpace {
            parents: parameters.iter().map(parent).collect(),
            parameters,
            first_points: Vec::new(),
        }
    }

    /// Returns the index of the parameter that the condition of the parameter `at` is on, if any.
    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        self.parents[at]
    }

    /// Returns true if a point with these values has the parameter `at`.
    fn has_parameter(&self, at: usize, values: &SearchPoint) -> bool {
        let mut at = at;
        // A damaged configuration may have a circle of conditions.
        for _ in 0..=self.parameters.len() {
            let condition = self.parameters[at].1.condition();
            let (Some(condition), Some(parent)) = (condition, self.parents[at]) else {
                return true;
            };
            let other = values.get(&self.parameters[parent].0);
            if !other.is_some_and(|other| condition.holds(other)) {
                return false;
            }
            at = parent;
        }
        false
    }

    /// Returns the parameters that a trial with these `values` does not have, because their condition
    /// does not hold.
    pub(crate) fn missing_parameters(&self, values: &SearchPoint) -> Vec<&str> {
        let all = self.parameters.iter().enumerate();
        let missing = all.filter(|(at, _)| !self.has_parameter(*at, values));
        missing.map(|(_, (name, _))| name.as_str()).collect()
    }

    /// Removes the values of parameters whose condition does not hold.
    pub(crate) fn without_missing(&self, mut point: SearchPoint) -> SearchPoint {
        if self.parents.iter().all(Option::is_none) {
            return point;
        }
        let missing: Vec<String> = {
            let missing = self.missing_parameters(&point).into_iter();
            missing.map(str::to_owned).collect()
        };
        for name in missing {
            point.remove(&name);
        }
        point
    }

    /// The parameters, sorted by name.
    pub fn parameters(&self) -> &[(String, Distribution)] {
        &self.parameters
    }

    /// Returns the point at `quantiles`, one quantile in 0..1 per parameter.
    pub fn point_at(&self, quantiles: &[f64]) -> SearchPoint {
        self.completed_point(&SearchPoint::new(), quantiles)
    }

    /// Returns the values `given`, and for all other parameters those at `quantiles`.
    pub(super) fn completed_point(&self, given: &SearchPoint, quantiles: &[f64]) -> SearchPoint {
        let parameters = self.parameters.iter().zip(quantiles);
        let drawn = parameters
            .map(|((name, distribution), quantile)| (name.clone(), distribution.draw(*quantile)));
        let mut point: SearchPoint = drawn.collect();
        point.extend(given.clone());
        self.without_missing(point)
    }

    /// Returns the range of quantiles of each value of `point`, or `None` if the point is from another
    /// space. A parameter that the point does not have has no range.
    pub fn quantile_ranges(&self, point: &SearchPoint) -> Option<Vec<Option<[f64; 2]>>> {
        let range = |(at, (name, distribution)): (usize, &(String, Distribution))| match self
            .has_parameter(at, point)
        {
            true => distribution.unit_range(point.get(name)?).map(Some),
            false => Some(None),
        };
        self.parameters.iter().enumerate().map(range).collect()
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
            Some(vec![Some([0.5, 1.0]), Some([0.4, 0.5]), Some([0.25, 0.25])])
        );
        assert_eq!(space.quantile_ranges(&SearchPoint::new()), None);
    }

    #[test]
    fn points_lack_parameters_whose_condition_does_not_hold() {
        let space = space_of(&json!({
            "a": {"values": [1, 2], "when": {"b": "y"}},
            "b": {"values": ["x", "y"], "when": {"c": [3]}},
            "c": {"values": [3, 4]},
        }));
        let point = |quantiles: &[f64]| json!(space.point_at(quantiles));
        assert_eq!(point(&[0.9, 0.9, 0.1]), json!({"a": 2, "b": "y", "c": 3}));
        assert_eq!(point(&[0.9, 0.1, 0.1]), json!({"b": "x", "c": 3}));
        assert_eq!(point(&[0.9, 0.9, 0.9]), json!({"c": 4}));
        let ranges = space.quantile_ranges(&space.point_at(&[0.9, 0.1, 0.1]));
        assert_eq!(ranges, Some(vec![None, Some([0.0, 0.5]), Some([0.0, 0.5])]));
    }

    #[test]
    fn networks_have_the_default_where_a_condition_does_not_hold() {
        let decay = json!({"min": 0.1, "max": 0.2, "when": {"model": "lstm"}});
        let config = config(&[
            ("training.parameters.weight_decay", decay),
            (
                "training.parameters.model",
                json!({"values": ["lstm", "mlp"]}),
            ),
        ]);
        let space = SearchSpace::from_config(&config);
        let decay_at = |quantile: f64| {
            let trial = config.with_point(&space.point_at(&[quantile, 0.5]));
            trial
                .training
                .parameters
                .trial()
                .expect("plain")
                .weight_decay
        };
        assert_eq!(decay_at(0.9), None, "as in the defaults");
        assert!(decay_at(0.1).is_some_and(|decay| decay > 0.1));
    }
}
