//! Compares forecasts with the real waits of jobs in the trace. The forecasts use the queue that
//! the trace shows at the submission. No successor is simulated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trace_sweep::TraceSweep;
use crate::forecast::{QueueTime, RunHistory, SeenWait, WaitForecast, WaitSpan};
use crate::submission::StartedWait;
use crate::trace::{JobTrace, TraceJob, month_of};
use poolcast_base::parallel::map_items;
use poolcast_base::stats::{interpolated_quantile, mean, pinball_loss};

/// Quantiles at which forecasts are scored.
const QUANTILES: [f64; 3] = [0.5, 0.75, 0.9];

/// Maximum forecast wait, in seconds. Longer waits are cut to this.
const MAX_WAIT_S: i64 = 30 * 86_400;

/// Tolerance of the coverage, in hours. The scheduler plans once a minute, so even on a free
/// cluster a job starts only at the next plan.
const MINUTE_H: f64 = 1.0 / 60.0;

/// Number of previous waits for a mean or a quantile.
const LAST_WAITS: usize = 100;

/// Selection of the jobs whose waits are forecast. Times are epoch seconds, durations seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RealWaitPlan {
    /// Earliest submission.
    pub from_s: i64,
    /// End of the submissions, exclusive.
    pub until_s: i64,
    /// Nodes of the jobs.
    pub nodes: u32,
    /// Time limit of the jobs; `None` for any.
    pub limit_s: Option<i64>,
    /// Maximum number of jobs, evenly spaced among all.
    pub max_scored_jobs: usize,
    /// Number of previous runs from which run times are drawn.
    pub history_runs: usize,
}

/// Accuracy of forecasts for a set of waits, in hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealWaitScores {
    /// Name of the set: a month, or `all`.
    pub name: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Mean wait, hours.
    pub wait_mean_h: f64,
    /// Median wait, hours.
    pub wait_p50_h: f64,
    /// The 90 % quantile of the waits, hours.
    pub wait_p90_h: f64,
    /// Scores of each forecast method.
    pub forecasts: Vec<ForecastScores>,
}

/// Accuracy of one forecast method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastScores {
    /// Name of the method.
    pub name: String,
    /// Mean absolute error of the forecast median, or of the only value, hours.
    pub error_h: f64,
    /// Mean error, hours: forecast minus real wait.
    pub bias_h: f64,
    /// Share of jobs with an absolute error of at most 10 minutes.
    pub within_10_min: f64,
    /// Scores of the quantiles; empty for a method without quantiles.
    pub quantiles: Vec<QuantileScores>,
}

/// Accuracy of one forecast quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileScores {
    /// The quantile.
    pub quantile: f64,
    /// Mean pinball loss, hours.
    pub pinball_h: f64,
    /// Share of waits that exceed the quantile by at most a minute, or not at all.
    pub coverage: f64,
}

/// Real wait of a job and its forecasts, in hours.
struct ForecastWait {
    month: String,
    wait_h: f64,
    limit_h: f64,
    last_h: f64,
    /// Forecasts for [`QUANTILES`].
    similar_h: [f64; QUANTILES.len()],
    forecast_h: [f64; QUANTILES.len()],
}

/// Forecasts the waits of the jobs in `trace` that `plan` selects. The first scores are for all
/// jobs, the others by month. `nodes_at` returns the number of nodes at a time. `users` holds the
/// user of each job.
pub(super) fn real_waits(
    trace: &JobTrace,
    users: &[u32],
    longest_s: i64,
    plan: &RealWaitPlan,
    forecast: &WaitForecast,
    nodes_at: impl Fn(i64) -> u32,
) -> Vec<RealWaitScores> {
    // The sweep only moves forward, so the queues are collected first. The forecasts run in
    // parallel.
    let mut sweep = TraceSweep::new(&trace.jobs, users, longest_s);
    let mut queues: Vec<(usize, QueueTime)> = Vec::new();
    for place in chosen_jobs(&trace.jobs, plan) {
        let nodes = nodes_at(trace.jobs[place].submit_s);
        queues.push((place, sweep.queue_before(place, nodes)));
    }
    let waits: Vec<ForecastWait> = map_items(&queues, |(place, queue)| {
        forecast_wait(trace, &sweep, *place, queue, plan, forecast, users)
    });

    let mut by_month: BTreeMap<&str, Vec<&ForecastWait>> = BTreeMap::new();
    for wait in &waits {
        by_month.entry(&wait.month).or_default().push(wait);
    }
    let all: Vec<&ForecastWait> = waits.iter().collect();
    let mut scores = vec![wait_scores("all", &all)];
    for (month, waits) in &by_month {
        scores.push(wait_scores(month, waits));
    }
    scores
}

/// Returns the indices of the jobs that started and match `plan`.
fn chosen_jobs(jobs: &[TraceJob], plan: &RealWaitPlan) -> Vec<usize> {
    let mut places = Vec::new();
    for (place, job) in jobs.iter().enumerate() {
        let is_in_period = (plan.from_s..plan.until_s).contains(&job.submit_s);
        let is_similar = job.nodes == plan.nodes
            && plan
                .limit_s
                .is_none_or(|limit_s| job.limit_s.get() == Some(limit_s));
        if is_in_period && is_similar && job.wait_s().is_some() {
            places.push(place);
        }
    }
    let every = places.len().div_ceil(plan.max_scored_jobs.max(1)).max(1);
    places.into_iter().step_by(every).collect()
}

