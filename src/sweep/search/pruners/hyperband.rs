//! Hyperband, as W&B's engine decides: stops running trials whose values are behind the others.

use crate::config::Hyperband;
use poolcast_config::Goal;

/// Values of a trial, one per epoch in which the watched metric is defined.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// True while the trial trains.
    pub is_running: bool,
    /// Values in the order of the epochs.
    pub values: Vec<f64>,
}

/// Returns the indices in `trials` of the trials to stop. A running trial stops if its value at the
/// highest band that it has reached is worse than the best `1 / eta` of all values there.
pub fn stopped_trials(hyperband: &Hyperband, goal: Goal, trials: &[Trajectory]) -> Vec<usize> {
    let losses: Vec<Vec<f64>> = trials
        .iter()
        .map(|trial| trial.values.iter().map(|value| goal.loss(*value)).collect())
        .collect();
    let bands = hyperband.bands();
    let is_behind = |losses_of_one: &Vec<f64>| {
        let reached = bands.iter().rfind(|band| **band <= losses_of_one.len());
        reached.is_some_and(|band| {
            loss_at_band(hyperband, losses_of_one, *band)
                > loss_threshold(hyperband, &losses, *band)
        })
    };
    let places = trials
        .iter()
        .zip(&losses)
        .enumerate()
        .filter(|(_, (trial, losses))| trial.is_running && is_behind(losses));
    places.map(|(place, _)| place).collect()
}

/// Returns the loss that decides for a trial at `band`: the loss there if the rule is strict,
/// otherwise the smallest loss so far.
fn loss_at_band(hyperband: &Hyperband, losses: &[f64], band: usize) -> f64 {
    if hyperband.strict {
        losses[band - 1]
    } else {
        losses.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Returns the largest loss with which a trial continues beyond `band`, or infinity if no trial has
/// reached it.
fn loss_threshold(hyperband: &Hyperband, losses: &[Vec<f64>], band: usize) -> f64 {
    let mut there: Vec<f64> = losses
        .iter()
        .filter_map(|losses| losses.get(band - 1).copied())
        .collect();
    there.sort_by(f64::total_cmp);
    let place = (1.0 / hyperband.eta * there.len() as f64) as usize;
    there.get(place).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EarlyTerminate;
    use serde_json::Value;

    /// Returns the cases of W&B's engine: the rule, the names of the trials, the trials, and the
    /// case.
    fn cases() -> Vec<(Hyperband, Vec<String>, Vec<Trajectory>, Value)> {
        let vectors = include_str!("../../../../tests/data/wandb/sweeps_vectors.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        let case = |case: &Value| {
            let rule = serde_json::from_value(case["early_terminate"].clone()).expect("a rule");
            let EarlyTerminate::Hyperband(hyperband) = rule else {
                panic!("it is hyperband")
            };
            let runs = case["runs"].as_array().expect("runs");
            let values = |run: &Value| -> Vec<f64> {
                run[2]
                    .as_array()
                    .expect("a history")
                    .iter()
                    .map(|row| row["loss"].as_f64().expect("a loss"))
                    .collect()
            };
            let names = runs
                .iter()
                .map(|run| run[0].as_str().expect("a name").to_owned())
                .collect();
            let trial = |run: &Value| Trajectory {
                is_running: run[1] == "running",
                values: values(run),
            };
            let trials = runs.iter().map(trial).collect();
            (hyperband, names, trials, case.clone())
        };
        vectors["hyperband"]
            .as_array()
            .expect("cases")
            .iter()
            .map(case)
            .collect()
    }

    #[test]
    fn decisions_match_wandb() {
        assert_eq!(cases().len(), 4);
        for (hyperband, names, trials, case) in cases() {
            let rule = &case["early_terminate"];
            let bands: Vec<usize> = serde_json::from_value(case["bands"].clone()).expect("bands");
            assert_eq!(hyperband.bands()[..bands.len()], bands, "{rule}");
            let losses: Vec<Vec<f64>> = trials.iter().map(|trial| trial.values.clone()).collect();
            for (band, wanted) in bands
                .iter()
                .zip(case["thresholds"].as_array().expect("thresholds"))
            {
                let wanted = wanted.as_f64().unwrap_or(f64::INFINITY);
                assert_eq!(
                    loss_threshold(&hyperband, &losses, *band),
                    wanted,
                    "{rule} at {band}"
                );
            }
            let found: Vec<&String> = stopped_trials(&hyperband, Goal::Minimize, &trials)
                .into_iter()
                .map(|at| &names[at])
                .collect();
            assert_eq!(
                serde_json::to_value(found).expect("JSON"),
                case["stopped"],
                "{rule}"
            );
        }
    }

    #[test]
    fn maximizing_equals_minimizing_the_negative() {
        for (hyperband, _, mut trials, _) in cases() {
            let least = stopped_trials(&hyperband, Goal::Minimize, &trials);
            trials
                .iter_mut()
                .flat_map(|trial| &mut trial.values)
                .for_each(|value| *value = -*value);
            assert_eq!(stopped_trials(&hyperband, Goal::Maximize, &trials), least);
        }
    }
}
