//! Replays release policies over later holds, and counts the successes and failures of each policy.

use serde::Serialize;

use super::policy_hold::PolicyHold;
use super::release_policy::ReleasePolicy;
use poolcast_base::parallel::map_numbers;
use poolcast_base::stats::{SampleGroups, percentile_interval};

/// Totals over the holds that policies are evaluated on: all holds after the cutoff, except
/// intended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LaterHolds {
    /// Number of holds.
    pub holds: usize,
    /// Number of these holds that were released and succeeded.
    pub successes: usize,
    /// Number of these holds that were released and failed.
    pub failures: usize,
    /// Run time of the failures, ms.
    pub failed_run_ms: i64,
}

/// The estimated effect of a policy, if each of its releases had the outcome of the actual release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayedPolicy {
    /// Name of the policy.
    pub policy: String,
    /// Successes among the releases of the policy.
    pub successes: SumInterval,
    /// Failed runs among the releases of the policy.
    pub failures: SumInterval,
    /// Run time of these failed runs, ms.
    pub wasted_ms: SumInterval,
    /// Number of releases by the policy without a known outcome, mostly because the hold was never
    /// released.
    pub unknown: usize,
}

/// A sum over the holds that a policy releases, and its share of the sum over all holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SumInterval {
    /// The sum.
    pub sum: i64,
    /// Share of the sum over all holds; `None` if that sum is 0.
    pub share: Option<f64>,
    /// 95 % interval of the share, by a bootstrap over clusters.
    pub interval: Option<(f64, f64)>,
}

/// Number of sums: successes, failures and wasted time.
const SUM_COUNT: usize = 3;

/// Sums over some holds: successes, failures, and run time of the failures in ms.
type HoldSums = [i64; SUM_COUNT];

/// The bootstrap's number of resamples and its seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayResampling {
    pub(super) resamples: usize,
    pub(super) seed: u64,
}

