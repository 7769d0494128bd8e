//! Validates all submission policies on the same windows.

use std::sync::Arc;

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::block_draws::BlockDraws;
use super::gap_scores::{PolicyScores, policy_scores};
use super::learned_policies::{LearnedScores, check_models, learned_scores};
use super::real_waits::{RealWaitPlan, RealWaitScores, real_waits};
use super::reward_log::reward_log;
use super::window_outcome::{WindowOutcome, WindowSimulation};
use crate::forecast::WaitForecast;
use crate::replay::{DatedNodes, SlurmReplay, SlurmWorld, longest_limit_s, number_users};
use crate::submission::{
    AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LearnedPolicy, LimitPlan,
    Reactive, SubmissionPolicy,
};
use crate::trace::{JobTrace, month_of};
use crate::wait_model::WaitModel;
use crate::window::{WindowOpener, WindowPlan};

/// Length of a bootstrap block of consecutive windows, in hours.
const BLOCK_H: i64 = 120;

/// Maximum number of jobs for the wait forecasts of jobs with any limit.
const MAX_JOBS_OF_ANY_LIMIT: usize = 500;

/// Settings of a validation.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationSettings {
    /// The windows.
    pub windows: WindowPlan,
    /// Draws of run times per forecast.
    pub draws: usize,
    /// Seed of the draws of run times and of window blocks.
    pub seed: u64,
}

/// The simulated windows. Times are epoch seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationWindows {
    /// Number of windows.
    pub count: usize,
    /// Number of windows that are not scored because a chained job never starts.
    pub never_started: usize,
    /// Begin of the first window, epoch seconds.
    pub first_s: i64,
    /// Begin of the last window, epoch seconds.
    pub last_s: i64,
    /// Hours between two windows.
    pub interval_h: i64,
    /// True if each window begins with an empty cluster.
    pub cold_start: bool,
}

/// Forecasts of the waits of a selection of jobs in the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealWaits {
    /// Nodes of the jobs.
    pub nodes: u32,
    /// Time limit of the jobs, in hours; `None` for any.
    pub limit_h: Option<f64>,
    /// Scores of all jobs first, then by month.
    pub scores: Vec<RealWaitScores>,
}

/// Results of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationSummary {
    /// Number of nodes of the cluster, by date.
    pub nodes: Vec<DatedNodes>,
    /// Maximum number of running jobs per user.
    pub max_jobs_per_user: Option<u32>,
    /// Nodes per chained job.
    pub job_nodes: u32,
    /// Time limit of a chained job, in hours.
    pub job_limit_h: f64,
    /// Run time of the predecessor, in hours.
    pub job_length_h: f64,
    /// The windows.
    pub windows: ValidationWindows,
    /// Scores of the policies: the reactive one first, the best in hindsight last.
    pub policies: Vec<PolicyScores>,
    /// Costs of learned policies and of their bases; empty without `--model`.
    pub learned: Vec<LearnedScores>,
    /// Forecasts of waits that jobs of the trace had, with as many nodes.
    pub real_waits: Vec<RealWaits>,
}

/// Simulates the windows for all policies and `models`. Returns the summary, and the reward.log
/// file of each policy by name. Calls `progress` with the number of windows, and then with `None`
/// after each window.
///
/// # Errors
/// Fails if no window fits, or if the chained jobs do not fit into the cluster. Also fails if a
/// model is not for them.
pub fn validate_policies(
    trace: &JobTrace,
    replay: &SlurmReplay,
    settings: &ValidationSettings,
    models: &[Arc<WaitModel>],
    progress: impl Fn(Option<usize>) + Sync,
) -> Result<(ValidationSummary, Vec<(String, String)>)> {
    let world = SlurmWorld::new(trace, replay)?;
    let plan = &settings.windows;
    let begins_s = plan.begins(trace, &world)?;

    let forecast = WaitForecast {
        settings: world.settings.clone(),
        draws: settings.draws,
        seed: settings.seed,
    };
    check_models(models, plan, begins_s[0], &trace.zone)?;
    let policies = policies(&plan.cost_ratios, models);
    let simulation = WindowSimulation {
        world: &world,
        plan,
        forecast: &forecast,
        policies: &policies,
        zone: &trace.zone,
        models: models.len(),
    };
    let takes_snapshots = models
        .iter()
        .any(|model| model.description().takes_snapshots);
    let outcomes = outcomes(&simulation, &begins_s, takes_snapshots, progress);

    let names: Vec<String> = policies.iter().map(|policy| policy.name()).collect();
    let mut logs = Vec::with_capacity(names.len());
    for (number, name) in names.iter().enumerate() {
        logs.push((name.clone(), reward_log(&outcomes, number, &trace.zone)));
    }
    let started: Vec<WindowOutcome> = outcomes.into_iter().flatten().collect();
    ensure!(
        !started.is_empty(),
        "there is no window in which both chained jobs start"
    );
    let scores = scores(trace, &names, &started, settings);
    let summary = ValidationSummary {
        nodes: world.nodes.clone(),
        max_jobs_per_user: world.settings.max_jobs_per_user,
        job_nodes: plan.nodes,
        job_limit_h: plan.limit_s as f64 / 3600.0,
        job_length_h: plan.length_s as f64 / 3600.0,
        windows: validated_windows(plan, &begins_s, started.len()),
        learned: learned_scores(&learned_policies(models), &scores),
        policies: scores,
        real_waits: score_real_waits(trace, &world, settings, begins_s[0], &forecast),
    };
    Ok((summary, logs))
}

