//! What was learned, of any kind, and its answers.

use std::sync::Arc;

use anyhow::Result;

use super::action_values::ActionValues;
use super::policy_head::PolicyHead;
use super::wait_estimator::{MomentInputs, WaitEstimator};
use poolcast_config::WaitModelTarget;

/// What a model of the reward expects at least where its successor is submitted, hours, as published.
const LEAST_REWARD_H: f64 = -0.5;

/// What a model says of a moment.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelAnswer {
    /// How long a successor submitted now waits.
    Waits {
        /// Its quantile for each cost ratio, seconds.
        waits_s: Vec<f64>,
    },
    /// Whether to submit it now.
    Decision {
        /// `false`: ask again at the next moment.
        submit: bool,
    },
}

/// A model of any kind.
#[derive(Debug)]
pub(super) enum LearnedModel {
    /// Says a number.
    Estimator(Arc<WaitEstimator>),
    /// Decides by what another one says.
    Head {
        base: Arc<WaitEstimator>,
        head: PolicyHead,
    },
    /// Decides by the values of both actions.
    Values(ActionValues),
}

impl LearnedModel {
    /// How many parameters its network or its head has; `None` where it has neither.
    pub(super) fn parameter_count(&self) -> Option<usize> {
        match self {
            LearnedModel::Estimator(estimator) => estimator.parameter_count(),
            LearnedModel::Head { head, .. } => Some(head.parameter_count()),
            LearnedModel::Values(values) => Some(values.network.parameter_count()),
        }
    }

    /// Whether it reads snapshots.
    pub(super) fn takes_snapshots(&self) -> bool {
        match self {
            LearnedModel::Estimator(base) | LearnedModel::Head { base, .. } => {
                base.takes_snapshots()
            }
            LearnedModel::Values(_) => false,
        }
    }

    /// Whether it says whether to submit, in place of a wait.
    pub(super) fn decides(&self) -> bool {
        match self {
            LearnedModel::Estimator(estimator) => estimator.target == WaitModelTarget::Reward,
            LearnedModel::Head { .. } | LearnedModel::Values(_) => true,
        }
    }

    /// What it says of a moment; a wait for each of `cost_ratios`, which it has learned for.
    ///
    /// # Errors
    /// Fails for inputs of another shape.
    pub(super) fn answer(
        &self,
        inputs: MomentInputs<'_>,
        cost_ratios: &[f64],
    ) -> Result<ModelAnswer> {
        let submit = match self {
            LearnedModel::Estimator(estimator) => {
                let outputs_h = estimator.outputs_h(inputs)?;
                match estimator.target {
                    WaitModelTarget::Wait => return Ok(waits(&outputs_h, cost_ratios)),
                    WaitModelTarget::Reward => outputs_h[0] >= LEAST_REWARD_H,
                }
            }
            LearnedModel::Head { base, head } => head.submits(&base.expected_gaps_h(inputs)?),
            LearnedModel::Values(values) => values.submits(inputs.features, inputs.left_s)?,
        };
        Ok(ModelAnswer::Decision { submit })
    }
}

/// The waits of which a model says `outputs_h`, one for each of `cost_ratios`. None is below 0.
///
/// Quantiles that are learned one by one may cross. Where they do, they are sorted, so that the larger
/// cost ratio has the longer wait: this never raises the sum of their pinball losses (Chernozhukov,
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
    use crate::wait_model::wait_losses::WaitLoss;

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
                let said: Vec<f32> = said.iter().map(|said_h| *said_h as f32).collect();
                loss.slopes(&said, came, &mut [0.0; 3])
            };
            let sorted = waits_h(&said, &cost_ratios);
            assert!(loss_of(&sorted) <= loss_of(&said) + 1e-6, "{said:?} {came}");
        }
    }
}
