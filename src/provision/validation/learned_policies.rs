//! Learned models in a validation: checks that they know nothing of its windows, and compares each
//! with its base.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::gap_scores::PolicyScores;
use crate::submission::{LearnedPolicy, SubmissionPolicy as _, check_features, model_name};
use crate::trace::TraceZone;
use crate::wait_model::WaitModel;
use crate::window::WindowPlan;
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// Mean cost of a learned policy and of its base policy per window, in hours of overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedScores {
    /// Name of the policy.
    pub policy: String,
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
    /// Mean cost of a window under the policy, in hours of overlap.
    pub cost_h: f64,
    /// Name of the base policy: the policy of the base model if that is compared too, otherwise the
    /// reactive policy.
    pub base: String,
    /// Mean cost of a window under the base policy, in hours of overlap.
    pub base_cost_h: f64,
}

/// Rejects models that are not for the chained jobs of `plan`, or that know data of its windows.
/// The first window begins at `first_s`, and the data of a model must end one window length
/// earlier.
///
/// # Errors
/// Fails for such a model, and if two models have the same name.
pub(super) fn check_models(
    models: &[Arc<WaitModel>],
    plan: &WindowPlan,
    first_s: i64,
    zone: &TraceZone,
) -> Result<()> {
    let mut names = BTreeSet::new();
    for model in models {
        let name = model_name(model);
        let description = model.description();
        let (nodes, limit_min) = (description.job_nodes, description.limit_s / 60);
        ensure!(
            (nodes, description.limit_s) == (plan.nodes, plan.limit_s),
            hinted(
                format!(
                    "the model {name} is for jobs with {} and a limit of {limit_min} minutes",
                    counted(nodes as usize, "node")
                ),
                format!(
                    "give `--job-nodes {nodes} --job-limit {limit_min}`, or train another model"
                )
            )
        );
        check_features(model)?;
        let earliest_s = description.learned_until_s.saturating_add(plan.workload_s);
        ensure!(
            first_s >= earliest_s,
            hinted(
                format!(
                    "the model {name} learned from outcomes later than one window before the first window"
                ),
                format!(
                    "give `--start-time {}` or later, or train on earlier samples",
                    zone.wall_minute(earliest_s + 59)
                )
            )
        );
        ensure!(
            names.insert(name.clone()),
            hinted(
                format!("two models are called {name}"),
                "compare them in separate validations"
            )
        );
    }
    Ok(())
}

/// Returns the costs of each of `learned` and of its base, computed from `scores`.
pub(super) fn learned_scores(
    learned: &[LearnedPolicy],
    scores: &[PolicyScores],
) -> Vec<LearnedScores> {
    let cost_h = |policy: &str, cost_ratio: f64| {
        let found = scores.iter().find(|scores| scores.policy == policy)?;
        Some(cost_ratio * found.all.interruption_h + found.all.overlap_h)
    };
    let mut all = Vec::with_capacity(learned.len());
    for policy in learned {
        let (name, cost_ratio) = (policy.name(), policy.cost_ratio());
        let base = find_base_policy(policy, learned).unwrap_or_else(|| scores[0].policy.clone());
        all.push(LearnedScores {
            cost_h: cost_h(&name, cost_ratio).unwrap_or(0.0),
            base_cost_h: cost_h(&base, cost_ratio).unwrap_or(0.0),
            policy: name,
            cost_ratio,
            base,
        });
    }
    all
}

/// Returns the name of the policy of the base model of `policy`, if it is among `learned`. Of
/// several, the one with the nearest cost ratio counts.
fn find_base_policy(policy: &LearnedPolicy, learned: &[LearnedPolicy]) -> Option<String> {
    let kind = policy.model.description().base?;
    let is_base = |other: &&LearnedPolicy| {
        let description = other.model.description();
        description.kind == kind && description.base.is_none()
    };
    let apart = |other: &LearnedPolicy| (other.cost_ratio() - policy.cost_ratio()).abs();
    let bases = learned.iter().filter(is_base);
    let nearest = bases.min_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    Some(nearest.name())
}