/// Summarises the windows that begin at `begins_s`. In `started` of them both chained jobs start.
fn validated_windows(plan: &WindowPlan, begins_s: &[i64], started: usize) -> ValidationWindows {
    ValidationWindows {
        count: begins_s.len(),
        never_started: begins_s.len() - started,
        first_s: begins_s[0],
        last_s: begins_s[begins_s.len() - 1],
        interval_h: plan.interval_h,
        cold_start: plan.cold_start,
    }
}

/// Simulates the windows in parallel. An outcome is `None` if a chained job never starts.
fn outcomes(
    simulation: &WindowSimulation<'_>,
    begins_s: &[i64],
    takes_snapshots: bool,
    progress: impl Fn(Option<usize>) + Sync,
) -> Vec<Option<WindowOutcome>> {
    // Windows are opened in order of time by one simulation, and then simulated in parallel.
    let mut opener = WindowOpener::new(simulation.world, simulation.plan, takes_snapshots);
    let mut windows = Vec::with_capacity(begins_s.len());
    for begin_s in begins_s {
        windows.push(opener.open(*begin_s));
    }
    let ended = opener.ended();
    progress(Some(windows.len()));
    let outcome = |window| {
        let outcome = simulation.simulate(window, ended);
        progress(None);
        outcome
    };
    windows.into_par_iter().map(outcome).collect()
}

/// Creates the policies, the reactive one first.
fn policies(cost_ratios: &[f64], models: &[Arc<WaitModel>]) -> Vec<Box<dyn SubmissionPolicy>> {
    let mut policies: Vec<Box<dyn SubmissionPolicy>> = vec![
        Box::new(Reactive),
        Box::new(AverageAtStart),
        Box::new(AverageNow),
        Box::new(LimitPlan),
    ];
    for (number, cost_ratio) in cost_ratios.iter().copied().enumerate() {
        policies.push(Box::new(HistoryQuantile { cost_ratio, number }));
    }
    for cost_ratio in cost_ratios.iter().copied() {
        policies.push(Box::new(ForecastQuantile { cost_ratio }));
    }
    for policy in learned_policies(models) {
        policies.push(Box::new(policy));
    }
    policies
}

fn learned_policies(models: &[Arc<WaitModel>]) -> Vec<LearnedPolicy> {
    let mut learned = Vec::new();
    for (number, model) in models.iter().enumerate() {
        learned.extend(LearnedPolicy::from_model(model, number));
    }
    learned
}

fn scores(
    trace: &JobTrace,
    names: &[String],
    outcomes: &[WindowOutcome],
    settings: &ValidationSettings,
) -> Vec<PolicyScores> {
    let mut months = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        months.push(month_of(trace.zone.wall_s(outcome.begin_s)));
    }
    let block = (BLOCK_H / settings.windows.interval_h).max(1) as usize;
    let draws = BlockDraws::new(outcomes.len(), block, settings.seed);
    policy_scores(names, outcomes, &months, &draws)
}

/// Forecasts the waits of jobs with as many nodes as the chained ones: first with the same limit,
/// then with any.
fn score_real_waits(
    trace: &JobTrace,
    world: &SlurmWorld,
    settings: &ValidationSettings,
    from_s: i64,
    forecast: &WaitForecast,
) -> Vec<RealWaits> {
    let plan = &settings.windows;
    let (users, _) = number_users(&trace.jobs);
    let longest_s = longest_limit_s(&trace.jobs);
    let mut all = Vec::with_capacity(2);
    for (limit_s, max_scored_jobs) in [
        (Some(plan.limit_s), usize::MAX),
        (None, MAX_JOBS_OF_ANY_LIMIT),
    ] {
        let wanted = RealWaitPlan {
            from_s,
            until_s: plan.until_s.unwrap_or(i64::MAX),
            nodes: plan.nodes,
            limit_s,
            max_scored_jobs,
            history_runs: plan.history_runs,
        };
        let nodes_at = |moment_s| nodes_at(&world.nodes, moment_s);
        let scores = real_waits(trace, &users, longest_s, &wanted, forecast, nodes_at);
        all.push(RealWaits {
            nodes: plan.nodes,
            limit_h: limit_s.map(|limit_s| limit_s as f64 / 3600.0),
            scores,
        });
    }
    all
}

/// Returns the number of nodes at a time. Before the first step, that step's number applies.
fn nodes_at(steps: &[DatedNodes], moment_s: i64) -> u32 {
    let step = steps.iter().rev().find(|step| step.from_s <= moment_s);
    step.or(steps.first()).map_or(0, |step| step.nodes)
}
