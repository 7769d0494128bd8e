//! Asynchronous successive halving (Li et al. 2020): decides from the values at each rung which
//! trials continue at the next rung. A trial at a rung is a work item of its own: training from the
//! previous rung to the rung's epochs.

use std::collections::BTreeSet;

use poolcast_config::Goal;

/// A work item: one trial up to one rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RungItem {
    /// Number of the trial, counted from 1.
    pub trial: usize,
    /// Index of the rung, counted from 0.
    pub rung: usize,
}

/// Result of a finished work item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RungResult {
    /// Finished work item.
    pub item: RungItem,
    /// Best value of the trial within the epochs of the rung; `None` if it failed.
    pub value: Option<f64>,
}

/// Returns the items to work on next, the highest rung first. At each of `rungs` rungs but the last,
/// the best `1 / eta` of the trials that are `done` with the rung continue at the next one, unless
/// that item is in `begun`. Equal values keep the order of `done`.
///
/// A promotion is final: a trial stays promoted when later results are better.
pub fn promoted_items(
    rungs: usize,
    eta: f64,
    goal: Goal,
    done: &[RungResult],
    begun: &BTreeSet<RungItem>,
) -> Vec<RungItem> {
    let mut promoted = Vec::new();

    for rung in (0..rungs.saturating_sub(1)).rev() {
        let results: Vec<&RungResult> = done.iter().filter(|one| one.item.rung == rung).collect();

        // A failed trial is never promoted, but it counts as one of the results.
        let mut ranked: Vec<(f64, usize)> = results
            .iter()
            .filter_map(|one| Some((one.value?, one.item.trial)))
            .collect();
        ranked.sort_by(|(a, _), (b, _)| goal.loss(*a).total_cmp(&goal.loss(*b)));
        ranked.truncate((results.len() as f64 / eta) as usize);

        for (_, trial) in ranked {
            let rung = rung + 1;
            promoted.push(RungItem { trial, rung });
        }
    }
    promoted.retain(|item| !begun.contains(item));
    promoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn done(trial: usize, rung: usize, value: f64) -> RungResult {
        RungResult {
            item: RungItem { trial, rung },
            value: Some(value).filter(|value| value.is_finite()),
        }
    }

    #[test]
    fn best_share_is_promoted() {
        let promoted_items = |done: &[RungResult], begun: &[RungItem]| -> Vec<(usize, usize)> {
            let items = promoted_items(
                3,
                3.0,
                Goal::Minimize,
                done,
                &begun.iter().copied().collect(),
            );
            items
                .into_iter()
                .map(|item| (item.trial, item.rung))
                .collect()
        };
        let first = [done(1, 0, 0.5), done(2, 0, 0.4), done(3, 0, 0.3)];
        assert_eq!(promoted_items(&first[..2], &[]), []);
        assert_eq!(promoted_items(&first, &[]), [(3, 1)]);
        assert_eq!(
            promoted_items(&first, &[RungItem { trial: 3, rung: 1 }]),
            [],
            "it is begun"
        );
        let more = [
            &first[..],
            &[done(4, 0, 0.1), done(5, 0, f64::NAN), done(6, 0, 0.4)],
        ]
        .concat();
        assert_eq!(promoted_items(&more, &[]), [(4, 1), (3, 1)]);
        let second = [
            done(3, 1, 0.2),
            done(4, 1, 0.25),
            done(6, 1, 0.2),
            done(9, 2, 0.1),
        ];
        assert_eq!(
            promoted_items(&second, &[]),
            [(3, 2)],
            "the earlier of equals, and nothing beyond the last rung"
        );
        let up = super::promoted_items(2, 3.0, Goal::Maximize, &first, &BTreeSet::new());
        assert_eq!(up, [RungItem { trial: 1, rung: 1 }]);
    }

    proptest! {
        /// For any order of the results, the trials that are best at the first rung in the end are
        /// promoted, and failed trials are not.
        #[test]
        fn the_best_are_promoted_in_any_order(values in prop::collection::vec(0..1000u32, 1..40), by in any::<prop::sample::Index>()) {
            let turn = by.index(values.len());
            let all: Vec<RungResult> = (0..values.len()).map(|at| {
                let trial = (at + turn) % values.len();
                done(trial + 1, 0, if values[trial] == 0 { f64::NAN } else { f64::from(values[trial]) })
            }).collect();
            let mut begun = BTreeSet::new();
            for seen in 1..=all.len() {
                begun.extend(promoted_items(2, 3.0, Goal::Minimize, &all[..seen], &begun));
            }
            for item in promoted_items(2, 3.0, Goal::Minimize, &all, &BTreeSet::new()) {
                prop_assert!(begun.contains(&item));
            }
            prop_assert!(begun.iter().all(|item| values[item.trial - 1] > 0));
        }
    }
}
