//! The trials of the network, of wait models or of a program: their number, and the parameters that each of them
//! tries.

use std::collections::HashMap;

use anyhow::{Result, ensure};

use crate::config::{Config, MAX_TRIALS, Method, TrialSource};
use crate::search::{ObservedTrial, Sampler, SearchPoint, SearchSpace, grid_point_count};
use poolcast_base::error::hinted;
use poolcast_provision::wait_model::effective_parameters;

/// The draws of the network, or of wait models, that are trials. Equal draws are one trial.
#[derive(Debug)]
pub(crate) struct NetworkDraws {
    /// Number of trials.
    pub(crate) count: usize,
    /// The draw of each trial, counted from 1; `None` if all draws are trials.
    distinct: Option<Vec<usize>>,
    /// The draws that repeat others, and are not trials.
    pub(crate) repeats: Vec<RepeatedDraw>,
}

/// A draw that is equal to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedDraw {
    /// The draw's number, from 1.
    pub draw: usize,
    /// The first draw that equals it.
    pub first: usize,
}

impl NetworkDraws {
    /// Finds the draws of the sweep of `config`. The draws of the method `bayes` depend on earlier
    /// trials. Its equal draws are therefore found only if there is nothing to draw.
    ///
    /// # Errors
    /// Fails for a grid with a parameter that has no last value, or with too many points.
    pub(crate) fn from_config(config: &Config) -> Result<NetworkDraws> {
        let count = draw_count(config)?;
        let method = config.wandb.sweep.method;
        let space = SearchSpace::from_config(config);
        let is_given = config.wandb.sweep.id.is_some();
        let is_constant = space.parameters().is_empty();
        // A program may have another result each time, so its equal draws are trials, as for W&B.
        let is_command = config.trial_source() == TrialSource::Command;
        let is_finite = is_constant || grid_point_count(&space).is_ok();
        let is_known = is_constant || matches!(method, Method::Random | Method::Sobol);
        // Wait models are equal if they differ only in parameters without effect on their kinds.
        let is_over_waits = config.trial_source() == TrialSource::WaitSamples;
        let may_repeat = if is_over_waits {
            is_known || method == Method::Grid
        } else {
            is_finite && is_known && method != Method::Grid
        };
        if is_given || is_command || count < 2 || !may_repeat {
            return Ok(NetworkDraws {
                count,
                distinct: None,
                repeats: Vec::new(),
            });
        }

        let mut first_draws: HashMap<String, usize> = HashMap::new();
        let mut distinct = Vec::new();
        let mut repeats = Vec::new();
        for draw in 1..=count {
            let point = draw_network_point(config, draw, &[])?;
            let first = *first_draws
                .entry(equality_key(config, &point)?)
                .or_insert(draw);
            if first == draw {
                distinct.push(draw);
            } else {
                repeats.push(RepeatedDraw { draw, first });
            }
        }
        Ok(NetworkDraws {
            count: distinct.len(),
            distinct: Some(distinct),
            repeats,
        })
    }

    /// Returns the draw that trial `trial` tries, both counted from 1.
    pub(crate) fn draw_of(&self, trial: usize) -> usize {
        let of_trial = |distinct: &Vec<usize>| distinct.get(trial.wrapping_sub(1)).copied();
        self.distinct.as_ref().and_then(of_trial).unwrap_or(trial)
    }
}

/// A key that is the same for equal draws: the parameters of `point` that have an effect, as JSON.
fn equality_key(config: &Config, point: &SearchPoint) -> Result<String> {
    if config.trial_source() == TrialSource::WaitSamples
        && let Ok(drawn) = config.provision.model.clone().with_point(point).trial()
    {
        return Ok(serde_json::to_string(&effective_parameters(&drawn))?);
    }
    Ok(serde_json::to_string(point)?)
}

/// Counts the trials of the network in the sweep of `config`: `runs`, or every point of a grid; at
/// most `run_cap`, with equal draws counted once. Over wait samples all trials are counted here. A
/// sweep over tables has no network trials, nor has one with `runs` 0.
///
/// # Errors
/// Fails for a grid that cannot be made.
pub fn network_trial_count(config: &Config) -> Result<usize> {
    Ok(NetworkDraws::from_config(config)?.count)
}

