//! Counts the holds of an event store and their outcomes, by hold code.

use std::collections::{BTreeMap, BTreeSet};

use super::hold_cycles::{ExclusionReason, HoldOutcome, hold_cycles};
use htcondor_eventlog::ReasonKind;
use poolcast_config::LabelKind;
use poolcast_events::EventStore;

/// Holds of one code and subcode, and their outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HoldCount {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// Number of holds.
    pub holds: usize,
    /// Number of held jobs.
    pub jobs: usize,
    /// Holds followed by a release in the log.
    pub released: usize,
    /// Released holds with a known outcome.
    pub known: usize,
    /// Released holds after which the job succeeded next.
    pub succeeded: usize,
    /// What most of the hold reasons state; `None` if none was understood.
    pub stated: Option<ReasonKind>,
}

/// Counts the holds of every code; returns the most frequent first.
pub fn hold_counts(store: &EventStore) -> Vec<HoldCount> {
    let mut kinds: BTreeMap<(i32, i32), HoldCount> = BTreeMap::new();
    let mut reasons: BTreeMap<(i32, i32), BTreeMap<u32, usize>> = BTreeMap::new();

    for job in store.jobs().iter() {
        let mut kinds_of_job = BTreeSet::new();
        for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
            let hold = job.event(cycle.hold);
            let kind = (hold.hold_code, hold.hold_subcode);
            let stated = job.hold_facts(cycle.hold).kind.packed_fault();
            if stated != 0 {
                *reasons.entry(kind).or_default().entry(stated).or_default() += 1;
            }

            let count = kinds.entry(kind).or_default();
            (count.hold_code, count.hold_subcode) = kind;
            count.holds += 1;
            count.jobs += usize::from(kinds_of_job.insert(kind));

            let is_known = matches!(cycle.outcome, HoldOutcome::Label(_));
            let after_release = [
                ExclusionReason::RemovedAfterRelease,
                ExclusionReason::LogEnds,
            ]
            .map(HoldOutcome::LeftOut);
            count.released += usize::from(is_known || after_release.contains(&cycle.outcome));
            count.known += usize::from(is_known);
            count.succeeded += usize::from(cycle.outcome == HoldOutcome::Label(true));
        }
    }

    for (kind, count) in &mut kinds {
        let most = reasons
            .get(kind)
            .and_then(|of_kind| of_kind.iter().max_by_key(|(_, n)| **n));
        count.stated = most.map(|(stated, _)| ReasonKind::from_packed(*stated));
    }

    let mut counts: Vec<HoldCount> = kinds.into_values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.holds));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::JobEvent;

    #[test]
    fn unknown_outcomes_count_as_neither() {
        let event = |cluster, s: i64, number, hold_code| JobEvent {
            cluster,
            time_ms: s * 1000,
            number,
            normal: 1,
            hold_code,
            ..JobEvent::default()
        };
        // Job 1 succeeded. Job 2 was held again and stays held. Job 3 is released when the log
        // ends. Job 4 has another code.
        let events = [
            (1, 0, 12, 3),
            (1, 1, 13, 0),
            (1, 2, 5, 0),
            (2, 0, 12, 3),
            (2, 1, 13, 0),
            (2, 2, 12, 3),
        ];
        let events = [&events[..], &[(3, 0, 12, 3), (3, 1, 13, 0), (4, 0, 12, 9)]].concat();
        let events: Vec<JobEvent> = events
            .into_iter()
            .map(|(a, b, c, d)| event(a, b, c, d))
            .collect();
        let counts = hold_counts(&test_stores::store_of(&events));
        let expected = HoldCount {
            hold_code: 3,
            hold_subcode: 0,
            holds: 4,
            jobs: 3,
            released: 3,
            known: 2,
            succeeded: 1,
            stated: None,
        };
        assert_eq!(counts[0], expected);
        assert_eq!(
            (counts[1].hold_code, counts[1].holds, counts[1].released),
            (9, 1, 0)
        );
    }
}
