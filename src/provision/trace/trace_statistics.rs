//! Statistics of a trace: requests, run times, waits and load of its cluster.

use std::collections::BTreeMap;

use serde::Serialize;

use super::daily_load::daily_loads;
use super::trace_job::{JobFate, TraceJob};
use super::trace_store::JobTrace;
use super::user_load::{BusiestUsers, busiest_users};
use poolcast_base::stats::{interpolated_quantile, mean};

const HOUR_S: f64 = 3600.0;

/// Excess of the run time over the limit, in seconds, that counts as over the limit. A job ended by
/// its limit exceeds it by less.
const OVER_LIMIT_S: i64 = 300;

/// Minimum share, of jobs or of node hours, for which a node count is listed separately.
const MIN_LISTED_SHARE: f64 = 0.005;

/// Statistics of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct TraceStatistics {
    /// Number of jobs.
    pub jobs: usize,
    /// Jobs that ran.
    pub ran: usize,
    /// Number of known users.
    pub users: usize,
    /// Submissions per day, over the days that have any.
    pub arrivals_per_day: ArrivalsPerDay,
    /// Jobs that left the queue without having run.
    pub cancelled: CancelledWaits,
    /// Jobs by node count.
    pub nodes: Vec<NodeCountShare>,
    /// Node hours of all runs.
    pub node_hours: f64,
    /// Run times, in hours.
    pub run_h: NamedQuantiles,
    /// Jobs that ran for less than a minute.
    pub shorter_than_a_minute: usize,
    /// Shares of jobs by time limit. Jobs with longer limits or none are missing.
    pub limits: Vec<LimitShare>,
    /// Run time as a share of the limit, for jobs that ran.
    pub used_share: NamedQuantiles,
    /// Share of jobs with a known limit that used at least 99 % of it.
    pub at_limit: f64,
    /// Jobs that ran for more than five minutes longer than their limit.
    pub over_limit: usize,
    /// The limit, in hours, of the one-node jobs whose waits are shown separately: the longest
    /// limit that at least a tenth of the jobs that ran have.
    pub long_limit_h: f64,
    /// Waits of jobs that ran, by month of submission.
    pub months: Vec<MonthlyWaits>,
    /// The most jobs that a user ran at once.
    pub busiest_users: BusiestUsers,
}

/// Submissions per day.
#[derive(Debug, Clone, Serialize)]
pub struct ArrivalsPerDay {
    /// Their median.
    pub median: f64,
    /// Submissions on the day with the most.
    pub most: f64,
}

/// Jobs that left the queue without having run.
#[derive(Debug, Clone, Serialize)]
pub struct CancelledWaits {
    /// Number of such jobs.
    pub jobs: usize,
    /// Jobs that had waited for more than a minute.
    pub waited: usize,
    /// Waits of the jobs in `waited`, in hours.
    pub wait_h: NamedQuantiles,
}

/// Jobs with the same node count.
#[derive(Debug, Clone, Serialize)]
pub struct NodeCountShare {
    /// The node count; `None` combines all counts with small shares.
    pub nodes: Option<u32>,
    /// Share of all jobs.
    pub jobs: f64,
    /// Share of all node hours.
    pub node_hours: f64,
}

/// Share of jobs whose limit is at most `up_to_h` hours, and above the previous entry's `up_to_h`.
#[derive(Debug, Clone, Serialize)]
pub struct LimitShare {
    /// The longest limit, in hours. Each object excludes the jobs of the previous ones.
    pub up_to_h: f64,
    /// Share of all jobs.
    pub jobs: f64,
}

/// Quantiles, the maximum and the mean of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct NamedQuantiles {
    /// A tenth of the values is smaller.
    pub p10: f64,
    /// A quarter of the values is smaller.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// Three quarters of the values are smaller.
    pub p75: f64,
    /// Nine tenths of the values are smaller.
    pub p90: f64,
    /// 99 of 100 values are smaller.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

impl NamedQuantiles {
    /// Computes the quantiles of `values`, which may be in any order.
    pub fn of(mut values: Vec<f64>) -> NamedQuantiles {
        values.sort_by(f64::total_cmp);
        let at = |q| interpolated_quantile(&values, q);
        NamedQuantiles {
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
            mean: mean(&values),
        }
    }
}

