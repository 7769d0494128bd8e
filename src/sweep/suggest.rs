//! A search space, a method, a trial's number and what came of others → the point that the trial tries.

use anyhow::{Result, ensure};
use rand::Rng as _;

use super::bayes;
use super::space::{Point, Space, set};
use crate::config::{Config, Goal, MOST_TRIALS, Method};
use crate::error::hinted;

/// The Sobol points of one scrambling.
const SOBOL_POINTS: usize = 1 << 16;

/// What is known of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What it tries, or tried.
    pub point: Point,
    /// What came of it; `None` while it runs, and where it failed.
    pub value: Option<f64>,
}

/// How many trials of the network the sweep of `config` makes: `runs`, or every point of a grid; at most `run_cap`. None of
/// tables, nor where `runs` is 0.
///
/// # Errors
/// Fails for a grid without parameters, with one that has no last value, or with too many points.
pub fn count(config: &Config) -> Result<usize> {
    let sweep = &config.wandb.sweep;
    if config.data.is_given() || config.runs == 0 {
        return Ok(0);
    }
    let cap = sweep.run_cap.unwrap_or(usize::MAX);
    if sweep.method != Method::Grid {
        return Ok(config.runs.min(cap));
    }
    let points = grid_len(&Space::of(config)?)?;
    let trials = points.min(cap as u64);
    ensure!(
        trials <= MOST_TRIALS,
        hinted(
            format!("the grid has {points} points, and a sweep at most {MOST_TRIALS} trials"),
            "draw fewer values, try some of them with `method: random`, or only the first with `run_cap`"
        )
    );
    Ok(trials as usize)
}

/// The configuration of the network's trial `trial` of `config`, counted from 1: every distribution replaced by a value. It depends on
/// `config`, the trial and, with the method `bayes`, on the trials in `history` alone.
pub(super) fn draw(config: &Config, trial: usize, history: &[Observed]) -> Result<Config> {
    let (space, sweep) = (Space::of(config)?, &config.wandb.sweep);
    set(
        config,
        &suggest(
            &space,
            sweep.method,
            sweep.metric.goal,
            config.seed,
            trial,
            history,
        )?,
    )
}

/// The point that trial `trial`, counted from 1, tries in `space`.
pub fn suggest(
    space: &Space,
    method: Method,
    goal: Goal,
    seed: u64,
    trial: usize,
    history: &[Observed],
) -> Result<Point> {
    match method {
        Method::Grid => grid_point(space, trial),
        Method::Random => Ok(space.at(&random(space, seed, trial))),
        Method::Sobol => Ok(space.at(&sobol(space, seed, trial))),
        Method::Bayes => Ok(bayes::point(space, goal, seed, trial, history)),
    }
}

/// A generator of its own for each parameter, so that adding one changes no other.
pub(super) fn random(space: &Space, seed: u64, trial: usize) -> Vec<f64> {
    let names = space.parameters().iter().map(|(name, _)| name);
    names
        .map(|name| crate::seed::generator(seed, name, &[trial as i64]).random())
        .collect()
}

fn sobol(space: &Space, seed: u64, trial: usize) -> Vec<f64> {
    let (round, point) = (
        trial.saturating_sub(1) / SOBOL_POINTS,
        trial.saturating_sub(1) % SOBOL_POINTS,
    );
    let dimensions = sobol_burley::NUM_DIMENSIONS;
    let unit = |at: u32| {
        let scrambling =
            crate::seed::generator(seed, "sobol", &[round as i64, i64::from(at / dimensions)])
                .random();
        f64::from(sobol_burley::sample(
            point as u32,
            at % dimensions,
            scrambling,
        ))
    };
    (0..space.parameters().len() as u32).map(unit).collect()
}

/// How many points a grid over `space` has.
pub(super) fn grid_len(space: &Space) -> Result<u64> {
    ensure!(
        !space.parameters().is_empty(),
        hinted(
            "a grid needs a parameter to search",
            "give one several values, as in `hidden_size: {values: [16, 32]}`"
        )
    );
    let mut points = 1u64;
    for (name, distribution) in space.parameters() {
        let refusal = || {
            let hint = "give `values`, `int_uniform` or `q_uniform`, or use `method: random`";
            hinted(
                format!("a grid cannot search `{name}`, whose values cannot be counted"),
                hint,
            )
        };
        points = points.saturating_mul(distribution.grid_len().ok_or_else(refusal)?);
    }
    Ok(points)
}

