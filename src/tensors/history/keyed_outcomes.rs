//! Events and outcomes of all holds, grouped by key and sorted by time. A few binary searches find
//! what was known about a key at prediction time.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::outcome_record::{DatedOutcome, KeyLists, OutcomeList};

/// The key of a hold or run that belongs to no record.
pub const NO_KEY: u64 = 0;

/// The group of a hold or run without a key.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// A time or an outcome, and the index of the hold or run that it belongs to.
type IndexedItem<T> = (T, u32);

/// The events of holds, with the index of each hold.
#[derive(Debug)]
pub(crate) struct TimedOutcomes {
    /// Times of the holds, in epoch ms.
    pub(crate) held: Vec<IndexedItem<i64>>,
    /// Times of the releases, in epoch ms.
    pub(crate) released: Vec<IndexedItem<i64>>,
    /// Outcomes.
    pub(crate) decided: Vec<IndexedItem<DatedOutcome>>,
}

/// Numbers the distinct keys from 0.
#[derive(Debug)]
pub struct KeyGroups {
    groups: HashMap<u64, u32, RandomState>,
}

impl KeyGroups {
    /// Returns the groups of `keys`, and the group of each key.
    pub fn from_keys(keys: impl Iterator<Item = u64>) -> (KeyGroups, Vec<u32>) {
        let mut groups: HashMap<u64, u32, RandomState> = HashMap::default();
        let mut group_of: Vec<u32> = Vec::with_capacity(keys.size_hint().0);
        let mut last = (NO_KEY, NO_GROUP);
        for key in keys {
            // Neighbors often have the same key, which then needs no second lookup.
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

    /// The number of groups.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the group of `key`, if there is one.
    #[inline]
    pub fn group(&self, key: u64) -> Option<u32> {
        self.groups.get(&key).copied()
    }
}

/// Events and outcomes by group.
#[derive(Debug)]
pub(crate) struct KeyedOutcomes {
    held: GroupedList<i64>,
    released: GroupedList<i64>,
    decided: GroupedList<DatedOutcome>,
    /// For each outcome, the number of successes in its group so far.
    successes: Vec<u32>,
}

impl KeyedOutcomes {
    /// Groups `timed`. `group_of` maps its indices to one of `groups` groups.
    pub(crate) fn new(groups: usize, group_of: &[u32], timed: &TimedOutcomes) -> KeyedOutcomes {
        KeyedOutcomes {
            held: GroupedList::new(groups, group_of, &timed.held),
            released: GroupedList::new(groups, group_of, &timed.released),
            ..KeyedOutcomes::from_keyed_outcomes(groups, group_of, &timed.decided)
        }
    }

    /// Groups outcomes of runs, which have no holds and no releases.
    pub(crate) fn from_keyed_outcomes(
        groups: usize,
        group_of: &[u32],
        decided: &[IndexedItem<DatedOutcome>],
    ) -> KeyedOutcomes {
        let decided = GroupedList::new(groups, group_of, decided);
        KeyedOutcomes {
            held: GroupedList::new(groups, group_of, &[]),
            released: GroupedList::new(groups, group_of, &[]),
            successes: successes_so_far(&decided),
            decided,
        }
    }

    /// Returns the events and outcomes of `group`; empty lists for `None`.
    #[inline]
    pub(crate) fn lists(&self, group: Option<u32>) -> KeyLists<'_> {
        let decided = self.decided.range(group);
        KeyLists {
            held: self.held.of(group),
            released: self.released.of(group),
            decided: OutcomeList {
                outcomes: &self.decided.items[decided.clone()],
                successes: &self.successes[decided],
            },
        }
    }
}

/// The release of a hold after which the job got past the point of the hold. Sorts by the time at
/// which that was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PassedRelease {
    /// Time at which the job got past, in epoch ms.
    pub(crate) known_ms: i64,
    /// Time of the release, in epoch ms.
    pub(crate) released_ms: i64,
}