/// Waits of the jobs that were submitted in one month and ran, and the load of that month.
#[derive(Debug, Clone, Serialize)]
pub struct MonthlyWaits {
    /// The month in local time, such as `2023-03`.
    pub month: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Waits, in hours.
    pub wait_h: NamedQuantiles,
    /// One-node jobs with the limit `long_limit_h`.
    pub long_jobs: usize,
    /// Waits of the jobs in `long_jobs`, in hours.
    pub long_wait_h: NamedQuantiles,
    /// Average number of busy nodes.
    pub mean_busy_nodes: f64,
    /// The largest number of nodes that were busy for an hour of a day in total.
    pub peak_busy_nodes: u32,
}

/// Computes the statistics of `trace`.
pub fn trace_statistics(trace: &JobTrace) -> TraceStatistics {
    let jobs = &trace.jobs;
    let ran: Vec<&TraceJob> = jobs
        .iter()
        .filter(|job| job.run_s.get().is_some())
        .collect();
    let hours_of = |job: &&TraceJob| job.run_s.get().unwrap_or(0) as f64 / HOUR_S;
    let used = used_shares(&ran);
    let at_limit = used.iter().filter(|share| **share >= 0.99).count();
    let long_limit_s = long_limit_s(&ran);
    let mut users: Vec<u64> = jobs.iter().map(|job| job.user).collect();
    users.sort_unstable();
    users.dedup();

    let overtime_s = |job: &&&TraceJob| Some(job.run_s.get()? - job.limit_s.get()?);
    TraceStatistics {
        jobs: jobs.len(),
        ran: ran.len(),
        users: users.iter().filter(|user| **user != 0).count(),
        arrivals_per_day: arrivals_per_day(trace),
        cancelled: cancelled_waits(jobs),
        nodes: node_shares(jobs),
        node_hours: jobs.iter().map(node_hours).sum(),
        run_h: NamedQuantiles::of(ran.iter().map(hours_of).collect()),
        shorter_than_a_minute: ran.iter().filter(|job| job.run_s.get() < Some(60)).count(),
        limits: limit_shares(jobs),
        at_limit: at_limit as f64 / used.len().max(1) as f64,
        used_share: NamedQuantiles::of(used),
        over_limit: ran
            .iter()
            .filter(|job| overtime_s(job).is_some_and(|over_s| over_s > OVER_LIMIT_S))
            .count(),
        long_limit_h: long_limit_s as f64 / HOUR_S,
        months: monthly_waits(trace, long_limit_s),
        busiest_users: busiest_users(jobs),
    }
}

fn node_hours(job: &TraceJob) -> f64 {
    f64::from(job.nodes) * job.run_s.get().unwrap_or(0) as f64 / HOUR_S
}

fn used_shares(ran: &[&TraceJob]) -> Vec<f64> {
    let mut shares = Vec::new();
    for job in ran {
        if let (Some(run_s), Some(limit_s)) = (
            job.run_s.get(),
            job.limit_s.get().filter(|limit| *limit > 0),
        ) {
            shares.push(run_s as f64 / limit_s as f64);
        }
    }
    shares
}

/// Returns the longest limit, in seconds, that at least a tenth of the jobs that ran have.
fn long_limit_s(ran: &[&TraceJob]) -> i64 {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for limit_s in ran.iter().filter_map(|job| job.limit_s.get()) {
        *counts.entry(limit_s).or_insert(0) += 1;
    }
    let mut frequent = counts.iter().rev();
    let longest = frequent.find(|(_, count)| **count * 10 >= ran.len());
    longest.map_or(0, |(limit_s, _)| *limit_s)
}

fn arrivals_per_day(trace: &JobTrace) -> ArrivalsPerDay {
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for job in &trace.jobs {
        let day = trace.zone.wall_s(job.submit_s).div_euclid(86_400);
        *counts.entry(day).or_insert(0.0) += 1.0;
    }
    let counts = NamedQuantiles::of(counts.into_values().collect());
    ArrivalsPerDay {
        median: counts.p50,
        most: counts.max,
    }
}

