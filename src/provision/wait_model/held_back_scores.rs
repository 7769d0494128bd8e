//! Evaluation of a model on the held-back windows, next to the policies it is compared with.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::episodes::{Episode, EpisodeSplit};
use super::learned_model::ModelAnswer;
use super::submission_replay::{best_gaps_h, needed_wait_s, replayed_gaps_h};
use crate::gap_scores::GapScores;
use crate::samples::WaitSamples;
use poolcast_base::parallel::map_numbers;
use poolcast_base::stats::{cost_quantile, gap_cost_h, interpolated_quantile, mean, pinball_loss};

/// Accuracy of one predicted quantile of the wait over all rows, in hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileScore {
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
    /// The optimal quantile for this cost ratio.
    pub quantile: f64,
    /// Mean pinball loss, hours.
    pub pinball_h: f64,
    /// Mean pinball loss of a constant prediction, hours: this quantile of the learned waits.
    pub constant_pinball_h: f64,
    /// Mean absolute error, hours.
    pub error_h: f64,
    /// Share of waits that did not exceed the prediction.
    pub coverage: f64,
}

/// Gaps and cost of one submission policy on the held-back windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldBackPolicy {
    /// Mean gaps, under the name of the policy.
    #[serde(flatten)]
    pub gaps: GapScores,
    /// Comparison of the model's cost with a base policy; `None` for a policy that is not compared.
    pub compared: Option<ComparedCost>,
}

/// Mean cost of a policy and of its base policy, in hours of overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedCost {
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
    /// Mean cost of a window, in hours of overlap.
    pub cost_h: f64,
    /// Name of the base policy; `reactive` if there is no other.
    pub base: String,
    /// Mean cost of a window under the base policy, in hours of overlap.
    pub base_cost_h: f64,
    /// True if the policy costs less than its base.
    pub beats_base: bool,
}

/// All scores of a model on the held-back windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldBackScores {
    /// Score of each quantile; empty for a model that does not predict waits.
    pub quantiles: Vec<QuantileScore>,
    /// Policies in this order: reactive, base (if any), the model for each cost ratio, best in
    /// hindsight.
    pub policies: Vec<HeldBackPolicy>,
}

/// A model to evaluate: its name, its cost ratios, and its answer to a row.
pub(super) struct JudgedModel<'a> {
    pub(super) name: &'a str,
    pub(super) cost_ratios: &'a [f64],
    pub(super) answer: &'a (dyn Fn(usize) -> Result<ModelAnswer> + Sync),
}

/// Gaps of a policy, by window.
struct PolicyGaps {
    name: String,
    cost_ratio: f64,
    gaps_h: Vec<f64>,
}

/// Answers of a model to consecutive rows. The answer to `row` is `answers[row - begin]`.
struct RowAnswers {
    begin: usize,
    answers: Vec<ModelAnswer>,
}

impl RowAnswers {
    /// Queries the model for all rows of `episodes`, which must be consecutive.
    fn new(model: &JudgedModel<'_>, episodes: &[Episode]) -> Result<RowAnswers> {
        let begin = episodes.iter().map(|episode| episode.rows.start).min();
        let end = episodes.iter().map(|episode| episode.rows.end).max();
        let rows = begin.unwrap_or(0)..end.unwrap_or(0);
        let answers = map_numbers(rows.len(), |place| (model.answer)(rows.start + place));
        Ok(RowAnswers {
            begin: rows.start,
            answers: answers.into_iter().collect::<Result<_>>()?,
        })
    }

    /// Replays the model's policies, one per cost ratio, and returns their gaps.
    fn policy_gaps(
        &self,
        samples: &WaitSamples,
        episodes: &[Episode],
        model: &JudgedModel<'_>,
    ) -> Vec<PolicyGaps> {
        let mut gaps = Vec::with_capacity(model.cost_ratios.len());
        for (number, &cost_ratio) in model.cost_ratios.iter().enumerate() {
            let submits = |row: usize| self.submits(samples, row, number);
            gaps.push(PolicyGaps {
                name: format!("{}-{cost_ratio}", model.name),
                cost_ratio,
                gaps_h: replayed_gaps_h(samples, episodes, submits),
            });
        }
        gaps
    }

    /// Returns true if the model submits in `row` under its cost ratio number `number`.
    fn submits(&self, samples: &WaitSamples, row: usize, number: usize) -> bool {
        match &self.answers[row - self.begin] {
            ModelAnswer::Decision { submit } => *submit,
            ModelAnswer::Waits { waits_s } => waits_s[number] >= needed_wait_s(samples, row) as f64,
        }
    }

    /// Returns the predicted wait number `number` in `row`, in hours. `None` if the model does not
    /// predict waits.
    fn wait_h(&self, row: usize, number: usize) -> Option<f64> {
        match &self.answers[row - self.begin] {
            ModelAnswer::Decision { .. } => None,
            ModelAnswer::Waits { waits_s } => Some(waits_s[number] / 3600.0),
        }
    }
}

