//! A configuration → the trials of the network: how many there are, and what each of them tries.

use anyhow::{Result, ensure};

use crate::config::{Config, MOST_TRIALS, Method};
use crate::error::hinted;
use crate::search::{ObservedTrial, Sampler, SearchPoint, SearchSpace, grid_point_count};

/// How many trials of the network the sweep of `config` makes: `runs`, or every point of a grid; at
/// most `run_cap`. A sweep over tables makes none, nor does one with `runs` 0.
///
/// # Errors
/// Fails for a grid without parameters, with one that has no last value, or with too many points.
pub fn network_trial_count(config: &Config) -> Result<usize> {
    let sweep = &config.wandb.sweep;
    if config.data.is_given() || config.runs == 0 {
        return Ok(0);
    }

    let cap = sweep.run_cap.unwrap_or(usize::MAX);
    if sweep.method != Method::Grid {
        return Ok(config.runs.min(cap));
    }

    let points = grid_point_count(&SearchSpace::from_config(config))?;
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

/// What the network's trial `trial`, counted from 1, tries: a value for every distribution in
/// `config`. It depends on `config`, the trial and, with the method `bayes`, on the trials in
/// `history` alone.
pub(super) fn draw_network_point(
    config: &Config,
    trial: usize,
    history: &[ObservedTrial],
) -> Result<SearchPoint> {
    let sampler = Sampler {
        space: &SearchSpace::from_config(config),
        method: config.wandb.sweep.method,
        goal: config.wandb.sweep.metric.goal,
        seed: config.seed,
    };
    sampler.suggest(trial, history)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn grids_that_cannot_be_made_are_refused() {
        let grid = |parameter: Value, run_cap: Value| {
            network_trial_count(&config(&[
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
            network_trial_count(&config(&[
                ("runs", json!(5)),
                ("wandb.sweep.run_cap", run_cap),
            ]))
            .expect("counted")
        };
        assert_eq!([Value::Null, json!(3), json!(9)].map(runs), [5, 3, 5]);
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
        let trial = config.with_point(&draw_network_point(&config, 1, &[]).expect("drawn"));
        assert!(SearchSpace::from_config(&trial).parameters().is_empty());
        let network = trial.training.parameters.trial().expect("plain");
        assert!((0.0..=1.0).contains(&network.learning_rate));
        assert_eq!(network.batch_size, 64, "as in the defaults");
    }
}
