//! A learned model of any kind, and its answers.

use std::sync::Arc;

use anyhow::Result;

use super::wait_estimator::{TimeInputs, WaitEstimator};
use poolcast_config::WaitModelTarget;
use poolcast_published::{ActionValues, PolicyHead};

/// Minimum expected reward for a submission, in hours, as published.
const MIN_REWARD_H: f64 = -0.5;

/// Answer of a model at a decision time.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelAnswer {
    /// Predicted wait of a successor that is submitted now.
    Waits {
        /// Quantile of the wait for each cost ratio, in seconds.
        waits_s: Vec<f64>,
    },
    /// Decision about a submission now.
    Decision {
        /// `false`: query the model again at the next decision time.
        submit: bool,
    },
}

/// A model of any kind.
#[derive(Debug)]
pub(super) enum LearnedModel {
    /// Predicts a number.
    Estimator(Arc<WaitEstimator>),
    /// Decides from the predictions of another model.
    Head {
        base: Arc<WaitEstimator>,
        head: PolicyHead,
    },
    /// Decides from the values of both actions.
    Values(ActionValues),
}

impl LearnedModel {
    /// Returns the parameter count of the network or the head; `None` if the model has neither.
    pub(super) fn parameter_count(&self) -> Option<usize> {
        match self {
            LearnedModel::Estimator(estimator) => estimator.parameter_count(),
            LearnedModel::Head { head, .. } => Some(head.parameter_count()),
            LearnedModel::Values(values) => Some(values.network.parameter_count()),
        }
    }

    /// Returns true if the model reads snapshots.
    pub(super) fn takes_snapshots(&self) -> bool {
        match self {
            LearnedModel::Estimator(base) | LearnedModel::Head { base, .. } => {
                base.takes_snapshots()
            }
            LearnedModel::Values(_) => false,
        }
    }

    /// Returns true if the model answers with a decision, not with a wait.
    pub(super) fn decides(&self) -> bool {
        match self {
            LearnedModel::Estimator(estimator) => estimator.target == WaitModelTarget::Reward,
            LearnedModel::Head { .. } | LearnedModel::Values(_) => true,
        }
    }

    /// Returns the answer for one decision time. Predicted waits are in the order of `cost_ratios`,
    /// for which the model must have been trained.
    ///
    /// # Errors
    /// Fails for inputs of another shape.
    pub(super) fn answer(
        &self,
        inputs: TimeInputs<'_>,
        cost_ratios: &[f64],
    ) -> Result<ModelAnswer> {
        let submit = match self {
            LearnedModel::Estimator(estimator) => {
                let outputs_h = estimator.outputs_h(inputs)?;
                match estimator.target {
                    WaitModelTarget::Wait => return Ok(waits(&outputs_h, cost_ratios)),
                    WaitModelTarget::Reward => outputs_h[0] >= MIN_REWARD_H,
                }
            }
            LearnedModel::Head { base, head } => head.submits(&base.expected_gaps_h(inputs)?),
            LearnedModel::Values(values) => values.submits(inputs.features, inputs.left_s)?,
        };
        Ok(ModelAnswer::Decision { submit })
    }
}

/// Converts the predictions `outputs_h`, one per cost ratio, to waits. Negative predictions become
/// 0.
///
/// Quantiles that are learned separately may cross. Then they are sorted, so that the larger cost
/// ratio has the longer wait. This never raises the sum of their pinball losses (Chernozhukov,
/// Fernandez-Val and Galichon 2010, "Quantile and probability curves without crossing").
fn waits(outputs_h: &[f64], cost_ratios: &[f64]) -> ModelAnswer {
    let waits_s = outputs_h.iter().map(|wait_h| wait_h.max(0.0) * 3600.0);
    let mut waits_s: Vec<f64> = waits_s.collect();
    let mut sorted_s = waits_s.clone();
    sorted_s.sort_by(f64::total_cmp);
    let mut by_ratio: Vec<(usize, &f64)> = cost_ratios.iter().enumerate().collect();
    by_ratio.sort_by(|a, b| a.1.total_cmp(b.1));
    for ((place, _), wait_s) in by_ratio.into_iter().zip(sorted_s) {
        waits_s[place] = wait_s;
    }
    ModelAnswer::Waits { waits_s }
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;
    use poolcast_base::stats::cost_quantile;
    use poolcast_published::WaitLoss;

    fn waits_h(outputs_h: &[f64], cost_ratios: &[f64]) -> Vec<f64> {
        let ModelAnswer::Waits { waits_s } = waits(outputs_h, cost_ratios) else {
            panic!("waits are said");
        };
        waits_s.iter().map(|wait_s| wait_s / 3600.0).collect()
    }

    #[test]
    fn the_larger_cost_ratio_has_the_longer_wait() {
        assert_eq!(waits_h(&[1.0, 2.0], &[1.0, 3.0]), [1.0, 2.0]);
        assert_eq!(waits_h(&[2.0, 1.0], &[1.0, 3.0]), [1.0, 2.0]);
        let found = waits_h(&[2.0, 3.0, -1.0], &[3.0, 1.0, 2.0]);
        assert_eq!(found, [3.0, 0.0, 2.0]);
        assert_eq!(waits_h(&[-1.0], &[1.0]), [0.0]);
    }

    #[test]
    fn sorted_quantiles_have_no_larger_loss() {
        let cost_ratios = [1.0, 3.0, 0.5];
        let loss = WaitLoss::Pinball {
            quantiles: cost_ratios.map(cost_quantile).to_vec(),
        };
        let mut random = poolcast_base::seed::generator(1, "quantiles", &[]);
        for _ in 0..200 {
            let said: [f64; 3] = std::array::from_fn(|_| random.random_range(0.0..9.0));
            let came = random.random_range(0.0..9.0);
            let loss_of = |said: &[f64]| {
                let said: Vec<f32> = said.iter().map(|predicted_h| *predicted_h as f32).collect();
                loss.slopes(&said, came, &mut [0.0; 3])
            };
            let sorted = waits_h(&said, &cost_ratios);
            assert!(loss_of(&sorted) <= loss_of(&said) + 1e-6, "{said:?} {came}");
        }
    }
}
