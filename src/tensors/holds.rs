//! Event store → holds by code: what became of each kind.

use std::collections::{BTreeMap, BTreeSet};

use super::cycles::{LeftOut, Outcome, cycles};
use crate::config::Label;
use crate::events::Store;

/// What became of the holds of one code and subcode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HoldCount {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// How many holds.
    pub holds: usize,
    /// Of how many jobs.
    pub jobs: usize,
    /// How many were followed by a release.
    pub released: usize,
    /// After how many the job succeeded next.
    pub succeeded: usize,
}

/// The holds of every code, most frequent first.
pub fn hold_counts(store: &Store) -> Vec<HoldCount> {
    let mut kinds: BTreeMap<(i32, i32), HoldCount> = BTreeMap::new();
    for job in store.iter() {
        let mut own = BTreeSet::new();
        for cycle in cycles(job.history, Label::Next, store.gaps(job.ap)) {
            let (hold_code, hold_subcode) = (job.history.hold_code[cycle.hold], job.history.hold_subcode[cycle.hold]);
            let count = kinds.entry((hold_code, hold_subcode)).or_default();
            (count.hold_code, count.hold_subcode) = (hold_code, hold_subcode);
            count.holds += 1;
            count.jobs += usize::from(own.insert((hold_code, hold_subcode)));
            count.succeeded += usize::from(cycle.outcome == Outcome::Label(true));
            let unreleased = [LeftOut::StillHeld, LeftOut::RemovedWhileHeld, LeftOut::NoReleaseSeen];
            count.released += usize::from(!unreleased.map(Outcome::LeftOut).contains(&cycle.outcome));
        }
    }
    let mut counts: Vec<HoldCount> = kinds.into_values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.holds));
    counts
}