/// Passed releases by group. Each has the latest release among the earlier ones of its group.
#[derive(Debug)]
pub(crate) struct LatestReleases(GroupedList<PassedRelease>);

impl LatestReleases {
    /// Groups `releases`. `group_of` maps their indices to one of `groups` groups.
    pub(crate) fn new(
        groups: usize,
        group_of: &[u32],
        releases: &[IndexedItem<PassedRelease>],
    ) -> LatestReleases {
        let mut list = GroupedList::new(groups, group_of, releases);
        for group in list.bounds.windows(2) {
            let mut latest_ms = i64::MIN;
            for release in &mut list.items[group[0] as usize..group[1] as usize] {
                latest_ms = latest_ms.max(release.released_ms);
                release.released_ms = latest_ms;
            }
        }
        LatestReleases(list)
    }

    /// Returns the time of the latest release in `group` that is known by `asked_ms` to have passed.
    pub(crate) fn latest_ms(&self, group: Option<u32>, asked_ms: i64) -> Option<i64> {
        let releases = self.0.of(group);
        let known = releases.partition_point(|release| release.known_ms <= asked_ms);
        let last = releases[..known].last()?;
        Some(last.released_ms)
    }
}

/// Returns, for each outcome of all groups, the number of successes in its group so far.
pub fn successes_so_far(decided: &GroupedList<DatedOutcome>) -> Vec<u32> {
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

/// Items by group, sorted within each group.
#[derive(Debug)]
pub struct GroupedList<T> {
    /// The index of the first item of each group, and the end of the last group.
    bounds: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Ord> GroupedList<T> {
    /// Groups the items of `happened` that have a group. `group_of` maps an index to its group.
    pub fn new(groups: usize, group_of: &[u32], happened: &[IndexedItem<T>]) -> GroupedList<T> {
        // Counting sort by group: count the items of each group, then sum the counts to bounds.
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
        // Items arrive sorted by job, so each group must still be sorted by time.
        for group in bounds.windows(2) {
            items[group[0] as usize..group[1] as usize].sort_unstable();
        }
        GroupedList { bounds, items }
    }

    /// Returns the items of `group`, sorted; none for `None`.
    #[inline]
    pub fn of(&self, group: Option<u32>) -> &[T] {
        &self.items[self.range(group)]
    }

    /// Returns the range of `group` in the items of all groups; empty for `None`.
    #[inline]
    pub fn range(&self, group: Option<u32>) -> std::ops::Range<usize> {
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
    fn lists_contain_one_key_sorted_by_time() {
        let timed = TimedOutcomes {
            held: vec![(30, 0), (10, 1), (20, 2), (5, 3)],
            released: vec![(40, 2)],
            decided: vec![
                (DatedOutcome::new(60, true), 0),
                (DatedOutcome::new(50, true), 2),
                (DatedOutcome::new(55, false), 0),
            ],
        };
        let (groups, group_of) = KeyGroups::from_keys([7, 8, 7, NO_KEY].into_iter());
        let keyed = KeyedOutcomes::new(groups.count(), &group_of, &timed);
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

    #[test]
    fn latest_release_counts_once_it_has_passed() {
        let passed = |released_ms, known_ms| PassedRelease {
            known_ms,
            released_ms,
        };
        let releases = [(passed(30, 40), 0), (passed(10, 90), 2), (passed(5, 6), 1)];
        let (groups, group_of) = KeyGroups::from_keys([7, 8, 7].into_iter());
        let latest = LatestReleases::new(groups.count(), &group_of, &releases);
        let of = |key, asked_ms| latest.latest_ms(groups.group(key), asked_ms);
        assert_eq!(
            (of(7, 39), of(7, 40), of(7, 99)),
            (None, Some(30), Some(30))
        );
        assert_eq!((of(8, 99), of(9, 99)), (Some(5), None));
    }
}
