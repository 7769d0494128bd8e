//! Forecasts of waits that jobs of the trace really had, from the queue that the trace shows when
//! they were submitted. No successor is simulated.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::trace_sweep::TraceSweep;
use crate::forecast::{QueueMoment, RunHistory, SeenWait, WaitForecast, WaitSpan};
use poolcast_base::stats::{mean, quantile};
use crate::submission::StartedWait;
use crate::trace::{JobTrace, TraceJob, month_of};

/// The quantiles that forecasts are scored at.
const QUANTILES: [f64; 3] = [0.5, 0.75, 0.9];

/// Waits forecast to be longer are forecast to be so long, seconds.
const MOST_S: i64 = 30 * 86_400;

/// A wait is covered by a forecast that it exceeds by no more than this: whatever is free, a job starts
/// at the next plan, which is made once a minute.
const MINUTE_H: f64 = 1.0 / 60.0;

/// How many waits of jobs are taken for a mean, or a quantile.
const LAST_WAITS: usize = 100;

/// Which jobs' waits are forecast. Moments are epoch seconds, spans seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RealWaitPlan {
    /// From when on they were submitted.
    pub from_s: i64,
    /// Until when.
    pub until_s: i64,
    /// How many nodes they have.
    pub nodes: u32,
    /// Their limit; `None` for any.
    pub limit_s: Option<i64>,
    /// At most so many, evenly spread over all.
    pub most_jobs: usize,
    /// How many of the last runs run times are drawn from.
    pub history_runs: usize,
}

/// How well some waits were forecast, hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealWaitScores {
    /// Which jobs.
    pub name: String,
    /// How many.
    pub jobs: usize,
    /// How long they waited on average.
    pub wait_mean_h: f64,
    /// How long in the median.
    pub wait_p50_h: f64,
    /// What a tenth of them exceeded.
    pub wait_p90_h: f64,
    /// The forecasts.
    pub forecasts: Vec<ForecastScores>,
}

/// How well one way of forecasting did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastScores {
    /// Its name.
    pub name: String,
    /// The mean of the absolute error of its median, or only value.
    pub error_h: f64,
    /// The mean of that error.
    pub bias_h: f64,
    /// The share of jobs for which that error is at most 10 minutes.
    pub within_10_min: f64,
    /// Of one that tells quantiles, how well they are met.
    pub quantiles: Vec<QuantileScores>,
}

/// How well a quantile was forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileScores {
    /// Which.
    pub quantile: f64,
    /// The mean pinball loss.
    pub pinball_h: f64,
    /// The share of waits that did not exceed it by more than a minute.
    pub coverage: f64,
}

/// What was forecast of a job's wait, hours.
struct ForecastWait {
    month: String,
    wait_h: f64,
    limit_h: f64,
    last_h: f64,
    /// The quantiles of [`QUANTILES`].
    like_h: [f64; QUANTILES.len()],
    forecast_h: [f64; QUANTILES.len()],
}

