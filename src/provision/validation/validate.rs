//! All policies on the same windows.

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::block_draws::BlockDraws;
use super::gap_scores::{PolicyScores, policy_scores};
use super::real_waits::{RealWaitPlan, RealWaitScores, real_waits};
use super::reward_log::reward_log;
use super::window::{WindowOutcome, WindowPlan, open_windows, simulate_window};
use crate::error::hinted;
use crate::provision::forecast::WaitForecast;
use crate::provision::replay::{
    DatedNodes, SlurmReplay, SlurmWorld, longest_limit_s, number_users,
};
use crate::provision::submission::{
    AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan, Reactive,
    SubmissionPolicy,
};
use crate::provision::trace::{JobTrace, month_of};

/// Windows of so many hours are drawn together.
const BLOCK_H: i64 = 120;

/// Where no start is given, windows begin so long after the simulation, or half way to the last one.
const LEAD_S: i64 = 30 * 86_400;

/// Of jobs with any limit, the waits of at most so many are forecast.
const MOST_OF_ANY_LIMIT: usize = 500;

/// How policies are validated. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationSettings {
    /// Where the first window begins; `None`: some time into the trace.
    pub from_s: Option<i64>,
    /// Before when windows begin; `None`: as long as they fit into the trace.
    pub until_s: Option<i64>,
    /// Hours of the wall clock from one window to the next.
    pub interval_h: i64,
    /// What windows are like.
    pub windows: WindowPlan,
    /// How many times run times are drawn for a forecast.
    pub draws: usize,
    /// What they, and blocks of windows, are drawn from.
    pub seed: u64,
}

/// Which windows were simulated. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationWindows {
    /// How many.
    pub count: usize,
    /// Those of them that count for nothing, as a chained job never starts.
    pub never_started: usize,
    /// Where the first begins.
    pub first_s: i64,
    /// Where the last begins.
    pub last_s: i64,
    /// Hours from one to the next.
    pub interval_h: i64,
}

/// Forecasts of the waits of some jobs of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealWaits {
    /// How many nodes they have.
    pub nodes: u32,
    /// Their limit, hours; `None` for any.
    pub limit_h: Option<f64>,
    /// Of all first, then by month.
    pub scores: Vec<RealWaitScores>,
}

/// What came of all policies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationSummary {
    /// How many nodes there are, from when on.
    pub nodes: Vec<DatedNodes>,
    /// How many jobs of one user may run at once.
    pub max_jobs_per_user: Option<u32>,
    /// How many nodes each chained job has.
    pub job_nodes: u32,
    /// Its limit, hours.
    pub job_limit_h: f64,
    /// How long the predecessor runs, hours.
    pub job_length_h: f64,
    /// The windows.
    pub windows: ValidationWindows,
    /// The policies, the reactive one first, and last the best in hindsight.
    pub policies: Vec<PolicyScores>,
    /// Forecasts of real waits.
    pub real_waits: Vec<RealWaits>,
}

/// Simulates the windows. `progress` is called with the number of all, and once for each. Returns
/// the summary, and the file reward.log of each policy by name.
///
/// # Errors
/// Fails where no window fits, or the chained jobs do not fit into the cluster.
pub fn validate_policies(
    trace: &JobTrace,
    replay: &SlurmReplay,
    settings: &ValidationSettings,
    progress: impl Fn(Option<usize>) + Sync,
) -> Result<(ValidationSummary, Vec<(String, String)>)> {
    let world = SlurmWorld::new(trace, replay)?;
    let plan = &settings.windows;
    check_size(plan.nodes, &world)?;
    let begins_s = window_begins(trace, &world, settings)?;

    let forecast = WaitForecast {
        settings: world.settings.clone(),
        draws: settings.draws,
        seed: settings.seed,
    };
    let policies = policies(&plan.cost_ratios);
    let simulated = SimulatedWindows {
        world: &world,
        plan,
        forecast: &forecast,
        policies: &policies,
    };
    let outcomes = simulated.outcomes(&begins_s, progress);

    let names: Vec<String> = policies.iter().map(|policy| policy.name()).collect();
    let mut logs = Vec::with_capacity(names.len());
    for (number, name) in names.iter().enumerate() {
        logs.push((name.clone(), reward_log(&outcomes, number, &trace.zone)));
    }
    let count = outcomes.len();
    let started: Vec<WindowOutcome> = outcomes.into_iter().flatten().collect();
    ensure!(!started.is_empty(), "in no window both chained jobs start");
    let summary = ValidationSummary {
        nodes: world.nodes.clone(),
        max_jobs_per_user: world.settings.max_jobs_per_user,
        job_nodes: plan.nodes,
        job_limit_h: plan.limit_s as f64 / 3600.0,
        job_length_h: plan.length_s as f64 / 3600.0,
        windows: ValidationWindows {
            count,
            never_started: count - started.len(),
            first_s: begins_s[0],
            last_s: begins_s[count - 1],
            interval_h: settings.interval_h,
        },
        policies: scores(trace, &names, &started, settings),
        real_waits: all_real_waits(trace, &world, settings, begins_s[0], &forecast),
    };
    Ok((summary, logs))
}

