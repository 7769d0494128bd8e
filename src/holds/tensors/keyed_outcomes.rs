//! Holds and outcomes of a whole store, by a key that some of them share: what there was of a key
//! by a moment is then a few searches by time.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::outcome_record::{DatedOutcome, KeyLists, OutcomeList};

/// What has no key, and so no record.
pub(super) const NO_KEY: u64 = 0;

/// The group of what has no key.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// Something that happened to the thing of an index.
type Happened<T> = (T, u32);

/// What happened to holds. The index says which one it was.
#[derive(Debug)]
pub(super) struct TimedOutcomes {
    /// When each was held, epoch ms.
    pub(super) held: Vec<Happened<i64>>,
    /// When each was released.
    pub(super) released: Vec<Happened<i64>>,
    /// What came of each.
    pub(super) decided: Vec<Happened<DatedOutcome>>,
}

/// A number for each key, counted from 0.
#[derive(Debug)]
pub(super) struct KeyGroups {
    groups: HashMap<u64, u32, RandomState>,
}

impl KeyGroups {
    /// The groups of `keys`, and that of each.
    pub(super) fn of_keys(keys: impl Iterator<Item = u64>) -> (KeyGroups, Vec<u32>) {
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
        (KeyGroups { groups }, group_of)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The group of `key`, if there is one.
    #[inline]
    pub(super) fn group(&self, key: u64) -> Option<u32> {
        self.groups.get(&key).copied()
    }
}

/// What happened, by group.
#[derive(Debug)]
pub(super) struct KeyedOutcomes {
    held: GroupedList<i64>,
    released: GroupedList<i64>,
    decided: GroupedList<DatedOutcome>,
    /// Beside each outcome, the successes of its group so far.
    successes: Vec<u32>,
}

impl KeyedOutcomes {
    /// Groups `timed`, whose indices are of the `groups` in `group_of`.
    pub(super) fn new(groups: usize, group_of: &[u32], timed: &TimedOutcomes) -> KeyedOutcomes {
        KeyedOutcomes {
            held: GroupedList::new(groups, group_of, &timed.held),
            released: GroupedList::new(groups, group_of, &timed.released),
            ..KeyedOutcomes::of_outcomes(groups, group_of, &timed.decided)
        }
    }

    /// The same of what has an outcome and is neither held nor released.
    pub(super) fn of_outcomes(
        groups: usize,
        group_of: &[u32],
        decided: &[Happened<DatedOutcome>],
    ) -> KeyedOutcomes {
        let decided = GroupedList::new(groups, group_of, decided);
        KeyedOutcomes {
            held: GroupedList::new(groups, group_of, &[]),
            released: GroupedList::new(groups, group_of, &[]),
            successes: successes_so_far(&decided),
            decided,
        }
    }

    /// What happened to those of `group`.
    #[inline]
    pub(super) fn lists(&self, group: Option<u32>) -> KeyLists<'_> {
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

/// Items of groups, one group after another, each in order.
#[derive(Debug)]
struct GroupedList<T> {
    /// Where each group begins, and where the last one ends.
    bounds: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Ord> GroupedList<T> {
    /// Those items of `happened` that have a group; `group_of` says the group of an index.
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
        for group in bounds.windows(2) {
            items[group[0] as usize..group[1] as usize].sort_unstable();
        }
        GroupedList { bounds, items }
    }

    #[inline]
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
        let timed = TimedOutcomes {
            held: vec![(30, 0), (10, 1), (20, 2), (5, 3)],
            released: vec![(40, 2)],
            decided: vec![
                (DatedOutcome::new(60, true), 0),
                (DatedOutcome::new(50, true), 2),
                (DatedOutcome::new(55, false), 0),
            ],
        };
        let (groups, group_of) = KeyGroups::of_keys([7, 8, 7, NO_KEY].into_iter());
        let keyed = KeyedOutcomes::new(groups.len(), &group_of, &timed);
        let lists = |key| keyed.lists(groups.group(key));

        let seven = lists(7);
        assert_eq!((seven.held, seven.released), (&[20, 30][..], &[40][..]));
        let decided_ms: Vec<i64> = (seven.decided.outcomes.iter())
            .map(|outcome| outcome.decided_ms())
            .collect();
        assert_eq!(decided_ms, [50, 55, 60]);
        assert_eq!(seven.decided.successes, [1, 1, 2]);
        assert_eq!(lists(8).held, [10]);
        assert!(lists(NO_KEY).held.is_empty() && lists(9).held.is_empty());
    }
}