/// Forecasts waits of jobs of `trace` as `plan` has it; the first scores are of all, the others by
/// month. `nodes_at` says how many nodes there were at a moment; `users` is whose each job is.
pub(super) fn real_waits(
    trace: &JobTrace,
    users: &[u32],
    longest_s: i64,
    plan: &RealWaitPlan,
    forecast: &WaitForecast,
    nodes_at: impl Fn(i64) -> u32,
) -> Vec<RealWaitScores> {
    let mut sweep = TraceSweep::new(&trace.jobs, users, longest_s);
    let mut queues: Vec<(usize, QueueMoment)> = Vec::new();
    for place in chosen_jobs(&trace.jobs, plan) {
        let nodes = nodes_at(trace.jobs[place].submit_s);
        queues.push((place, sweep.queue_before(place, nodes)));
    }
    let waits: Vec<ForecastWait> = queues
        .par_iter()
        .map(|(place, queue)| forecast_wait(trace, &sweep, *place, queue, plan, forecast, users))
        .collect();

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

/// The places of the jobs that started, and are as `plan` has it.
fn chosen_jobs(jobs: &[TraceJob], plan: &RealWaitPlan) -> Vec<usize> {
    let mut places = Vec::new();
    for (place, job) in jobs.iter().enumerate() {
        let is_then = (plan.from_s..plan.until_s).contains(&job.submit_s);
        let is_like = job.nodes == plan.nodes
            && plan
                .limit_s
                .is_none_or(|limit_s| job.limit_s.get() == Some(limit_s));
        if is_then && is_like && job.wait_s().is_some() {
            places.push(place);
        }
    }
    let every = places.len().div_ceil(plan.most_jobs.max(1)).max(1);
    places.into_iter().step_by(every).collect()
}

fn forecast_wait(
    trace: &JobTrace,
    sweep: &TraceSweep<'_>,
    place: usize,
    queue: &QueueMoment,
    plan: &RealWaitPlan,
    forecast: &WaitForecast,
    users: &[u32],
) -> ForecastWait {
    let job = &trace.jobs[place];
    let asked = SeenWait {
        since_s: queue.now_s,
        limit_s: sweep.limit_s(place),
        nodes: job.nodes,
        user: users[place],
    };
    let history = RunHistory::of(sweep.ended_runs(queue.now_s, plan.history_runs));
    let drawn_s = forecast.waits_s(queue, &history, &asked, WaitSpan::up_to(MOST_S));
    let limit_s = forecast.wait_by_limits_s(queue, &asked, MOST_S);

    let last = sweep.started(queue.now_s).take(LAST_WAITS);
    let last_h: Vec<f64> = last.filter_map(wait_h).collect();
    let like = sweep.started(queue.now_s).filter(|other| {
        let started = StartedWait {
            nodes: other.nodes,
            limit_s: other.limit_s.get().unwrap_or(asked.limit_s),
            wait_s: 0,
        };
        started.is_like(asked.nodes, asked.limit_s)
    });
    let mut like_h: Vec<f64> = like.take(LAST_WAITS).filter_map(wait_h).collect();
    like_h.sort_by(f64::total_cmp);
    let drawn_h: Vec<f64> = drawn_s.iter().map(|wait_s| hours(*wait_s)).collect();
    ForecastWait {
        month: month_of(trace.zone.wall_s(queue.now_s)),
        wait_h: wait_h(job).unwrap_or(0.0),
        limit_h: hours(limit_s),
        last_h: mean(&last_h),
        like_h: QUANTILES.map(|q| quantile(&like_h, q)),
        forecast_h: QUANTILES.map(|q| quantile(&drawn_h, q)),
    }
}

fn hours(span_s: i64) -> f64 {
    span_s as f64 / 3600.0
}

fn wait_h(job: &TraceJob) -> Option<f64> {
    job.wait_s().map(hours)
}

fn wait_scores(name: &str, waits: &[&ForecastWait]) -> RealWaitScores {
    let mut real_h: Vec<f64> = waits.iter().map(|wait| wait.wait_h).collect();
    real_h.sort_by(f64::total_cmp);
    RealWaitScores {
        name: name.to_owned(),
        jobs: waits.len(),
        wait_mean_h: mean(&real_h),
        wait_p50_h: quantile(&real_h, 0.5),
        wait_p90_h: quantile(&real_h, 0.9),
        forecasts: vec![
            value_scores("limit", waits, |wait| wait.limit_h),
            value_scores("last 100", waits, |wait| wait.last_h),
            quantile_scores("like jobs", waits, |wait| &wait.like_h),
            quantile_scores("forecast", waits, |wait| &wait.forecast_h),
        ],
    }
}

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
            losses_h.push(pinball(wait.wait_h, value_h, quantile));
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

/// What it costs to forecast `forecast` for the quantile `quantile` of what comes to be `real`.
fn pinball(real: f64, forecast: f64, quantile: f64) -> f64 {
    let short = real - forecast;
    (quantile * short).max((quantile - 1.0) * short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_scored_by_their_cost() {
        assert_eq!(
            (pinball(5.0, 1.0, 0.75), pinball(1.0, 5.0, 0.75)),
            (3.0, 1.0)
        );
        let wait = |wait_h: f64, forecast_h: f64| ForecastWait {
            month: String::new(),
            wait_h,
            limit_h: 0.0,
            last_h: 0.0,
            like_h: [0.0; 3],
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