fn check_size(nodes: u32, world: &SlurmWorld) -> Result<()> {
    let most_nodes = world.settings.most_nodes();
    ensure!(
        nodes <= most_nodes,
        hinted(
            format!(
                "the chained jobs need {nodes} nodes, and the cluster never has more than {most_nodes}"
            ),
            "give fewer with `--job-nodes`"
        )
    );
    Ok(())
}

/// What all windows are simulated with.
struct SimulatedWindows<'a> {
    world: &'a SlurmWorld,
    plan: &'a WindowPlan,
    forecast: &'a WaitForecast,
    policies: &'a [Box<dyn SubmissionPolicy>],
}

impl SimulatedWindows<'_> {
    /// What came of each window, in parallel; `None` where a chained job never starts.
    fn outcomes(
        &self,
        begins_s: &[i64],
        progress: impl Fn(Option<usize>) + Sync,
    ) -> Vec<Option<WindowOutcome>> {
        let (windows, ended) = open_windows(self.world, self.plan, begins_s);
        progress(Some(windows.len()));
        let outcome = |window| {
            let (plan, forecast) = (self.plan, self.forecast);
            let outcome =
                simulate_window(window, self.world, &ended, plan, forecast, self.policies);
            progress(None);
            outcome
        };
        windows.into_par_iter().map(outcome).collect()
    }
}

/// The policies, the reactive one first.
fn policies(cost_ratios: &[f64]) -> Vec<Box<dyn SubmissionPolicy>> {
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
    policies
}

/// Where windows begin: as long as jobs are submitted throughout each.
fn window_begins(
    trace: &JobTrace,
    world: &SlurmWorld,
    settings: &ValidationSettings,
) -> Result<Vec<i64>> {
    let begin_s = world.settings.begin;
    let last_submit_s = trace.jobs.last().map_or(0, |job| job.submit_s);
    let last_s = last_submit_s - settings.windows.workload_s;
    let lead_s = LEAD_S.min((last_s - begin_s) / 2);
    let from_s = settings.from_s.unwrap_or(begin_s + lead_s.max(0));
    ensure!(
        from_s >= begin_s,
        hinted(
            "the first window begins before the trace shows what runs",
            "give a later `--start-time`"
        )
    );

    let until_s = settings.until_s.unwrap_or(i64::MAX);
    let from_wall_s = trace.zone.wall_s(from_s);
    let mut begins_s = Vec::new();
    for number in 0.. {
        let wall_s = from_wall_s + number * settings.interval_h * 3600;
        let window_s = trace.zone.moment_of_wall_s(wall_s);
        if window_s > last_s || window_s >= until_s {
            break;
        }
        begins_s.push(window_s);
    }
    ensure!(
        !begins_s.is_empty(),
        hinted(
            format!(
                "no window of {} days fits between its beginning and the last submission",
                settings.windows.workload_s / 86_400
            ),
            "give an earlier `--start-time`, or a shorter `provision.workload_len`"
        )
    );
    Ok(begins_s)
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
    let block = (BLOCK_H / settings.interval_h).max(1) as usize;
    let draws = BlockDraws::new(outcomes.len(), block, settings.seed);
    policy_scores(names, outcomes, &months, &draws)
}

/// Waits of jobs with as many nodes as the chained ones: with their limit, and with any.
fn all_real_waits(
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
    for (limit_s, most_jobs) in [(Some(plan.limit_s), usize::MAX), (None, MOST_OF_ANY_LIMIT)] {
        let wanted = RealWaitPlan {
            from_s,
            until_s: settings.until_s.unwrap_or(i64::MAX),
            nodes: plan.nodes,
            limit_s,
            most_jobs,
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

/// How many nodes there are at a moment; before the first step as many as from it on.
fn nodes_at(steps: &[DatedNodes], moment_s: i64) -> u32 {
    let step = steps.iter().rev().find(|step| step.from_s <= moment_s);
    step.or(steps.first()).map_or(0, |step| step.nodes)
}
