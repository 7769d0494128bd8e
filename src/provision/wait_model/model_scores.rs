//! Summary of a model's held-back scores, with the metrics by which a sweep compares models.

use serde::{Deserialize, Serialize};

use super::held_back_scores::HeldBackScores;
use super::wait_model_store::WaitModelSummary;
use poolcast_base::stats::mean;
use poolcast_config::MetricName;

/// Scores of a model on the held-back windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelScores {
    /// Mean pinball loss of the predicted waits over rows and cost ratios, in hours. `None` for a
    /// model that does not predict waits.
    pub held_back_pinball: Option<f64>,
    /// Mean cost of a window over windows and cost ratios, in hours of overlap.
    pub held_back_cost: Option<f64>,
    /// Number of epochs of a network.
    pub epochs: usize,
    /// Scores of each quantile and each policy.
    #[serde(flatten)]
    pub held_back: HeldBackScores,
}

impl WaitModelScores {
    /// Computes the scores of the model in `summary` for `cost_ratios`. A model that knows only one
    /// cost ratio decides the same for all of them.
    pub fn of(summary: &WaitModelSummary, cost_ratios: &[f64]) -> WaitModelScores {
        let held_back = &summary.held_back;
        let losses = held_back.quantiles.iter().map(|score| score.pinball_h);
        let losses: Vec<f64> = losses.collect();
        let costs = cost_ratios.iter();
        let costs: Vec<f64> = costs
            .filter_map(|ratio| cost_h(held_back, *ratio))
            .collect();
        WaitModelScores {
            held_back_pinball: some_mean(&losses),
            held_back_cost: some_mean(&costs),
            epochs: summary.epochs.len(),
            held_back: held_back.clone(),
        }
    }

    /// Returns the value of the metric `name`.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        match name {
            MetricName::HeldBackPinball => self.held_back_pinball,
            MetricName::HeldBackCost => self.held_back_cost,
            _ => None,
        }
    }

    /// Returns the value of the other metric, for models that are equal by the metric `name`. Lower
    /// is better.
    pub fn tie_breaker(&self, name: MetricName) -> f64 {
        let other = match name {
            MetricName::HeldBackCost => self.held_back_pinball,
            _ => self.held_back_cost,
        };
        other.unwrap_or(f64::INFINITY)
    }
}

/// Returns the mean cost of a window, in hours of overlap. An hour of interruption costs as much as
/// `cost_ratio` hours of overlap. Uses the policy for that ratio, or else the model's only policy.
fn cost_h(held_back: &HeldBackScores, cost_ratio: f64) -> Option<f64> {
    let of_model = || {
        let policies = held_back.policies.iter();
        policies.filter_map(|policy| Some((policy.compared.as_ref()?.cost_ratio, &policy.gaps)))
    };
    let same = of_model().find(|(ratio, _)| *ratio == cost_ratio);
    let (_, gaps) = same.or_else(|| of_model().next())?;
    Some(cost_ratio * gaps.interruption_h + gaps.overlap_h)
}

fn some_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap_scores::GapScores;
    use crate::wait_model::{ComparedCost, HeldBackPolicy};

    fn policy(gaps_h: &[f64], cost_ratio: Option<f64>) -> HeldBackPolicy {
        HeldBackPolicy {
            gaps: GapScores::of("policy", gaps_h),
            compared: cost_ratio.map(|cost_ratio| ComparedCost {
                cost_ratio,
                cost_h: 0.0,
                base: "reactive".to_owned(),
                base_cost_h: 0.0,
                beats_base: false,
            }),
        }
    }

    #[test]
    fn cost_uses_the_policy_for_the_ratio_or_the_only_one() {
        let mut scores = HeldBackScores {
            quantiles: Vec::new(),
            policies: vec![
                policy(&[9.0], None),
                policy(&[1.0, -2.0], Some(1.0)),
                policy(&[0.5, -3.0], Some(3.0)),
            ],
        };
        assert_eq!(cost_h(&scores, 1.0), Some(1.5));
        assert_eq!(cost_h(&scores, 3.0), Some(0.75 + 1.5));
        scores.policies.pop();
        assert_eq!(cost_h(&scores, 3.0), Some(1.5 + 1.0));
        scores.policies.pop();
        assert_eq!(cost_h(&scores, 1.0), None);
        assert_eq!((some_mean(&[]), some_mean(&[1.0, 2.0])), (None, Some(1.5)));
    }
}