/// Evaluates `model` on the held-back windows, and `base` if there is one.
///
/// # Errors
/// Fails if a model does.
pub(super) fn held_back_scores(
    samples: &WaitSamples,
    split: &EpisodeSplit,
    model: &JudgedModel<'_>,
    base: Option<&JudgedModel<'_>>,
) -> Result<HeldBackScores> {
    let episodes = &split.held_back[..];
    let reactive_h = replayed_gaps_h(samples, episodes, |_| false);
    let mut policies = vec![uncompared("reactive", &reactive_h)];

    let reactive = PolicyGaps {
        name: "reactive".to_owned(),
        cost_ratio: 1.0,
        gaps_h: reactive_h,
    };
    let mut bases = Vec::new();
    if let Some(base) = base {
        bases = RowAnswers::new(base, episodes)?.policy_gaps(samples, episodes, base);
        policies.extend(
            bases
                .iter()
                .map(|base| uncompared(&base.name, &base.gaps_h)),
        );
    }
    let answers = RowAnswers::new(model, episodes)?;
    for policy in answers.policy_gaps(samples, episodes, model) {
        // Compare with the base policy of the same cost ratio, or else with the only one.
        let same_ratio = bases
            .iter()
            .find(|base| base.cost_ratio == policy.cost_ratio);
        let base = same_ratio.or(bases.first()).unwrap_or(&reactive);
        policies.push(compared(&policy, base));
    }
    policies.push(uncompared("best moment", &best_gaps_h(samples, episodes)));
    Ok(HeldBackScores {
        quantiles: quantile_scores(samples, split, model, &answers),
        policies,
    })
}

/// Scores a policy without a comparison.
fn uncompared(name: &str, gaps_h: &[f64]) -> HeldBackPolicy {
    HeldBackPolicy {
        gaps: GapScores::of(name, gaps_h),
        compared: None,
    }
}

/// Scores a policy and compares its cost with its base policy, at the policy's cost ratio.
fn compared(policy: &PolicyGaps, base: &PolicyGaps) -> HeldBackPolicy {
    let cost_ratio = policy.cost_ratio;
    let [cost_h, base_cost_h] = [policy, base].map(|policy| {
        let costs_h = policy
            .gaps_h
            .iter()
            .map(|gap_h| gap_cost_h(cost_ratio, *gap_h));
        mean(&costs_h.collect::<Vec<f64>>())
    });
    HeldBackPolicy {
        gaps: GapScores::of(&policy.name, &policy.gaps_h),
        compared: Some(ComparedCost {
            cost_ratio,
            cost_h,
            base: base.name.clone(),
            base_cost_h,
            beats_base: cost_h < base_cost_h,
        }),
    }
}

/// Scores the predicted waits. Returns nothing for a model that does not predict waits.
fn quantile_scores(
    samples: &WaitSamples,
    split: &EpisodeSplit,
    model: &JudgedModel<'_>,
    answers: &RowAnswers,
) -> Vec<QuantileScore> {
    let wait_h = |row: usize| samples.wait_s[row] as f64 / 3600.0;
    let mut learned_h: Vec<f64> = split.learned_rows().into_iter().map(wait_h).collect();
    learned_h.sort_by(f64::total_cmp);

    let mut scores = Vec::new();
    for (number, &cost_ratio) in model.cost_ratios.iter().enumerate() {
        let target_quantile = cost_quantile(cost_ratio);
        // Baseline: the same quantile of the learned waits, for every row.
        let constant_h = interpolated_quantile(&learned_h, target_quantile);
        let mut losses_h = Vec::new();
        let mut constant_losses_h = Vec::new();
        let mut errors_h = Vec::new();
        let mut covered = 0.0;
        for row in split.held_back_rows() {
            let Some(predicted_h) = answers.wait_h(row, number) else {
                return Vec::new();
            };
            let excess_h = wait_h(row) - predicted_h;
            losses_h.push(pinball_loss(target_quantile, excess_h));
            constant_losses_h.push(pinball_loss(target_quantile, wait_h(row) - constant_h));
            errors_h.push(excess_h.abs());
            covered += if excess_h <= 0.0 { 1.0 } else { 0.0 };
        }
        scores.push(QuantileScore {
            cost_ratio,
            quantile: target_quantile,
            pinball_h: mean(&losses_h),
            constant_pinball_h: mean(&constant_losses_h),
            error_h: mean(&errors_h),
            coverage: covered / errors_h.len().max(1) as f64,
        });
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_model::sample_checks::queue_samples;

    #[test]
    fn perfect_models_beat_their_base_and_useless_ones_do_not() {
        let samples = queue_samples(60, 1);
        let split = EpisodeSplit::new(&samples).expect("a split");
        let knows = |row: usize| {
            Ok(ModelAnswer::Waits {
                waits_s: vec![samples.wait_s[row] as f64],
            })
        };
        let never = |_: usize| Ok(ModelAnswer::Decision { submit: false });
        let [knows, never]: [JudgedModel<'_>; 2] = [
            JudgedModel {
                name: "knows",
                cost_ratios: &[1.0],
                answer: &knows,
            },
            JudgedModel {
                name: "never",
                cost_ratios: &[1.0],
                answer: &never,
            },
        ];

        let scores = held_back_scores(&samples, &split, &knows, None).expect("scores");
        let names: Vec<&str> = scores
            .policies
            .iter()
            .map(|p| p.gaps.name.as_str())
            .collect();
        assert_eq!(names, ["reactive", "knows-1", "best moment"]);
        let compared = scores.policies[1].compared.as_ref().expect("compared");
        assert!(compared.beats_base && compared.base == "reactive");
        assert_eq!(
            (scores.quantiles[0].pinball_h, scores.quantiles[0].coverage),
            (0.0, 1.0)
        );
        assert!(scores.quantiles[0].constant_pinball_h > 0.5);

        let scores = held_back_scores(&samples, &split, &never, Some(&knows)).expect("scores");
        let compared = scores.policies[2].compared.as_ref().expect("compared");
        assert_eq!(
            (compared.base.as_str(), compared.beats_base),
            ("knows-1", false)
        );
        assert_eq!(scores.policies[2].gaps.gap_h, scores.policies[0].gaps.gap_h);
        assert!(scores.quantiles.is_empty());
    }
}