/// W&B's order: the last parameter by name varies fastest.
fn grid_point(space: &Space, trial: usize) -> Result<Point> {
    let (points, mut rest) = (grid_len(space)?, trial.saturating_sub(1) as u64);
    ensure!(
        rest < points,
        "the grid has {points} points, and no point {trial}"
    );
    let mut point = Point::new();
    for (name, distribution) in space.parameters().iter().rev() {
        let len = distribution.grid_len().unwrap_or(1);
        point.insert(name.clone(), distribution.grid_value(rest % len));
        rest /= len;
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn space(parameters: &Value) -> Space {
        Space::read(parameters.as_object().expect("an object")).expect("a space")
    }

    fn points(parameters: &Value, method: Method, seed: u64, count: usize) -> Vec<Point> {
        let space = space(parameters);
        let suggest =
            |trial| suggest(&space, method, Goal::Minimize, seed, trial, &[]).expect("a point");
        (1..=count).map(suggest).collect()
    }

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn a_grid_has_the_order_of_wandb() {
        let vectors = include_str!("../../tests/data/wandb/sweeps_vectors.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        let space = space(&vectors["grid"]["config"]["parameters"]);
        let order = vectors["grid"]["order"].as_array().expect("an order");
        assert_eq!(
            grid_len(&space).expect("a grid"),
            order.len() as u64 - 1,
            "the last one says that there are no more"
        );
        for (at, wanted) in order.iter().enumerate().take(order.len() - 1) {
            let found = grid_point(&space, at + 1).expect("a point");
            let name = |name: &str| {
                name.split('.').fold(wanted.clone(), |above, part| {
                    above.get("value").unwrap_or(&above)[part].clone()
                })
            };
            for (key, value) in found {
                let wanted = name(&key);
                assert_eq!(
                    &value,
                    wanted.get("value").unwrap_or(&wanted),
                    "{key} of point {}",
                    at + 1
                );
            }
        }
        assert!(grid_point(&space, order.len()).is_err());
    }

    #[test]
    fn grids_that_cannot_be_made_are_refused() {
        let grid = |parameter: Value, run_cap: Value| {
            count(&config(&[
                ("wandb.sweep.method", json!("grid")),
                ("wandb.sweep.run_cap", run_cap),
                ("training.parameters.hidden_size", parameter.clone()),
                ("training.parameters.batch_size", parameter),
            ]))
        };
        let refusal = |parameter: Value| {
            crate::error::render(&grid(parameter, Value::Null).expect_err("must be refused"))
        };
        assert!(refusal(json!(4)).contains("a grid needs a parameter to search"));
        assert!(refusal(json!({"min": 0.5, "max": 2})).contains("cannot search `batch_size`"));
        assert!(
            refusal(json!({"min": 1, "max": 1_000_000_000}))
                .contains("has 1000000000000000000 points")
        );
        assert!(
            refusal(json!({"min": -9e15 as i64, "max": 9e15 as i64}))
                .contains(&format!("has {} points", u64::MAX))
        );
        assert_eq!(
            grid(json!({"values": [4, 8, 16]}), Value::Null).expect("counted"),
            9,
            "whatever `runs` is"
        );
        assert_eq!(
            grid(json!({"min": 1, "max": 1_000_000_000}), json!(7)).expect("counted"),
            7
        );
    }

    #[test]
    fn run_cap_is_the_most() {
        let runs = |run_cap: Value| {
            count(&config(&[
                ("runs", json!(5)),
                ("wandb.sweep.run_cap", run_cap),
            ]))
            .expect("counted")
        };
        assert_eq!([Value::Null, json!(3), json!(9)].map(runs), [5, 3, 5]);
    }

    #[test]
    fn trials_differ_and_repeat() {
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
    fn sobol_points_are_spread_evenly() {
        let square = json!({"a": {"min": 0.0, "max": 1.0}, "b": {"min": 0.0, "max": 1.0}});
        let mut cells = std::collections::BTreeSet::new();
        for point in points(&square, Method::Sobol, 3, 64) {
            cells.insert(
                ["a", "b"].map(|name| (8.0 * point[name].as_f64().expect("a number")) as usize),
            );
        }
        assert_eq!(cells.len(), 64, "one in each field of a chessboard");
        let beyond = space(&square);
        assert_ne!(
            sobol(&beyond, 3, 1),
            sobol(&beyond, 3, SOBOL_POINTS + 1),
            "a new scrambling, and no point twice"
        );
    }

    #[test]
    fn a_trial_of_a_configuration_has_no_distribution_left() {
        let config = config(&[
            (
                "training.parameters.learning_rate",
                json!({"min": 0.0, "max": 1.0}),
            ),
            (
                "preprocessing.parameters.context",
                json!({"values": ["recent"]}),
            ),
        ]);
        let trial = draw(&config, 1, &[]).expect("drawn");
        assert!(Space::of(&trial).expect("a space").parameters().is_empty());
        assert!(
            trial
                .training
                .parameters
                .learning_rate
                .real("learning_rate", 0.0..=1.0)
                .is_ok()
        );
        assert_eq!(
            trial.training.parameters.batch_size,
            config.training.parameters.batch_size
        );
    }
}
