//! Tracks the trials that may still be among the best, and whose files are therefore kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use poolcast_config::Goal;

/// A group of trials that are compared with each other: all networks, or the pipelines of one
/// split.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ComparisonGroup {
    pub(crate) is_fit: bool,
    pub(crate) split: Option<String>,
}

/// The largest number of trials on a split whose predictions are kept. With more trials, the score
/// of the best one is not corrected for the luck of the choice.
pub(crate) const MAX_COMPARED_TRIALS: usize = 1000;

/// The best of the added trials. A trial that is not among the best of a subset is not among the
/// best of all trials.
#[derive(Debug)]
pub(crate) struct KeptTrials {
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
    /// Keeps the best `keep` trials of each group.
    pub(crate) fn new(goal: Goal, keep: usize) -> KeptTrials {
        KeptTrials {
            goal,
            keep,
            best: BTreeMap::new(),
        }
    }

    /// Returns true if `trial` may be among the best of its group.
    pub(crate) fn may_be_best(
        &self,
        group: &ComparisonGroup,
        rank: (f64, f64),
        trial: usize,
    ) -> bool {
        let known = self.best.get(group).map_or(&[][..], Vec::as_slice);
        self.insertion_index(known, Candidate { rank, trial }) < self.keep
    }

    /// Adds an ended trial. Returns the trial that is then no longer among the best: this one or
    /// another.
    pub(crate) fn add(
        &mut self,
        group: ComparisonGroup,
        rank: (f64, f64),
        trial: usize,
    ) -> Option<usize> {
        let mut best = self.best.remove(&group).unwrap_or_default();
        let candidate = Candidate { rank, trial };
        if best.iter().all(|known| known.trial != trial) {
            best.insert(self.insertion_index(&best, candidate), candidate);
        }
        let worst = if best.len() > self.keep {
            best.pop()
        } else {
            None
        };
        self.best.insert(group, best);
        worst.map(|worst| worst.trial)
    }

    /// The index of `candidate` among `known`. Of equal trials the earlier one is better.
    fn insertion_index(&self, known: &[Candidate], candidate: Candidate) -> usize {
        known.partition_point(|other| self.compare(other, &candidate) == Ordering::Less)
    }

    fn compare(&self, a: &Candidate, b: &Candidate) -> Ordering {
        self.goal.order(a.rank, b.rank).then(a.trial.cmp(&b.trial))
    }

    /// The trials that are among the best.
    pub(crate) fn trials(&self) -> impl Iterator<Item = usize> {
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
        /// Several workers see different trials, in any order. Together they keep the best of all.
        #[test]
        fn workers_together_keep_the_files_of_the_best_trials(
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
