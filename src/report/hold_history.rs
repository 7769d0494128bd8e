//! Extracts the holds from the events of a log: time, hold code and the outcome of the release.

use std::collections::{BTreeMap, BTreeSet};

use poolcast_base::stats::wilson_lower;
use poolcast_config::LabelKind;
use poolcast_events::EventStore;
use poolcast_tensors::{HoldOutcome, hold_cycles};

/// A hold in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastHoldTime {
    /// The hold code and subcode.
    pub(super) code: (i32, i32),
    /// Start of the hold, epoch ms.
    pub(super) held_ms: i64,
    /// The job's access point and cluster.
    pub(super) cluster: (u32, i32),
    /// True if the job succeeded after its next release; `None` if the outcome is not known.
    pub(super) succeeded: Option<bool>,
}

/// Returns all holds of `store`.
pub(super) fn past_hold_times(store: &EventStore) -> Vec<PastHoldTime> {
    let mut holds = Vec::new();
    for job in store.jobs().iter() {
        let history = job.history;
        for cycle in hold_cycles(history, LabelKind::Next, store.gaps(job.ap)) {
            let succeeded = match cycle.outcome {
                HoldOutcome::Label(label) => Some(label),
                HoldOutcome::LeftOut(_) => None,
            };
            let code = (
                history.hold_code[cycle.hold],
                history.hold_subcode[cycle.hold],
            );
            holds.push(PastHoldTime {
                code,
                held_ms: history.time_ms[cycle.hold],
                cluster: (job.ap, job.cluster),
                succeeded,
            });
        }
    }
    holds
}

/// Returns the codes of `holds`, from most to least frequent.
pub(super) fn frequent_codes(holds: &[PastHoldTime]) -> Vec<(i32, i32)> {
    let mut counts: BTreeMap<(i32, i32), usize> = BTreeMap::new();
    for hold in holds {
        *counts.entry(hold.code).or_default() += 1;
    }
    let mut codes: Vec<((i32, i32), usize)> = counts.into_iter().collect();
    codes.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
    codes.into_iter().map(|(code, _)| code).collect()
}

/// Outcome counts of the releases of some holds.
#[derive(Debug, Clone, Default)]
pub(super) struct ReleaseShare {
    /// Number of holds.
    pub(super) holds: usize,
    /// Number of holds with a known outcome.
    pub(super) known: usize,
    /// Number of successes among the known outcomes.
    pub(super) successes: usize,
    clusters: BTreeSet<(u32, i32)>,
}

impl ReleaseShare {
    pub(super) fn add(&mut self, hold: &PastHoldTime) {
        self.holds += 1;
        if let Some(succeeded) = hold.succeeded {
            self.known += 1;
            self.successes += usize::from(succeeded);
            self.clusters.insert(hold.cluster);
        }
    }

    /// The share of successes and the ends of its 95 % interval (Wilson 1927). For the interval, a
    /// cluster counts as one release. `None` if no outcome is known.
    pub(super) fn share(&self) -> Option<(f64, f64, f64)> {
        if self.known == 0 {
            return None;
        }
        let share = self.successes as f64 / self.known as f64;
        let clusters = self.clusters.len();
        let low = wilson_lower(share, clusters);
        let high = 1.0 - wilson_lower(1.0 - share, clusters);
        Some((share, low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_counts_as_one_release() {
        let hold = |cluster, succeeded| PastHoldTime {
            code: (13, 2),
            held_ms: 0,
            cluster: (0, cluster),
            succeeded,
        };
        let mut one = ReleaseShare::default();
        let mut many = ReleaseShare::default();
        for job in 0..10 {
            one.add(&hold(1, Some(true)));
            many.add(&hold(job, Some(true)));
        }
        let low = |share: &ReleaseShare| share.share().expect("known").1;
        assert!(low(&one) < 0.3 && low(&many) > 0.7);

        let mut unknown = ReleaseShare::default();
        unknown.add(&hold(1, None));
        assert!(unknown.share().is_none());
        let codes = frequent_codes(&[hold(1, None)]);
        assert_eq!(codes, [(13, 2)]);
    }
}
