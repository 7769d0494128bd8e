//! The holds because input files did not arrive, of one directory or server, in order of time. Each
//! question about a time window takes little time, however many jobs an outage holds at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use super::cluster_runs::ClusterKey;

/// Number of different clusters, owners or files from which on more of them make no difference.
pub(super) const MANY: usize = 3;

/// A hold because an input file did not arrive. Sorts by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FailedRead {
    pub(super) hold_ms: i64,
    pub(super) cluster: ClusterKey,
    /// 0 in a log that does not name owners, as HTCondor writes it by default.
    pub(super) owner: u64,
    pub(super) file: u64,
    /// True if the server said that it fails.
    pub(super) is_of_server: bool,
}

/// The numbers of different clusters, owners and files in a time window, each at most [`MANY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailedCounts {
    pub(super) clusters: usize,
    /// Known owners.
    pub(super) owners: usize,
    pub(super) files: usize,
}

/// Failed reads, sorted.
#[derive(Debug, Default)]
pub(super) struct FailedReads {
    sorted: Vec<FailedRead>,
    clusters: FirstOfEach,
    owners: FirstOfEach,
    files: FirstOfEach,
    of_cluster: Positions<ClusterKey>,
    of_file: Positions<u64>,
    of_both: Positions<(ClusterKey, u64)>,
}

impl FailedReads {
    /// Indexes reads that are sorted by time.
    pub(super) fn from_sorted(sorted: Vec<FailedRead>) -> FailedReads {
        let owner = |read: &FailedRead| (read.owner != 0).then_some(read.owner);
        FailedReads {
            clusters: FirstOfEach::new(&sorted, |read| Some(read.cluster)),
            owners: FirstOfEach::new(&sorted, owner),
            files: FirstOfEach::new(&sorted, |read| Some(read.file)),
            of_cluster: Positions::new(&sorted, |read| read.cluster),
            of_file: Positions::new(&sorted, |read| read.file),
            of_both: Positions::new(&sorted, |read| (read.cluster, read.file)),
            sorted,
        }
    }

    /// Returns the numbers of different clusters, owners and files between two times.
    pub(super) fn counts_between(&self, from_ms: i64, until_ms: i64) -> FailedCounts {
        let window = self.window(from_ms, until_ms);
        FailedCounts {
            clusters: self.clusters.count(&window),
            owners: self.owners.count(&window),
            files: self.files.count(&window),
        }
    }

    /// Returns true if a read between two times failed for another cluster and another file than the first
    /// one between them.
    pub(super) fn has_other_between(&self, from_ms: i64, until_ms: i64) -> bool {
        let window = self.window(from_ms, until_ms);
        let Some(first) = self.sorted[window.clone()].first() else {
            return false;
        };
        let alike = self.of_cluster.count(first.cluster, &window)
            + self.of_file.count(first.file, &window)
            - self.of_both.count((first.cluster, first.file), &window);
        alike < window.len()
    }

    /// Returns the positions of the reads between two times.
    fn window(&self, from_ms: i64, until_ms: i64) -> Range<usize> {
        let begin = self.sorted.partition_point(|read| read.hold_ms < from_ms);
        let count = self.sorted[begin..].partition_point(|read| read.hold_ms <= until_ms);
        begin..begin + count
    }
}

/// For each position in a list, the first positions from there on of up to [`MANY`] different
/// values; `usize::MAX` if there are fewer. `[n]`.
#[derive(Debug, Default)]
struct FirstOfEach(Vec<[usize; MANY]>);

impl FirstOfEach {
    /// Indexes the values of `reads`, without those that are not known.
    fn new<T: PartialEq>(
        reads: &[FailedRead],
        value: impl Fn(&FailedRead) -> Option<T>,
    ) -> FirstOfEach {
        let mut firsts = vec![[usize::MAX; MANY]; reads.len()];
        let mut ahead = [usize::MAX; MANY];
        for at in (0..reads.len()).rev() {
            let own = value(&reads[at]);
            if own.is_some() {
                let is_other =
                    |&&first: &&usize| reads.get(first).is_some_and(|read| value(read) != own);
                let mut others = ahead.iter().filter(is_other).copied();
                let mut next = || others.next().unwrap_or(usize::MAX);
                ahead = std::array::from_fn(|rank| if rank == 0 { at } else { next() });
            }
            firsts[at] = ahead;
        }
        FirstOfEach(firsts)
    }

    /// Returns the number of different values in `window`, at most [`MANY`].
    fn count(&self, window: &Range<usize>) -> usize {
        let firsts = self.0.get(window.start).into_iter().flatten();
        firsts.filter(|&&first| first < window.end).count()
    }
}

/// The positions of each value in a list, rising.
#[derive(Debug)]
struct Positions<K>(HashMap<K, Vec<usize>>);

impl<K> Default for Positions<K> {
    fn default() -> Positions<K> {
        Positions(HashMap::new())
    }
}

impl<K: Hash + Eq> Positions<K> {
    fn new(reads: &[FailedRead], key: impl Fn(&FailedRead) -> K) -> Positions<K> {
        let mut positions: HashMap<K, Vec<usize>> = HashMap::new();
        for (at, read) in reads.iter().enumerate() {
            positions.entry(key(read)).or_default().push(at);
        }
        Positions(positions)
    }

    /// Returns the number of positions of `key` in `window`.
    fn count(&self, key: K, window: &Range<usize>) -> usize {
        let positions = self.0.get(&key).map_or(&[][..], Vec::as_slice);
        let before = |end: usize| positions.partition_point(|&at| at < end);
        before(window.end) - before(window.start)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    /// Returns the number of different values, up to [`MANY`].
    fn different<T: Hash + Eq>(values: impl Iterator<Item = T>) -> usize {
        values.collect::<HashSet<T>>().len().min(MANY)
    }

    proptest! {
        #[test]
        fn windows_are_counted_as_by_a_scan(
            reads in proptest::collection::vec((0..20i64, 0..5i32, 0..4u64, 0..4u64), 0..40),
            from_ms in -1..21i64,
            length_ms in -2..22i64,
        ) {
            let read = |(hold_ms, cluster, owner, file)| FailedRead {
                hold_ms,
                cluster: (0, cluster),
                owner,
                file,
                is_of_server: false,
            };
            let mut sorted: Vec<FailedRead> = reads.into_iter().map(read).collect();
            sorted.sort_unstable();
            let until_ms = from_ms + length_ms;
            let is_within = |read: &&FailedRead| (from_ms..=until_ms).contains(&read.hold_ms);
            let within: Vec<FailedRead> = sorted.iter().filter(is_within).copied().collect();
            let found = FailedReads::from_sorted(sorted.clone());

            let expected = FailedCounts {
                clusters: different(within.iter().map(|read| read.cluster)),
                owners: different(within.iter().map(|read| read.owner).filter(|owner| *owner != 0)),
                files: different(within.iter().map(|read| read.file)),
            };
            prop_assert_eq!(found.counts_between(from_ms, until_ms), expected);

            let has_other = within.first().is_some_and(|first| {
                let is_other =
                    |read: &FailedRead| read.cluster != first.cluster && read.file != first.file;
                within.iter().any(is_other)
            });
            prop_assert_eq!(found.has_other_between(from_ms, until_ms), has_other);
        }
    }
}
