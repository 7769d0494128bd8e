//! What a model comes to on the windows that were held back, beside what it is compared with.

use anyhow::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::episodes::{Episode, EpisodeSplit};
use super::learned_model::ModelAnswer;
use super::submission_replay::{best_gaps_h, gap_cost_h, reached_s, replayed_gaps_h};
use super::wait_losses::pinball;
use crate::gap_scores::GapScores;
use poolcast_base::stats::{cost_quantile, mean, quantile};
use crate::samples::WaitSamples;

/// How well a quantile of the wait is said, over all rows; hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileScore {
    /// What an hour of interruption costs in hours of overlap.
    pub cost_ratio: f64,
    /// The quantile that is best then.
    pub quantile: f64,
    /// The mean pinball loss.
    pub pinball_h: f64,
    /// That of one number for all rows: the quantile of the waits that were learned from.
    pub constant_pinball_h: f64,
    /// The mean absolute error.
    pub error_h: f64,
    /// The share of waits that did not exceed it.
    pub coverage: f64,
}

/// What a way to choose the moment came to, window by window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldBackPolicy {
    /// What the gaps came to; the name is the policy's.
    #[serde(flatten)]
    pub gaps: GapScores,
    /// What it is compared with; `None` for what is compared with nothing.
    pub compared: Option<ComparedCost>,
}

/// What a policy costs beside its base; hours of overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedCost {
    /// What an hour of interruption costs in hours of overlap.
    pub cost_ratio: f64,
    /// The mean cost of a window.
    pub cost_h: f64,
    /// The base.
    pub base: String,
    /// Its mean cost.
    pub base_cost_h: f64,
    /// Whether the policy costs less.
    pub beats_base: bool,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldBackScores {
    /// Of a model of the wait: each quantile. None of others.
    pub quantiles: Vec<QuantileScore>,
    /// The reactive policy first, the base if there is one, the model, and last the best in hindsight.
    pub policies: Vec<HeldBackPolicy>,
}

/// A model that is judged: its name, its cost ratios, and what it says.
pub(super) struct JudgedModel<'a> {
    pub(super) name: &'a str,
    pub(super) cost_ratios: &'a [f64],
    pub(super) answer: &'a (dyn Fn(usize) -> Result<ModelAnswer> + Sync),
}

/// The gaps of a policy, window by window.
struct PolicyGaps {
    name: String,
    cost_ratio: f64,
    gaps_h: Vec<f64>,
}

/// The answers of a model to some rows: `answers[row - begin]`.
struct RowAnswers {
    begin: usize,
    answers: Vec<ModelAnswer>,
}

impl RowAnswers {
    /// The answers to all rows of `episodes`, which are one after another.
    fn new(model: &JudgedModel<'_>, episodes: &[Episode]) -> Result<RowAnswers> {
        let begin = episodes.iter().map(|episode| episode.rows.start).min();
        let end = episodes.iter().map(|episode| episode.rows.end).max();
        let rows = begin.unwrap_or(0)..end.unwrap_or(0);
        let answers = rows.clone().into_par_iter().map(|row| (model.answer)(row));
        Ok(RowAnswers {
            begin: rows.start,
            answers: answers.collect::<Result<Vec<ModelAnswer>>>()?,
        })
    }

    /// The gaps of the policies of a model: one for each cost ratio.
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

    /// Whether the model submits in `row`, by its `number`-th cost ratio.
    fn submits(&self, samples: &WaitSamples, row: usize, number: usize) -> bool {
        match &self.answers[row - self.begin] {
            ModelAnswer::Decision { submit } => *submit,
            ModelAnswer::Waits { waits_s } => waits_s[number] >= reached_s(samples, row) as f64,
        }
    }

    /// Its `number`-th wait in `row`, hours.
    fn wait_h(&self, row: usize, number: usize) -> Option<f64> {
        match &self.answers[row - self.begin] {
            ModelAnswer::Decision { .. } => None,
            ModelAnswer::Waits { waits_s } => Some(waits_s[number] / 3600.0),
        }
    }
}

/// Judges `model` on the windows that were held back, beside `base` if it has one.
///
/// # Errors
/// Fails where a model does.
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

fn uncompared(name: &str, gaps_h: &[f64]) -> HeldBackPolicy {
    HeldBackPolicy {
        gaps: GapScores::of(name, gaps_h),
        compared: None,
    }
}

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

/// How well the waits are said; nothing of a model that says none.
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
        let quantile_asked = cost_quantile(cost_ratio);
        let constant_h = quantile(&learned_h, quantile_asked);
        let mut losses_h = Vec::new();
        let mut constant_losses_h = Vec::new();
        let mut errors_h = Vec::new();
        let mut covered = 0.0;
        for row in split.held_back_rows() {
            let Some(said_h) = answers.wait_h(row, number) else {
                return Vec::new();
            };
            let excess_h = wait_h(row) - said_h;
            losses_h.push(pinball(quantile_asked, excess_h));
            constant_losses_h.push(pinball(quantile_asked, wait_h(row) - constant_h));
            errors_h.push(excess_h.abs());
            covered += if excess_h <= 0.0 { 1.0 } else { 0.0 };
        }
        scores.push(QuantileScore {
            cost_ratio,
            quantile: quantile_asked,
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
    fn a_model_that_knows_is_better_than_its_base_and_one_that_does_not_is_named() {
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
