//! What came of trials so far → which of them may still be among the best, whose files are kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use poolcast_config::Goal;

/// What is compared: networks with networks, and the pipelines of a split with each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ComparisonGroup {
    pub(super) is_fit: bool,
    pub(super) split: Option<String>,
}

/// The largest number of trials on a split whose predictions are kept. With more trials, the score
/// of the best one without luck is not estimated.
pub(super) const MOST_COMPARED: usize = 1000;

/// The best trials among those that were added. A trial that is not among the best of some is not
/// among the best of all.
#[derive(Debug)]
pub(super) struct KeptTrials {
    goal: Goal,
    keep: usize,
    best: BTreeMap<ComparisonGroup, Vec<Candidate>>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    rank: (f64, f64),
    trial: usize,
}

impl KeptTrials {
    /// Those of the best `keep` of each group stay.
    pub(super) fn new(goal: Goal, keep: usize) -> KeptTrials {
        KeptTrials {
            goal,
            keep,
            best: BTreeMap::new(),
        }
    }

    /// Whether `trial` may be among the best of its group.
    pub(super) fn may_be_best(
        &self,
        group: &ComparisonGroup,
        rank: (f64, f64),
        trial: usize,
    ) -> bool {
        let known = self.best.get(group).map_or(&[][..], Vec::as_slice);
        self.rank_place(known, Candidate { rank, trial }) < self.keep
    }

    /// Adds a trial that has ended. Returns the trial, this or another, that is not among the best
    /// after that.
    pub(super) fn add(
        &mut self,
        group: ComparisonGroup,
        rank: (f64, f64),
        trial: usize,
    ) -> Option<usize> {
        let mut best = self.best.remove(&group).unwrap_or_default();
        let candidate = Candidate { rank, trial };
        if best.iter().all(|known| known.trial != trial) {
            best.insert(self.rank_place(&best, candidate), candidate);
        }
        let worst = if best.len() > self.keep {
            best.pop()
        } else {
            None
        };
        self.best.insert(group, best);
        worst.map(|worst| worst.trial)
    }

    /// Of equals the earlier trial is the better one.
    fn rank_place(&self, known: &[Candidate], candidate: Candidate) -> usize {
        known.partition_point(|other| self.compare(other, &candidate) == Ordering::Less)
    }

    fn compare(&self, a: &Candidate, b: &Candidate) -> Ordering {
        self.goal.order(a.rank, b.rank).then(a.trial.cmp(&b.trial))
    }

    /// The trials that are among the best.
    pub(super) fn trials(&self) -> impl Iterator<Item = usize> {
        self.best
            .values()
            .flatten()
            .map(|candidate| candidate.trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Several workers hear of different trials, in any order: together they keep the best of
        /// all.
        #[test]
        fn no_trial_that_may_be_needed_is_dropped(
            values in prop::collection::vec((0..6_u8, 0..4_usize, any::<bool>()), 1..40),
            keep in 1..5_usize,
        ) {
            let group = |is_fit: bool| ComparisonGroup {
                is_fit,
                split: None,
            };
            let mut workers: Vec<KeptTrials> = (0..4).map(|_| KeptTrials::new(Goal::Maximize, keep)).collect();
            let mut all: Vec<(bool, u8, usize)> = Vec::new();
            let mut files = std::collections::BTreeSet::new();
            for (trial, (value, worker, is_fit)) in values.into_iter().enumerate() {
                let (rank, worker) = ((f64::from(value), 0.0), &mut workers[worker]);
                let may_be_best = worker.may_be_best(&group(is_fit), rank, trial);
                if may_be_best {
                    files.insert(trial);
                }
                let dropped = worker.add(group(is_fit), rank, trial);
                prop_assert_eq!(may_be_best, dropped != Some(trial));
                dropped.map(|trial| files.remove(&trial));
                all.push((is_fit, value, trial));
            }
            for is_fit in [false, true] {
                let mut of_kind: Vec<_> = all.iter().filter(|(kind, ..)| *kind == is_fit).collect();
                of_kind.sort_by_key(|(_, value, trial)| (u8::MAX - value, *trial));
                prop_assert!(of_kind.iter().take(keep).all(|(.., trial)| files.contains(trial)));
            }
            let most = 2 * workers.len() * keep;
            prop_assert!(files.len() <= most && workers.iter().map(|kept| kept.trials().count()).sum::<usize>() == files.len());
        }
    }
}
