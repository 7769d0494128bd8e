//! Sides of a split → whether their shares of success differ by more than chance, whole clusters
//! being drawn.

use std::collections::BTreeMap;

use serde::Serialize;

use super::split_side::SplitSide;
use super::tensor_summary::{SideSummary, TensorSummary};

/// Shares that differ by less do not matter, however sure it is that they differ.
const LEAST_DIFFERENCE: f64 = 0.05;

/// The point of the normal distribution for 95 % intervals.
const NORMAL_95: f64 = 1.96;

/// Two sides whose shares of success surely differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BaseRateShift {
    /// The earlier side.
    pub from: SplitSide,
    /// The later one.
    pub to: SplitSide,
    /// How much larger the share of the later one is: the ends of the 95 % interval.
    pub difference: (f64, f64),
}

/// The sides of `summary` whose shares of success differ by 0.05 at least, all their 95 % interval
/// long.
pub fn base_rate_shifts(summary: &TensorSummary) -> Vec<BaseRateShift> {
    let [train, validate, test] = SplitSide::ALL;
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

/// Whether a difference matters all over its interval.
fn is_large((low, high): (f64, f64)) -> bool {
    low >= LEAST_DIFFERENCE || high <= -LEAST_DIFFERENCE
}

fn difference_interval(earlier: &SideSummary, later: &SideSummary) -> Option<(f64, f64)> {
    let error = earlier.share_error?.hypot(later.share_error?);
    let difference = later.success_share() - earlier.success_share();
    Some((
        difference - NORMAL_95 * error,
        difference + NORMAL_95 * error,
    ))
}

/// The standard error of the share of successes among `samples`, each with the cluster it is of;
/// `None` for fewer than two clusters. Clusters, and not samples, are independent: Cochran, Sampling
/// Techniques, 3rd edition, formula 9A.6.
pub(super) fn share_error(samples: impl Iterator<Item = (u32, bool)>) -> Option<f64> {
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
    fn the_error_is_that_of_clusters() {
        let alone = |i: u32| (i, i.is_multiple_of(2));
        let error = share_error((0..400).map(alone)).expect("many clusters");
        assert!((error - 0.025).abs() < 1e-4, "{error}");
        // Eight samples a cluster, all of one fate: the root of eight larger.
        let together = |i: u32| (i / 8, (i / 8).is_multiple_of(2));
        let wide = share_error((0..400).map(together)).expect("many clusters");
        assert!((2.7..3.0).contains(&(wide / error)), "{wide}");
        assert_eq!(share_error([(3, true), (3, false)].into_iter()), None);
    }

    #[test]
    fn a_difference_is_told_where_it_is_sure_and_large() {
        let side = |successes, error| SideSummary {
            samples: 1000,
            successes,
            share_error: Some(error),
            ..SideSummary::default()
        };
        let interval = |a: &SideSummary, b: &SideSummary| difference_interval(a, b).expect("known");
        let (low, high) = interval(&side(300, 0.03), &side(440, 0.04));
        assert!((low - 0.042).abs() < 1e-3 && (high - 0.238).abs() < 1e-3);
        let unknown = SideSummary::default();
        assert!(!is_large((low, high)), "it may be four points");
        assert!(is_large(interval(&side(300, 0.03), &side(480, 0.04))));
        assert!(is_large(interval(&side(480, 0.03), &side(300, 0.04))));
        assert_eq!(difference_interval(&unknown, &side(1, 0.1)), None);
    }
}
