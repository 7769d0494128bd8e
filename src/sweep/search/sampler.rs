//! Chooses the point of a trial by the method of the search.

use anyhow::Result;

use super::observed_trial::ObservedTrial;
use super::samplers::{grid, random, sobol, tpe};
use super::space::{SearchPoint, SearchSpace};
use crate::config::Method;
use poolcast_config::Goal;

/// Sampler for the points of a search's trials.
#[derive(Debug, Clone, Copy)]
pub struct Sampler<'a> {
    /// Search space.
    pub space: &'a SearchSpace,
    /// Method to draw points.
    pub method: Method,
    /// Goal: large or small values are better.
    pub goal: Goal,
    /// Root seed.
    pub seed: u64,
}

impl Sampler<'_> {
    /// Returns the point of trial `trial`, counted from 1. The first trials have the values that the
    /// configuration gives. Only the method `bayes` learns from `history`.
    ///
    /// # Errors
    /// Fails for a grid that cannot be made, and for a trial beyond the last point of a grid.
    pub fn suggest(&self, trial: usize, history: &[ObservedTrial]) -> Result<SearchPoint> {
        let Sampler {
            space,
            method,
            goal,
            seed,
        } = *self;

        if let Some(given) = space.first_point(trial) {
            let quantiles = match method {
                Method::Sobol => sobol::quantiles(space, seed, trial),
                _ => random::quantiles(space, seed, trial),
            };
            return Ok(space.completed_point(given, &quantiles));
        }
        match method {
            Method::Grid => grid::point(space, trial),
            Method::Random => Ok(space.point_at(&random::quantiles(space, seed, trial))),
            Method::Sobol => Ok(space.point_at(&sobol::quantiles(space, seed, trial))),
            Method::Bayes => Ok(tpe::point(space, goal, seed, trial, history)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::space::space_of;
    use serde_json::{Value, json};

    fn points(parameters: &Value, method: Method, seed: u64, count: usize) -> Vec<SearchPoint> {
        let sampler = Sampler {
            space: &space_of(parameters),
            method,
            goal: Goal::Minimize,
            seed,
        };
        (1..=count)
            .map(|trial| sampler.suggest(trial, &[]).expect("a point"))
            .collect()
    }

    #[test]
    fn points_differ_by_trial_and_repeat_by_seed() {
        let rate = json!({"rate": {"min": 0.0, "max": 1.0}, "layers": {"values": [1, 2]}});
        for method in [Method::Random, Method::Sobol, Method::Bayes] {
            let first = points(&rate, method, 1, 20);
            assert_eq!(first, points(&rate, method, 1, 20));
            assert_ne!(first[0], points(&rate, method, 2, 1)[0]);
            let (low, layers) = (
                first
                    .iter()
                    .filter(|point| point["rate"].as_f64() < Some(0.5))
                    .count(),
                |layers| {
                    first
                        .iter()
                        .filter(|point| point["layers"] == json!(layers))
                        .count()
                },
            );
            assert!(
                (4..=16).contains(&low) && layers(1) > 3 && layers(2) > 3,
                "{method:?}: {first:?}"
            );
        }
        let alone = points(
            &json!({"rate": {"min": 0.0, "max": 1.0}}),
            Method::Random,
            1,
            1,
        );
        assert_eq!(
            alone[0]["rate"],
            points(&rate, Method::Random, 1, 1)[0]["rate"],
            "another parameter changes nothing"
        );
    }

    #[test]
    fn first_points_are_tried_first_in_every_method() {
        let rate = json!({"rate": {"min": 0.0, "max": 1.0}, "layers": {"values": [1, 2]}});
        let first =
            |value: Value| -> SearchPoint { serde_json::from_value(value).expect("a point") };
        let space = space_of(&rate).with_first_points(vec![
            first(json!({"rate": 0.125})),
            first(json!({"rate": 0.25, "layers": 2})),
        ]);
        for method in [Method::Random, Method::Sobol, Method::Bayes] {
            let sampler = Sampler {
                space: &space,
                method,
                goal: Goal::Minimize,
                seed: 1,
            };
            let found: Vec<SearchPoint> = (1..=3)
                .map(|trial| sampler.suggest(trial, &[]).expect("a point"))
                .collect();
            let usual = points(&rate, method, 1, 3);
            assert_eq!(found[0]["rate"], json!(0.125));
            assert_eq!(found[0]["layers"], usual[0]["layers"], "{method:?}");
            assert_eq!(json!(found[1]), json!({"rate": 0.25, "layers": 2}));
            assert_eq!(found[2], usual[2], "{method:?}");
        }
    }

    #[test]
    fn sobol_points_are_spread_evenly() {
        let square = json!({"a": {"min": 0.0, "max": 1.0}, "b": {"min": 0.0, "max": 1.0}});
        let mut cells = std::collections::BTreeSet::new();
        for point in points(&square, Method::Sobol, 3, 64) {
            cells.insert(
                ["a", "b"].map(|name| (8.0 * point[name].as_f64().expect("a number")) as usize),
            );
        }
        assert_eq!(cells.len(), 64, "one in each field of a chessboard");
    }
}
