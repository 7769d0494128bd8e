//! Compares simulated starts with logged starts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::replayed_trace::ReplayedTrace;
use crate::trace::{JobTrace, month_of};
use poolcast_base::stats::{interpolated_quantile, mean};

const HOUR_S: f64 = 3600.0;

/// Waits of a group of jobs, in hours.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedJobs {
    /// The name of the group.
    pub name: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Mean simulated wait, hours.
    pub simulated_mean_h: f64,
    /// Mean logged wait, hours.
    pub logged_mean_h: f64,
    /// Median absolute difference between the two waits, hours.
    pub error_p50_h: f64,
    /// 90 % quantile of the absolute differences, hours.
    pub error_p90_h: f64,
    /// Mean absolute difference, hours.
    pub error_mean_h: f64,
    /// Correlation of the two waits; 0 if either is constant.
    pub correlation: f64,
}

/// Comparison of simulated and logged waits.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayComparison {
    /// All compared jobs: those that started in the log, too.
    pub all: ComparedJobs,
    /// Jobs by month of submission, in local time.
    pub months: Vec<ComparedJobs>,
    /// Jobs by node count.
    pub sizes: Vec<ComparedJobs>,
}

/// Compares the waits of jobs that were submitted at `since_s` or later, and started both in the
/// simulation and in the log. Jobs that were cancelled while pending have no logged start.
pub fn compare_starts(
    trace: &JobTrace,
    replayed: &ReplayedTrace,
    since_s: i64,
) -> ReplayComparison {
    let waits_h = |place: usize| {
        let simulated_s = replayed.waits_s[place].get()?;
        let logged_s = trace.jobs[place].wait_s()?;
        Some((simulated_s as f64 / HOUR_S, logged_s as f64 / HOUR_S))
    };
    // Store indices, which take less memory than waits. Only one group has its waits in memory at a
    // time.
    let mut all: Vec<u32> = Vec::new();
    let mut months: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut sizes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (place, job) in trace.jobs.iter().enumerate() {
        if job.submit_s < since_s || waits_h(place).is_none() {
            continue;
        }
        let place = place as u32;
        all.push(place);
        let month = month_of(trace.zone.wall_s(job.submit_s));
        months.entry(month).or_default().push(place);
        sizes.entry(size_class(job.nodes)).or_default().push(place);
    }

    let compare = |name: &str, places: &[u32]| {
        let mut waits = Vec::with_capacity(places.len());
        waits.extend(places.iter().filter_map(|place| waits_h(*place as usize)));
        compare_waits(name, &waits)
    };
    let months = months.iter().map(|(month, places)| compare(month, places));
    let sizes = sizes.iter().map(|(largest, places)| {
        let name = match largest {
            1 => "1 node".to_owned(),
            2 => "2 nodes".to_owned(),
            _ => format!("{} to {largest} nodes", largest / 2 + 1),
        };
        compare(&name, places)
    });
    ReplayComparison {
        all: compare("all", &all),
        months: months.collect(),
        sizes: sizes.collect(),
    }
}

/// Rounds `nodes` up to a power of two.
fn size_class(nodes: u32) -> u32 {
    nodes.checked_next_power_of_two().unwrap_or(u32::MAX)
}

/// Compares pairs of simulated and logged waits.
fn compare_waits(name: &str, waits: &[(f64, f64)]) -> ComparedJobs {
    let mut errors: Vec<f64> = waits.iter().map(|(a, b)| (a - b).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let means = mean_waits(waits);
    ComparedJobs {
        name: name.to_owned(),
        jobs: waits.len(),
        simulated_mean_h: means.0,
        logged_mean_h: means.1,
        error_p50_h: interpolated_quantile(&errors, 0.5),
        error_p90_h: interpolated_quantile(&errors, 0.9),
        error_mean_h: mean(&errors),
        correlation: correlation(waits, means),
    }
}

/// Returns the means of both waits; 0 if there are none.
fn mean_waits(waits: &[(f64, f64)]) -> (f64, f64) {
    let (mut a, mut b) = (0.0, 0.0);
    for waits in waits {
        a += waits.0;
        b += waits.1;
    }
    let count = waits.len().max(1) as f64;
    (a / count, b / count)
}

fn correlation(waits: &[(f64, f64)], means: (f64, f64)) -> f64 {
    let (mut products, mut squares_a, mut squares_b) = (0.0, 0.0, 0.0);
    for (a, b) in waits {
        products += (a - means.0) * (b - means.1);
        squares_a += (a - means.0).powi(2);
        squares_b += (b - means.1).powi(2);
    }
    let scale = (squares_a * squares_b).sqrt();
    if scale > 0.0 { products / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_compared() {
        let waits = [(1.0, 1.0), (2.0, 4.0), (3.0, 7.0)];
        let found = compare_waits("x", &waits);
        assert_eq!((found.simulated_mean_h, found.logged_mean_h), (2.0, 4.0));
        assert_eq!((found.error_p50_h, found.error_mean_h), (2.0, 2.0));
        assert!((found.correlation - 1.0).abs() < 1e-12);
        assert_eq!(compare_waits("x", &[]).correlation, 0.0);
        assert_eq!([1, 2, 3, 4, 5, 16].map(size_class), [1, 2, 4, 4, 8, 16]);
    }
}