fn draw_count(config: &Config) -> Result<usize> {
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
        trials <= MAX_TRIALS,
        hinted(
            format!("the grid has {points} points, expected at most {MAX_TRIALS}"),
            "draw fewer values, try some of them with `method: random`, or only the first with `run_cap`"
        )
    );
    Ok(trials as usize)
}

/// Makes the network's draw `draw`, counted from 1: a value for every distribution in `config`. The
/// result depends only on `config`, on `draw` and, with the method `bayes`, on the trials in
/// `history`.
pub(crate) fn draw_network_point(
    config: &Config,
    draw: usize,
    history: &[ObservedTrial],
) -> Result<SearchPoint> {
    let sampler = Sampler {
        space: &SearchSpace::from_config(config),
        method: config.wandb.sweep.method,
        goal: config.wandb.sweep.metric.goal,
        seed: config.seed,
    };
    sampler.suggest(draw, history)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(changes: &[(&'static str, Value)]) -> Config {
        Config::load(None, &changes.iter().cloned().collect()).expect("a configuration")
    }

    #[test]
    fn invalid_grids_are_rejected() {
        let grid = |parameter: Value, run_cap: Value| {
            network_trial_count(&config(&[
                ("wandb.sweep.method", json!("grid")),
                ("wandb.sweep.run_cap", run_cap),
                ("training.parameters.hidden_size", parameter.clone()),
                ("training.parameters.batch_size", parameter),
            ]))
        };
        let refusal = |parameter: Value| {
            poolcast_base::error::render(
                &grid(parameter, Value::Null).expect_err("must be refused"),
            )
        };
        assert!(refusal(json!({"min": 0.5, "max": 2})).contains("cannot search `batch_size`"));
        assert!(
            refusal(json!({"min": 1, "max": 1_000_000_000}))
                .contains("has 1000000000000000000 points")
        );
        assert!(
            refusal(json!({"min": -9e15 as i64, "max": 9e15 as i64}))
                .contains(&format!("has {} points", u64::MAX))
        );
        assert_eq!(grid(json!(4), Value::Null).expect("counted"), 1);
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
    fn run_cap_limits_the_number_of_trials() {
        let runs = |run_cap: Value| {
            network_trial_count(&config(&[
                ("runs", json!(5)),
                ("wandb.sweep.run_cap", run_cap),
                (
                    "training.parameters.learning_rate",
                    json!({"min": 0.0, "max": 1.0}),
                ),
            ]))
            .expect("counted")
        };
        assert_eq!([Value::Null, json!(3), json!(9)].map(runs), [5, 3, 5]);
    }

    #[test]
    fn trial_configurations_have_no_distributions() {
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

    #[test]
    fn equal_draws_are_one_trial() {
        let of = |runs: usize, method: &str, hidden_size: Value| {
            let config = config(&[
                ("runs", json!(runs)),
                ("wandb.sweep.method", json!(method)),
                ("training.parameters.hidden_size", hidden_size),
            ]);
            NetworkDraws::from_config(&config).expect("drawn")
        };
        for method in ["random", "sobol", "bayes"] {
            let constant = of(4, method, json!(32));
            let repeat = |draw| RepeatedDraw { draw, first: 1 };
            assert_eq!(constant.count, 1, "{method}");
            assert_eq!(constant.repeats, [2, 3, 4].map(repeat));
        }

        let of_three = of(40, "random", json!({"values": [8, 16, 32]}));
        assert_eq!((of_three.count, of_three.repeats.len()), (3, 37));
        assert_eq!(of_three.draw_of(1), 1);
        assert!(of_three.draw_of(2) < of_three.draw_of(3));
        let of_many = of(
            5,
            "random",
            json!({"distribution": "log_uniform_values", "min": 1, "max": 64}),
        );
        assert!(of_many.count <= 5);
        assert_eq!(of(40, "bayes", json!({"values": [8, 16]})).count, 40);
    }
}