/// Adds up the totals over `holds`.
pub(super) fn count_later_holds(holds: &[PolicyHold<'_>]) -> LaterHolds {
    let mut sums = HoldSums::default();
    for hold in holds {
        add_to(&mut sums, hold_sums(hold));
    }
    let [successes, failures, failed_run_ms] = sums;
    LaterHolds {
        holds: holds.len(),
        successes: successes as usize,
        failures: failures as usize,
        failed_run_ms,
    }
}

/// Estimates the effect of `policy` on `holds`.
pub(super) fn replay(
    policy: &ReleasePolicy,
    holds: &[PolicyHold<'_>],
    resampling: ReplayResampling,
) -> ReplayedPolicy {
    // Jobs of one cluster share their fate, so the bootstrap draws whole clusters.
    let clusters: Vec<(u32, i32)> = holds.iter().map(|hold| hold.cluster).collect();
    let groups = SampleGroups::new(&clusters);
    let by_group: Vec<PolicySums> = (0..groups.count())
        .map(|group| {
            let mut sums = PolicySums::default();
            for &place in groups.samples(group) {
                sums.add_hold(policy, &holds[place]);
            }
            sums
        })
        .collect();

    let whole = PolicySums::sum_of_groups(&by_group, 0..by_group.len());
    let drawn = map_numbers(resampling.resamples, |resample| {
        let drawn = groups.draw_groups(resampling.seed, "policy", resample);
        PolicySums::sum_of_groups(&by_group, drawn)
    });

    let sum_interval = |sum: usize| SumInterval {
        sum: whole.released[sum],
        share: whole.share(sum),
        interval: percentile_interval(
            drawn.iter().filter_map(|sums| sums.share(sum)).collect(),
            resampling.resamples,
        ),
    };
    ReplayedPolicy {
        policy: policy.name(),
        successes: sum_interval(0),
        failures: sum_interval(1),
        wasted_ms: sum_interval(2),
        unknown: whole.unknown,
    }
}

/// The sums over the holds that a policy releases, and over all holds.
#[derive(Debug, Clone, Copy, Default)]
struct PolicySums {
    released: HoldSums,
    all: HoldSums,
    unknown: usize,
}

impl PolicySums {
    fn sum_of_groups(
        by_group: &[PolicySums],
        groups: impl IntoIterator<Item = usize>,
    ) -> PolicySums {
        let mut sums = PolicySums::default();
        for group in groups {
            let other = by_group[group];
            add_to(&mut sums.released, other.released);
            add_to(&mut sums.all, other.all);
            sums.unknown += other.unknown;
        }
        sums
    }

    fn add_hold(&mut self, policy: &ReleasePolicy, hold: &PolicyHold<'_>) {
        let from_hold = hold_sums(hold);
        add_to(&mut self.all, from_hold);
        if policy.releases(hold) {
            add_to(&mut self.released, from_hold);
            self.unknown += usize::from(hold.outcome.is_none());
        }
    }

    fn share(&self, sum: usize) -> Option<f64> {
        let all = self.all[sum];
        (all > 0).then(|| self.released[sum] as f64 / all as f64)
    }
}

fn hold_sums(hold: &PolicyHold<'_>) -> HoldSums {
    match hold.outcome {
        Some(outcome) if outcome.is_success => [1, 0, 0],
        Some(outcome) => [0, 1, outcome.run_ms],
        None => [0; SUM_COUNT],
    }
}

fn add_to(sums: &mut HoldSums, other: HoldSums) {
    for (sum, other) in sums.iter_mut().zip(other) {
        *sum += other;
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy_hold::tests::policy_hold;
    use super::*;

    const RESAMPLING: ReplayResampling = ReplayResampling {
        resamples: 400,
        seed: 1,
    };

    /// Creates 60 clusters. Each has a success, a failure that ran for an hour, and a job that
    /// stayed held after its third hold.
    fn later_holds() -> Vec<PolicyHold<'static>> {
        let mut holds = Vec::new();
        for cluster in 0..60 {
            holds.push(policy_hold((12, 2), cluster, 0, Some((60, true))));
            holds.push(policy_hold((13, 7), cluster, 0, Some((60, false))));
            holds.push(PolicyHold {
                hold_number: 3,
                ..policy_hold((12, 2), cluster, 0, None)
            });
        }
        holds
    }

    #[test]
    fn policies_count_the_outcomes_of_their_releases() {
        let holds = later_holds();
        let sums = |policy| {
            let replayed = replay(&policy, &holds, RESAMPLING);
            (
                replayed.successes.sum,
                replayed.failures.sum,
                replayed.wasted_ms.sum / 3_600_000,
                replayed.unknown,
            )
        };
        assert_eq!(sums(ReleasePolicy::Never), (0, 0, 0, 0));
        assert_eq!(sums(ReleasePolicy::Always), (60, 60, 60, 60));
        assert_eq!(sums(ReleasePolicy::MaxHolds(2)), (60, 60, 60, 0));
        assert_eq!(sums(ReleasePolicy::MaxHolds(4)), (60, 60, 60, 60));
        assert_eq!(
            count_later_holds(&holds),
            LaterHolds {
                holds: 180,
                successes: 60,
                failures: 60,
                failed_run_ms: 60 * 3_600_000,
            }
        );
    }

    #[test]
    fn intervals_contain_the_share_and_are_deterministic() {
        let mut holds = later_holds();
        // In half of the clusters, the success has a code that the rule does not name.
        for hold in &mut holds {
            let is_other = hold.cluster.1 % 2 == 0;
            if is_other && hold.outcome.is_some_and(|outcome| outcome.is_success) {
                hold.code = 3;
            }
        }
        let rule = super::super::ReleaseRule {
            hold_code: 12,
            hold_subcode: 2,
            owner: None,
            wait_s: 300,
            most_holds: 1,
        };
        let policy = ReleasePolicy::Rules(vec![rule]);
        let replayed = replay(&policy, &holds, RESAMPLING);
        let (low, high) = replayed.successes.interval.expect("defined");
        assert_eq!(replayed.successes.share, Some(0.5));
        assert!((0.3..0.45).contains(&low) && (0.55..0.7).contains(&high));
        assert_eq!(replayed.failures.interval, Some((0.0, 0.0)));
        assert_eq!(replay(&policy, &holds, RESAMPLING), replayed);
    }

    #[test]
    fn shares_are_none_without_holds() {
        let replayed = replay(&ReleasePolicy::Always, &[], RESAMPLING);
        assert_eq!(
            (replayed.successes.share, replayed.successes.interval),
            (None, None)
        );
    }
}
