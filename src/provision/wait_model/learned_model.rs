//! What was learned, of any kind, and its answers.

use std::sync::Arc;

use anyhow::Result;

use super::action_values::ActionValues;
use super::policy_head::PolicyHead;
use super::wait_estimator::{MomentInputs, WaitEstimator};
use crate::config::WaitModelTarget;

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

    /// What it says of a moment.
    ///
    /// # Errors
    /// Fails for inputs of another shape.
    pub(super) fn answer(&self, inputs: MomentInputs<'_>) -> Result<ModelAnswer> {
        let submit = match self {
            LearnedModel::Estimator(estimator) => {
                let outputs_h = estimator.outputs_h(inputs)?;
                match estimator.target {
                    WaitModelTarget::Wait => return Ok(waits(&outputs_h)),
                    WaitModelTarget::Reward => outputs_h[0] >= LEAST_REWARD_H,
                }
            }
            LearnedModel::Head { base, head } => head.submits(&base.expected_gaps_h(inputs)?),
            LearnedModel::Values(values) => values.submits(inputs.features, inputs.left_s)?,
        };
        Ok(ModelAnswer::Decision { submit })
    }
}

/// No wait is below 0.
fn waits(outputs_h: &[f64]) -> ModelAnswer {
    let waits_s = outputs_h.iter().map(|wait_h| wait_h.max(0.0) * 3600.0);
    ModelAnswer::Waits {
        waits_s: waits_s.collect(),
    }
}
