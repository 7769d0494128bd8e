//! Samples → sides: train, validate, test, so that what is learned is tested on what came later or
//! elsewhere.

use std::collections::BTreeMap;

use rand::seq::SliceRandom as _;

use super::split_side::SplitSide;
use crate::config::SplitMethod;

/// What a split looks at: when it is asked, and which cluster the hold belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitMember {
    pub(super) asked_ms: i64,
    /// Counted from 0.
    pub(super) group: u32,
}

/// The side of each member; `None` for those that a rule keeps out of every side.
///
/// `time`: two moments divide the holds by `fractions`; holds of one millisecond stay together. A
/// cluster belongs to the latest side it has holds on, and its holds on earlier sides are left out:
/// so the test side holds every labelled hold after its moment, and nothing of a tested cluster was
/// learned from.
pub(super) fn assign_sides(
    members: &[SplitMember],
    split: SplitMethod,
    fractions: [f64; 3],
    seed: u64,
) -> Vec<Option<SplitSide>> {
    match split {
        SplitMethod::Time => by_time(members, fractions),
        SplitMethod::Cluster => by_group(
            members,
            |member, _| u64::from(member.group),
            fractions,
            seed,
        ),
        SplitMethod::Random => by_group(members, |_, index| index as u64, fractions, seed),
    }
}

fn by_time(members: &[SplitMember], fractions: [f64; 3]) -> Vec<Option<SplitSide>> {
    let mut times_ms: Vec<i64> = members.iter().map(|member| member.asked_ms).collect();
    times_ms.sort_unstable();
    let validate_from_ms = quantile(&times_ms, fractions[0]);
    let test_from_ms = quantile(&times_ms, fractions[0] + fractions[1]);
    let side_at = |asked_ms: i64| match asked_ms {
        ms if ms >= test_from_ms => SplitSide::Test,
        ms if ms >= validate_from_ms => SplitSide::Validate,
        _ => SplitSide::Train,
    };

    let groups = members.iter().map(|member| member.group as usize + 1).max();
    let mut latest_side = vec![SplitSide::Train; groups.unwrap_or(0)];
    for member in members {
        let latest = &mut latest_side[member.group as usize];
        *latest = side_at(member.asked_ms).max(*latest);
    }

    members
        .iter()
        .map(|member| {
            let side = side_at(member.asked_ms);
            (latest_side[member.group as usize] == side).then_some(side)
        })
        .collect()
}

/// The first of `times_ms`, which are in order, that has `share` of them before it; the end of time
/// if none has.
fn quantile(times_ms: &[i64], share: f64) -> i64 {
    let at = (share * times_ms.len() as f64).round() as usize;
    times_ms.get(at).copied().unwrap_or(i64::MAX)
}

/// Shuffles whole groups and deals them out until each side has its share.
fn by_group(
    members: &[SplitMember],
    group: impl Fn(&SplitMember, usize) -> u64,
    fractions: [f64; 3],
    seed: u64,
) -> Vec<Option<SplitSide>> {
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        *sizes.entry(group(member, index)).or_default() += 1;
    }
    let mut order: Vec<(u64, usize)> = sizes.into_iter().collect();
    order.shuffle(&mut crate::seed::generator(seed, "split", &[]));

    let total = members.len() as f64;
    let mut dealt = 0;
    let mut side_of_group = BTreeMap::new();
    for (id, size) in order {
        let side = match dealt as f64 / total {
            share if share < fractions[0] => SplitSide::Train,
            share if share < fractions[0] + fractions[1] => SplitSide::Validate,
            _ => SplitSide::Test,
        };
        side_of_group.insert(id, side);
        dealt += size;
    }

    members
        .iter()
        .enumerate()
        .map(|(index, member)| side_of_group.get(&group(member, index)).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRACTIONS: [f64; 3] = [0.6, 0.2, 0.2];

    #[test]
    fn earlier_holds_of_a_later_cluster_are_left_out() {
        let members: Vec<SplitMember> = (0..10)
            .map(|i| SplitMember {
                asked_ms: i,
                group: if i == 9 { 0 } else { i as u32 },
            })
            .collect();
        let found = assign_sides(&members, SplitMethod::Time, FRACTIONS, 1);
        assert_eq!(found[0], None, "cluster 0 is held again on the test side");
        assert_eq!(found[1..6], [Some(SplitSide::Train); 5]);
        assert_eq!(found[6..8], [Some(SplitSide::Validate); 2]);
        assert_eq!(found[8..], [Some(SplitSide::Test); 2]);
    }

    proptest! {
        #[test]
        fn no_cluster_sits_on_two_sides(raw in proptest::collection::vec((0..1000i64, 0..30u32), 0..200), seed in 0..9u64) {
            let members: Vec<SplitMember> = raw.iter().map(|&(asked_ms, group)| SplitMember { asked_ms, group }).collect();
            for split in [SplitMethod::Time, SplitMethod::Cluster] {
                let found = assign_sides(&members, split, FRACTIONS, seed);
                let mut side_of = BTreeMap::new();
                for (member, side) in members.iter().zip(&found) {
                    if let Some(side) = side {
                        prop_assert_eq!(*side_of.entry(member.group).or_insert(*side), *side);
                    }
                }
            }
            let placed: Vec<(SplitSide, i64)> = assign_sides(&members, SplitMethod::Time, FRACTIONS, seed).into_iter()
                .zip(&members).filter_map(|(side, member)| Some((side?, member.asked_ms))).collect();
            for (a, b) in placed.iter().flat_map(|a| placed.iter().map(move |b| (a, b))) {
                prop_assert!(a.0 >= b.0 || a.1 < b.1, "an earlier side holds only earlier holds");
            }
            prop_assert!(assign_sides(&members, SplitMethod::Random, FRACTIONS, seed).iter().all(Option::is_some));
        }
    }
}
