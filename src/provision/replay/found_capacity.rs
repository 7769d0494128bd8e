//! Derives the number of nodes of a cluster from its trace: the largest number that was busy for
//! some time.

use super::replayed_trace::DatedNodes;
use crate::trace::{DailyLoad, JobTrace, daily_loads};

/// Number of days before and after a day whose peaks count. If the cluster is not full for fewer
/// days than this, it keeps the smaller of the sizes before and after.
const SLACK_DAYS: usize = 14;

/// Number of days at each end of the trace that are evaluated together, because an export covers
/// them only in part.
const EDGE_DAYS: usize = 7;

/// Derives the number of nodes over time. The first step also applies to the time before it.
pub(super) fn found_capacity(trace: &JobTrace) -> Vec<DatedNodes> {
    let loads = daily_loads(&trace.jobs, &trace.zone, trace.summary.end_s);
    let peaks: Vec<u32> = loads
        .iter()
        .map(|load: &DailyLoad| load.peak_nodes)
        .collect();
    let mut steps: Vec<DatedNodes> = Vec::new();
    for (day, load) in loads.iter().enumerate() {
        let nodes = capacity_on(&peaks, day);
        if steps.last().is_none_or(|step| step.nodes != nodes) {
            let from_s = trace.zone.time_of_wall_s(load.day * 86_400);
            steps.push(DatedNodes { from_s, nodes });
        }
    }
    steps
}

/// Returns the smaller of two maxima: of the peaks up to `day`, and of the peaks from `day` on.
fn capacity_on(peaks: &[u32], day: usize) -> u32 {
    let last = peaks.len() - 1;
    let before = day.saturating_sub(SLACK_DAYS)..=day.max(EDGE_DAYS - 1).min(last);
    let after = day.min(last.saturating_sub(EDGE_DAYS - 1))..=(day + SLACK_DAYS).min(last);
    let highest =
        |days: std::ops::RangeInclusive<usize>| peaks[days].iter().copied().max().unwrap_or(0);
    highest(before).min(highest(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valleys_are_filled_and_steps_stay_sharp() {
        let mut peaks = vec![11, 26, 30, 32, 31, 32, 32, 32, 32];
        peaks.extend([64, 64, 40, 38, 50, 30, 64, 64, 74, 74, 74, 60, 74]);
        let found: Vec<u32> = (0..peaks.len())
            .map(|day| capacity_on(&peaks, day))
            .collect();
        assert_eq!(found[..9], [32; 9]);
        assert_eq!(found[9..17], [64; 8]);
        assert_eq!(found[17..], [74; 5]);
        assert_eq!(capacity_on(&[5], 0), 5);
    }
}