/// Forecasts the wait of the job with index `place` by all methods.
fn forecast_wait(
    trace: &JobTrace,
    sweep: &TraceSweep<'_>,
    place: usize,
    queue: &QueueTime,
    plan: &RealWaitPlan,
    forecast: &WaitForecast,
    users: &[u32],
) -> ForecastWait {
    let job = &trace.jobs[place];
    let queried = SeenWait {
        since_s: queue.now_s,
        limit_s: sweep.limit_s(place),
        nodes: job.nodes,
        user: users[place],
    };
    let history = RunHistory::of(sweep.ended_runs(queue.now_s, plan.history_runs));
    let drawn_s = forecast.waits_s(queue, &history, &queried, WaitSpan::up_to(MAX_WAIT_S));
    let limit_s = forecast.wait_by_limits_s(queue, &queried, MAX_WAIT_S);

    // Simple methods for comparison: the mean of the last waits, and quantiles of similar jobs'
    // waits.
    let last = sweep.started(queue.now_s).take(LAST_WAITS);
    let last_h: Vec<f64> = last.filter_map(wait_h).collect();
    let like = sweep.started(queue.now_s).filter(|other| {
        let started = StartedWait {
            nodes: other.nodes,
            limit_s: other.limit_s.get().unwrap_or(queried.limit_s),
            wait_s: 0,
        };
        started.is_similar(queried.nodes, queried.limit_s)
    });
    let mut similar_h: Vec<f64> = like.take(LAST_WAITS).filter_map(wait_h).collect();
    similar_h.sort_by(f64::total_cmp);
    let drawn_h: Vec<f64> = drawn_s.iter().map(|wait_s| hours(*wait_s)).collect();
    ForecastWait {
        month: month_of(trace.zone.wall_s(queue.now_s)),
        wait_h: wait_h(job).unwrap_or(0.0),
        limit_h: hours(limit_s),
        last_h: mean(&last_h),
        similar_h: QUANTILES.map(|q| interpolated_quantile(&similar_h, q)),
        forecast_h: QUANTILES.map(|q| interpolated_quantile(&drawn_h, q)),
    }
}

fn hours(span_s: i64) -> f64 {
    span_s as f64 / 3600.0
}

fn wait_h(job: &TraceJob) -> Option<f64> {
    job.wait_s().map(hours)
}

/// Scores all methods on `waits`.
fn wait_scores(name: &str, waits: &[&ForecastWait]) -> RealWaitScores {
    let mut real_h: Vec<f64> = waits.iter().map(|wait| wait.wait_h).collect();
    real_h.sort_by(f64::total_cmp);
    RealWaitScores {
        name: name.to_owned(),
        jobs: waits.len(),
        wait_mean_h: mean(&real_h),
        wait_p50_h: interpolated_quantile(&real_h, 0.5),
        wait_p90_h: interpolated_quantile(&real_h, 0.9),
        forecasts: vec![
            value_scores("limit", waits, |wait| wait.limit_h),
            value_scores("last 100", waits, |wait| wait.last_h),
            quantile_scores("like jobs", waits, |wait| &wait.similar_h),
            quantile_scores("forecast", waits, |wait| &wait.forecast_h),
        ],
    }
}

/// Scores a method that forecasts one value.
fn value_scores(
    name: &str,
    waits: &[&ForecastWait],
    value_h: impl Fn(&ForecastWait) -> f64,
) -> ForecastScores {
    let errors_h: Vec<f64> = waits
        .iter()
        .map(|wait| value_h(wait) - wait.wait_h)
        .collect();
    let absolute_h: Vec<f64> = errors_h.iter().map(|error| error.abs()).collect();
    let near = absolute_h.iter().filter(|error| **error <= 1.0 / 6.0);
    ForecastScores {
        name: name.to_owned(),
        error_h: mean(&absolute_h),
        bias_h: mean(&errors_h),
        within_10_min: near.count() as f64 / waits.len().max(1) as f64,
        quantiles: Vec::new(),
    }
}

/// Scores a method that forecasts [`QUANTILES`]. Its value is the median, the first of them.
fn quantile_scores(
    name: &str,
    waits: &[&ForecastWait],
    values_h: impl Fn(&ForecastWait) -> &[f64; QUANTILES.len()],
) -> ForecastScores {
    let mut scores = value_scores(name, waits, |wait| values_h(wait)[0]);
    for (number, quantile) in QUANTILES.into_iter().enumerate() {
        let (mut losses_h, mut covered) = (Vec::with_capacity(waits.len()), 0);
        for wait in waits {
            let value_h = values_h(wait)[number];
            losses_h.push(pinball_loss(quantile, wait.wait_h - value_h));
            covered += usize::from(wait.wait_h <= value_h + MINUTE_H);
        }
        scores.quantiles.push(QuantileScores {
            quantile,
            pinball_h: mean(&losses_h),
            coverage: covered as f64 / waits.len().max(1) as f64,
        });
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_scored_by_their_cost() {
        let wait = |wait_h: f64, forecast_h: f64| ForecastWait {
            month: String::new(),
            wait_h,
            limit_h: 0.0,
            last_h: 0.0,
            similar_h: [0.0; 3],
            forecast_h: [forecast_h; 3],
        };
        let waits = [wait(1.0, 2.0), wait(4.0, 2.0)];
        let waits: Vec<&ForecastWait> = waits.iter().collect();
        let scores = quantile_scores("x", &waits, |wait| &wait.forecast_h);
        assert_eq!(
            (scores.error_h, scores.bias_h, scores.within_10_min),
            (1.5, -0.5, 0.0)
        );
        assert_eq!(scores.quantiles[0].pinball_h, 0.75);
        assert_eq!(scores.quantiles[2].coverage, 0.5);
    }
}
