//! Detects splits whose success rates differ by more than chance. Clusters, not samples, are the
//! independent units.

use std::collections::BTreeMap;

use serde::Serialize;

use super::split::Split;
use crate::shards::{SplitSummary, TensorSummary};

/// Minimum difference of two success rates that matters, even if a smaller one is significant.
const MIN_DIFFERENCE: f64 = 0.05;

/// Quantile of the normal distribution for 95 % intervals.
const NORMAL_95: f64 = 1.96;

/// Two splits whose success rates differ significantly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BaseRateShift {
    /// The earlier split.
    pub from: Split,
    /// The later split.
    pub to: Split,
    /// Success rate of the later split minus the rate of the earlier one: the ends of the 95 %
    /// interval.
    pub difference: (f64, f64),
}

/// Returns the pairs of splits of `summary` whose success rates differ by at least 0.05 over the
/// whole 95 % interval.
pub fn base_rate_shifts(summary: &TensorSummary) -> Vec<BaseRateShift> {
    let [train, validate, test] = Split::ALL;
    let mut shifts = Vec::new();
    for (from, to) in [(train, validate), (validate, test), (train, test)] {
        let (Some(earlier), Some(later)) = (summary.splits.get(&from), summary.splits.get(&to))
        else {
            continue;
        };
        let difference = difference_interval(earlier, later).filter(|ends| is_large(*ends));
        shifts.extend(difference.map(|difference| BaseRateShift {
            from,
            to,
            difference,
        }));
    }
    shifts
}

/// Returns true if all of the interval is a difference that matters.
fn is_large((low, high): (f64, f64)) -> bool {
    low >= MIN_DIFFERENCE || high <= -MIN_DIFFERENCE
}

fn difference_interval(earlier: &SplitSummary, later: &SplitSummary) -> Option<(f64, f64)> {
    let error = earlier.share_error?.hypot(later.share_error?);
    let difference = later.success_share() - earlier.success_share();
    Some((
        difference - NORMAL_95 * error,
        difference + NORMAL_95 * error,
    ))
}

/// Returns the standard error of the success rate of `samples`, which are pairs of cluster and
/// success. Returns `None` for fewer than two clusters.
///
/// Clusters are independent, samples are not: Cochran, Sampling Techniques, 3rd edition, formula
/// 9A.6.
pub(crate) fn share_error(samples: impl Iterator<Item = (u32, bool)>) -> Option<f64> {
    let mut counts_by_cluster: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let mut samples_in_all = 0.0;
    let mut successes_in_all = 0.0;
    for (cluster, is_success) in samples {
        let success = f64::from(u8::from(is_success));
        let (samples, successes) = counts_by_cluster.entry(cluster).or_default();
        *samples += 1.0;
        *successes += success;
        samples_in_all += 1.0;
        successes_in_all += success;
    }

    let clusters = counts_by_cluster.len() as f64;
    if clusters < 2.0 {
        return None;
    }
    let share = successes_in_all / samples_in_all;
    let mut squares = 0.0;
    for (samples, successes) in counts_by_cluster.values() {
        squares += (successes - share * samples).powi(2);
    }
    Some((clusters / (clusters - 1.0) * squares).sqrt() / samples_in_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_error_treats_clusters_as_units() {
        let alone = |i: u32| (i, i.is_multiple_of(2));
        let error = share_error((0..400).map(alone)).expect("many clusters");
        assert!((error - 0.025).abs() < 1e-4, "{error}");
        // Eight samples per cluster share one outcome, so the error is larger by the square root of
        // eight.
        let together = |i: u32| (i / 8, (i / 8).is_multiple_of(2));
        let wide = share_error((0..400).map(together)).expect("many clusters");
        assert!((2.7..3.0).contains(&(wide / error)), "{wide}");
        assert_eq!(share_error([(3, true), (3, false)].into_iter()), None);
    }

    #[test]
    fn only_large_significant_differences_are_reported() {
        let of_split = |successes, error| SplitSummary {
            samples: 1000,
            successes,
            share_error: Some(error),
            ..SplitSummary::default()
        };
        let interval =
            |a: &SplitSummary, b: &SplitSummary| difference_interval(a, b).expect("known");
        let (low, high) = interval(&of_split(300, 0.03), &of_split(440, 0.04));
        assert!((low - 0.042).abs() < 1e-3 && (high - 0.238).abs() < 1e-3);
        let unknown = SplitSummary::default();
        assert!(!is_large((low, high)), "it may be four points");
        assert!(is_large(interval(
            &of_split(300, 0.03),
            &of_split(480, 0.04)
        )));
        assert!(is_large(interval(
            &of_split(480, 0.03),
            &of_split(300, 0.04)
        )));
        assert_eq!(difference_interval(&unknown, &of_split(1, 0.1)), None);
    }
}