fn cancelled_waits(jobs: &[TraceJob]) -> CancelledWaits {
    let (mut cancelled, mut waits) = (0, Vec::new());
    for job in jobs.iter().filter(|job| job.fate == JobFate::Cancelled) {
        cancelled += 1;
        let wait_s = job.end_s.get().map_or(0, |end_s| end_s - job.submit_s);
        if wait_s > 60 {
            waits.push(wait_s as f64 / HOUR_S);
        }
    }
    CancelledWaits {
        jobs: cancelled,
        waited: waits.len(),
        wait_h: NamedQuantiles::of(waits),
    }
}

fn node_shares(jobs: &[TraceJob]) -> Vec<NodeCountShare> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for job in jobs {
        let (count, hours) = sums.entry(job.nodes).or_insert((0.0, 0.0));
        *count += 1.0;
        *hours += node_hours(job);
    }
    let all_jobs = jobs.len().max(1) as f64;
    let all_hours: f64 = sums.values().map(|(_, hours)| hours).sum();

    let mut shares = Vec::new();
    let mut rest = NodeCountShare {
        nodes: None,
        jobs: 0.0,
        node_hours: 0.0,
    };
    for (nodes, (count, hours)) in sums {
        let (jobs, node_hours) = (count / all_jobs, hours / all_hours.max(1e-9));
        if jobs < MIN_LISTED_SHARE && node_hours < MIN_LISTED_SHARE {
            rest.jobs += jobs;
            rest.node_hours += node_hours;
            continue;
        }
        shares.push(NodeCountShare {
            nodes: Some(nodes),
            jobs,
            node_hours,
        });
    }
    shares.sort_by(|a, b| b.jobs.total_cmp(&a.jobs));
    if rest.jobs > 0.0 {
        shares.push(rest);
    }
    shares
}

fn limit_shares(jobs: &[TraceJob]) -> Vec<LimitShare> {
    let mut shares = Vec::new();
    let mut below = 0;
    for up_to_h in [0.5, 2.0, 12.0, 24.0, 48.0] {
        let up_to_s = (up_to_h * HOUR_S) as i64;
        let up_to = jobs
            .iter()
            .filter(|job| job.limit_s.get().is_some_and(|s| s <= up_to_s));
        let up_to = up_to.count();
        shares.push(LimitShare {
            up_to_h,
            jobs: (up_to - below) as f64 / jobs.len().max(1) as f64,
        });
        below = up_to;
    }
    shares
}

/// Computes the waits and the load of each month.
fn monthly_waits(trace: &JobTrace, long_limit_s: i64) -> Vec<MonthlyWaits> {
    let mut waits: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for job in &trace.jobs {
        let Some(wait_s) = job.wait_s() else { continue };
        let wait_h = wait_s as f64 / HOUR_S;
        let month = month_of(trace.zone.wall_s(job.submit_s));
        let (all, long) = waits.entry(month).or_default();
        all.push(wait_h);
        if job.nodes == 1 && job.limit_s.get() == Some(long_limit_s) {
            long.push(wait_h);
        }
    }

    let mut loads: BTreeMap<String, (f64, f64, u32)> = BTreeMap::new();
    for load in daily_loads(&trace.jobs, &trace.zone, trace.summary.end_s) {
        let (days, sum, peak) = loads.entry(month_of(load.day * 86_400)).or_default();
        *days += 1.0;
        *sum += load.mean_nodes;
        *peak = load.peak_nodes.max(*peak);
    }

    let mut months = Vec::new();
    for (month, (all, long)) in waits {
        let (days, sum, peak) = loads.get(&month).copied().unwrap_or_default();
        months.push(MonthlyWaits {
            month,
            jobs: all.len(),
            wait_h: NamedQuantiles::of(all),
            long_jobs: long.len(),
            long_wait_h: NamedQuantiles::of(long),
            mean_busy_nodes: sum / days.max(1.0),
            peak_busy_nodes: peak,
        });
    }
    months
}

/// Formats the month of a wall-clock time, given in seconds, as `2023-03`.
pub(crate) fn month_of(wall_s: i64) -> String {
    match jiff::Timestamp::from_second(wall_s) {
        Ok(moment) => moment.strftime("%Y-%m").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}
