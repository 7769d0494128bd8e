//! The values of trials at each rung so far → which trials go on to the next: asynchronous successive halving (Li et al. 2020).
//! A trial at a rung is an item of work of its own: train to the rung's epochs, from the rung before.

use std::collections::BTreeSet;

use crate::config::Goal;

/// What can be worked on by itself: one trial up to one rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// The trial, counted from 1.
    pub trial: usize,
    /// The rung, counted from 0.
    pub rung: usize,
}

/// An item that is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Done {
    /// Which.
    pub item: Item,
    /// The trial's best value within the epochs of the rung; `None` where it failed.
    pub value: Option<f64>,
}

/// The items to work on next: of each of `rungs` rungs but the last, those of the best part in `eta` of the trials that are
/// `done` with it, one rung higher, unless they are among `begun`. Equals are ordered by trial.
///
/// What a further result changes is never taken back: a trial once promoted stays so.
pub(super) fn promoted(
    rungs: usize,
    eta: f64,
    goal: Goal,
    done: &[Done],
    begun: &BTreeSet<Item>,
) -> Vec<Item> {
    let of_rung = |rung| done.iter().filter(move |one| one.item.rung == rung);
    let promoted = (0..rungs.saturating_sub(1)).flat_map(|rung| {
        let mut ranked: Vec<(f64, usize)> = of_rung(rung)
            .filter_map(|one| Some((one.value?, one.item.trial)))
            .collect();
        ranked.sort_by(|(a, _), (b, _)| goal.loss(*a).total_cmp(&goal.loss(*b)));
        ranked.truncate((of_rung(rung).count() as f64 / eta) as usize);
        ranked.into_iter().map(move |(_, trial)| Item {
            trial,
            rung: rung + 1,
        })
    });
    promoted.filter(|item| !begun.contains(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn done(trial: usize, rung: usize, value: f64) -> Done {
        Done {
            item: Item { trial, rung },
            value: Some(value).filter(|value| value.is_finite()),
        }
    }

    #[test]
    fn the_best_part_goes_on() {
        let promoted = |done: &[Done], begun: &[Item]| -> Vec<(usize, usize)> {
            let items = promoted(
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
        assert_eq!(promoted(&first[..2], &[]), []);
        assert_eq!(promoted(&first, &[]), [(3, 1)]);
        assert_eq!(
            promoted(&first, &[Item { trial: 3, rung: 1 }]),
            [],
            "it is begun"
        );
        let more = [
            &first[..],
            &[done(4, 0, 0.1), done(5, 0, f64::NAN), done(6, 0, 0.4)],
        ]
        .concat();
        assert_eq!(promoted(&more, &[]), [(4, 1), (3, 1)]);
        let second = [
            done(3, 1, 0.2),
            done(4, 1, 0.25),
            done(6, 1, 0.2),
            done(9, 2, 0.1),
        ];
        assert_eq!(
            promoted(&second, &[]),
            [(3, 2)],
            "the earlier of equals, and nothing beyond the last rung"
        );
        let up = super::promoted(2, 3.0, Goal::Maximize, &first, &BTreeSet::new());
        assert_eq!(up, [Item { trial: 1, rung: 1 }]);
    }

    proptest! {
        /// In whatever order results arrive, the trials that are best in the end at the first rung are promoted, and none
        /// that failed.
        #[test]
        fn the_best_are_promoted_in_any_order(values in prop::collection::vec(0..1000u32, 1..40), by in any::<prop::sample::Index>()) {
            let turn = by.index(values.len());
            let all: Vec<Done> = (0..values.len()).map(|at| {
                let trial = (at + turn) % values.len();
                done(trial + 1, 0, if values[trial] == 0 { f64::NAN } else { f64::from(values[trial]) })
            }).collect();
            let mut begun = BTreeSet::new();
            for seen in 1..=all.len() {
                begun.extend(promoted(2, 3.0, Goal::Minimize, &all[..seen], &begun));
            }
            for item in promoted(2, 3.0, Goal::Minimize, &all, &BTreeSet::new()) {
                prop_assert!(begun.contains(&item));
            }
            prop_assert!(begun.iter().all(|item| values[item.trial - 1] > 0));
        }
    }
}
