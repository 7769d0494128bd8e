//! Holds and outcomes of a whole store, by a key that some of them share: what there was of a key
//! by a moment is then a few searches by time.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::outcome_record::{DatedOutcome, OutcomeList};

/// What has no key, and so no record.
pub(super) const NO_KEY: u64 = 0;

/// The group of what has no key.
const NO_GROUP: u32 = u32::MAX;

/// Something that happened to the thing of an index, in an order that is that of time first.
type Happened<T> = (T, u32);

/// What happened to holds, or to first runs, in order of time. The index says which one it was.
#[derive(Debug, Default)]
pub(super) struct TimedOutcomes {
    /// When each was held, epoch ms.
    pub(super) held: Vec<Happened<i64>>,
    /// When each was released.
    pub(super) released: Vec<Happened<i64>>,
    /// What came of each.
    pub(super) decided: Vec<Happened<DatedOutcome>>,
}

impl TimedOutcomes {
    pub(super) fn sort(&mut self) {
        self.held.par_sort_unstable();
        self.released.par_sort_unstable();
        self.decided.par_sort_unstable();
    }
}

/// What happened, by key.
#[derive(Debug)]
pub(super) struct KeyedOutcomes {
    /// The group of each key.
    groups: HashMap<u64, u32, RandomState>,
    held: GroupedList<i64>,
    released: GroupedList<i64>,
    decided: GroupedList<DatedOutcome>,
    /// Beside each outcome, the successes of its key so far.
    successes: Vec<u32>,
}

/// What happened to those of one key, in order of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyLists<'a> {
    pub(super) held: &'a [i64],
    pub(super) released: &'a [i64],
    pub(super) decided: OutcomeList<'a>,
}

impl KeyedOutcomes {
    /// Groups `timed` by `keys`, one for each index.
    pub(super) fn new(keys: impl Iterator<Item = u64>, timed: &TimedOutcomes) -> KeyedOutcomes {
        let mut groups: HashMap<u64, u32, RandomState> = HashMap::default();
        let mut group_of: Vec<u32> = Vec::with_capacity(keys.size_hint().0);
        let mut last = (NO_KEY, NO_GROUP);
        for key in keys {
            // Neighbours often have the same key, which is then not looked up again.
            if key != last.0 {
                let next = groups.len() as u32;
                let group = if key == NO_KEY {
                    NO_GROUP
                } else {
                    *groups.entry(key).or_insert(next)
                };
                last = (key, group);
            }
            group_of.push(last.1);
        }

        let decided = GroupedList::new(groups.len(), &group_of, &timed.decided);
        KeyedOutcomes {
            held: GroupedList::new(groups.len(), &group_of, &timed.held),
            released: GroupedList::new(groups.len(), &group_of, &timed.released),
            successes: successes_so_far(&decided),
            decided,
            groups,
        }
    }

    /// What happened to those of `key`.
    pub(super) fn lists(&self, key: u64) -> KeyLists<'_> {
        let group = self.groups.get(&key).copied();
        let decided = self.decided.range(group);
        KeyLists {
            held: &self.held.items[self.held.range(group)],
            released: &self.released.items[self.released.range(group)],
            decided: OutcomeList {
                outcomes: &self.decided.items[decided.clone()],
                successes: &self.successes[decided],
            },
        }
    }
}

fn successes_so_far(decided: &GroupedList<DatedOutcome>) -> Vec<u32> {
    let mut all = Vec::with_capacity(decided.items.len());
    for bounds in decided.bounds.windows(2) {
        let mut successes = 0;
        for outcome in &decided.items[bounds[0] as usize..bounds[1] as usize] {
            successes += u32::from(outcome.is_success());
            all.push(successes);
        }
    }
    all
}

/// Items of groups, one group after another.
#[derive(Debug)]
struct GroupedList<T> {
    /// Where each group begins, and where the last one ends.
    bounds: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> GroupedList<T> {
    /// Those items of `happened` that have a group, in their order within each; `group_of` says
    /// the group of an index.
    fn new(groups: usize, group_of: &[u32], happened: &[Happened<T>]) -> GroupedList<T> {
        let mut bounds = vec![0u32; groups + 1];
        for &(_, index) in happened {
            let group = group_of[index as usize];
            if group != NO_GROUP {
                bounds[group as usize + 1] += 1;
            }
        }
        for group in 0..groups {
            bounds[group + 1] += bounds[group];
        }

        let mut next = bounds.clone();
        let total = bounds[groups] as usize;
        let mut items = happened
            .first()
            .map_or(Vec::new(), |&(item, _)| vec![item; total]);
        for &(item, index) in happened {
            let group = group_of[index as usize];
            if group != NO_GROUP {
                items[next[group as usize] as usize] = item;
                next[group as usize] += 1;
            }
        }
        GroupedList { bounds, items }
    }

    fn range(&self, group: Option<u32>) -> std::ops::Range<usize> {
        match group {
            Some(group) => {
                let group = group as usize;
                self.bounds[group] as usize..self.bounds[group + 1] as usize
            }
            None => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_in_order_of_time() {
        let mut timed = TimedOutcomes {
            held: vec![(30, 0), (10, 1), (20, 2), (5, 3)],
            released: vec![(40, 2)],
            decided: vec![
                (DatedOutcome::new(60, true), 0),
                (DatedOutcome::new(50, true), 2),
                (DatedOutcome::new(55, false), 0),
            ],
        };
        timed.sort();
        let keyed = KeyedOutcomes::new([7, 8, 7, NO_KEY].into_iter(), &timed);

        let seven = keyed.lists(7);
        assert_eq!((seven.held, seven.released), (&[20, 30][..], &[40][..]));
        let decided_ms: Vec<i64> = (seven.decided.outcomes.iter())
            .map(|outcome| outcome.decided_ms())
            .collect();
        assert_eq!(decided_ms, [50, 55, 60]);
        assert_eq!(seven.decided.successes, [1, 1, 2]);
        assert_eq!(keyed.lists(8).held, [10]);
        assert!(keyed.lists(NO_KEY).held.is_empty() && keyed.lists(9).held.is_empty());
    }
}
