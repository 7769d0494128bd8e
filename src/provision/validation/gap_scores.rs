//! Scores of submission policies on the validation windows: overall, by load and by month.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::block_draws::{BlockDraws, DrawnInterval};
use super::window_outcome::WindowOutcome;
use crate::gap_scores::GapScores;
use crate::window::SuccessorStart;

/// Upper bounds of the load classes: the interruption of the reactive policy in a window, in hours.
const LOADS_H: [(&str, f64); 3] = [("light", 2.0), ("medium", 12.0), ("heavy", f64::INFINITY)];

/// Scores of a policy on all windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyScores {
    /// Name of the policy.
    pub policy: String,
    /// Scores on all windows.
    pub all: GapScores,
    /// Decrease of the mean absolute gap compared with the reactive policy, in hours; `None` if
    /// there are too few windows.
    pub gap_saved_h: Option<DrawnInterval>,
    /// Relative decrease of the interruption compared with the reactive policy; `None` if there are
    /// too few windows.
    pub interruption_saved: Option<DrawnInterval>,
    /// Scores by load of the window, as the reactive policy meets it: an interruption of up to 2
    /// hours, up to 12, more.
    pub loads: Vec<GapScores>,
    /// Scores by the month in which a window begins, in local time.
    pub months: Vec<GapScores>,
}

/// Scores each of `policies`, which must begin with the reactive one. The last two scores are the
/// best in hindsight, among the probes and among all decision times. `months` holds the month of
/// each window.
pub(super) fn policy_scores(
    policies: &[String],
    outcomes: &[WindowOutcome],
    months: &[String],
    draws: &BlockDraws,
) -> Vec<PolicyScores> {
    let reactive_h = gaps_h(outcomes, |outcome| &outcome.policies[0]);
    // The load of a window is the interruption that the reactive policy has in it.
    let mut loads = Vec::with_capacity(outcomes.len());
    for gap_h in &reactive_h {
        let load = LOADS_H.iter().position(|(_, most_h)| gap_h <= most_h);
        loads.push(load.unwrap_or(LOADS_H.len() - 1));
    }
    let score = |policy: &str, gaps_h: &[f64]| PolicyScores {
        policy: policy.to_owned(),
        all: GapScores::of("all", gaps_h),
        gap_saved_h: draws.gap_saved_h(&reactive_h, gaps_h),
        interruption_saved: draws.interruption_saved(&reactive_h, gaps_h),
        loads: load_scores(gaps_h, &loads),
        months: month_scores(gaps_h, months),
    };

    let mut scores = Vec::with_capacity(policies.len() + 2);
    for (number, policy) in policies.iter().enumerate() {
        let gaps_h = gaps_h(outcomes, |outcome| &outcome.policies[number]);
        scores.push(score(policy, &gaps_h));
    }
    let best_probes_h = gaps_h(outcomes, |outcome| &outcome.best_probe);
    scores.push(score("best probe", &best_probes_h));
    let best_moments_h = gaps_h(outcomes, |outcome| &outcome.best_moment);
    scores.push(score("best moment", &best_moments_h));
    scores
}

fn gaps_h<'a>(
    outcomes: &'a [WindowOutcome],
    of: impl Fn(&'a WindowOutcome) -> &'a SuccessorStart,
) -> Vec<f64> {
    let mut gaps_h = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        gaps_h.push(of(outcome).gap_s as f64 / 3600.0);
    }
    gaps_h
}

fn load_scores(gaps_h: &[f64], loads: &[usize]) -> Vec<GapScores> {
    let mut scores = Vec::with_capacity(LOADS_H.len());
    for (number, (name, _)) in LOADS_H.iter().enumerate() {
        let here = gaps_h
            .iter()
            .zip(loads)
            .filter(|(_, load)| **load == number);
        let here: Vec<f64> = here.map(|(gap_h, _)| *gap_h).collect();
        scores.push(GapScores::of(name, &here));
    }
    scores
}

fn month_scores(gaps_h: &[f64], months: &[String]) -> Vec<GapScores> {
    let mut by_month: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (gap_h, month) in gaps_h.iter().zip(months) {
        by_month.entry(month).or_default().push(*gap_h);
    }
    let scores = by_month
        .iter()
        .map(|(month, gaps_h)| GapScores::of(month, gaps_h));
    scores.collect()
}
