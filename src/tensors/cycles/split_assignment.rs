//! Splits samples into train, validation and test sets by time, by cluster or at random. So a model
//! can be tested on later holds, or on other clusters, than it has learned from.

use std::collections::BTreeMap;

use rand::seq::SliceRandom as _;

use super::hold_cycles::ExclusionReason;
use super::split::Split;
use crate::shards::TensorSettings;
use poolcast_base::stats::first_after_share;
use poolcast_config::{SplitClusters, SplitMethod};

/// The input of a split for one sample: prediction time, time of the outcome, and cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitMember {
    pub(crate) asked_ms: i64,
    pub(crate) decided_ms: i64,
    /// Number of the cluster, from 0.
    pub(crate) group: u32,
}

/// Assigns a split to each member, or the reason why a rule leaves it out.
///
/// `time`: two cutoffs divide the members by prediction time in the proportions `fractions`.
/// Members of the same millisecond stay together. A member is left out if its outcome was decided
/// after the next split had begun, because its label was unknown at that cutoff. With
/// `split_clusters = separate` a cluster belongs to the latest split in which it has a prediction
/// time. Its members in earlier splits are left out, too.
pub(crate) fn assign_splits(
    members: &[SplitMember],
    settings: &TensorSettings,
) -> Vec<Result<Split, ExclusionReason>> {
    let splits = match settings.split {
        SplitMethod::Time => return split_by_time(members, settings),
        SplitMethod::Cluster => by_group(members, settings, |member, _| u64::from(member.group)),
        SplitMethod::Random => by_group(members, settings, |_, index| index as u64),
    };
    splits.into_iter().map(Ok).collect()
}

/// The cutoffs at which the splits by time begin, in epoch ms.
struct TimeCuts {
    validate_from_ms: i64,
    test_from_ms: i64,
}

impl TimeCuts {
    fn new(members: &[SplitMember], fractions: [f64; 3]) -> TimeCuts {
        let mut times_ms: Vec<i64> = members.iter().map(|member| member.asked_ms).collect();
        times_ms.sort_unstable();
        TimeCuts {
            validate_from_ms: first_after_share(&times_ms, fractions[0]).unwrap_or(i64::MAX),
            test_from_ms: first_after_share(&times_ms, fractions[0] + fractions[1])
                .unwrap_or(i64::MAX),
        }
    }

    fn split_at_time(&self, asked_ms: i64) -> Split {
        match asked_ms {
            ms if ms >= self.test_from_ms => Split::Test,
            ms if ms >= self.validate_from_ms => Split::Validate,
            _ => Split::Train,
        }
    }

    /// Returns the start of the split after `split`, or `None` after the last one.
    fn end_ms(&self, split: Split) -> Option<i64> {
        match split {
            Split::Train => Some(self.validate_from_ms),
            Split::Validate => Some(self.test_from_ms),
            Split::Test => None,
        }
    }
}

fn split_by_time(
    members: &[SplitMember],
    settings: &TensorSettings,
) -> Vec<Result<Split, ExclusionReason>> {
    let cuts = TimeCuts::new(members, settings.fractions);
    let latest_splits = latest_splits(members, &cuts);

    let mut splits = Vec::with_capacity(members.len());
    for member in members {
        let split = cuts.split_at_time(member.asked_ms);
        let end_ms = cuts.end_ms(split);
        let is_in_later_split = latest_splits[member.group as usize] != split;
        splits.push(
            if end_ms.is_some_and(|end_ms| member.decided_ms >= end_ms) {
                Err(ExclusionReason::DecidedTooLate)
            } else if settings.split_clusters == SplitClusters::Separate && is_in_later_split {
                Err(ExclusionReason::ClusterInTwoSplits)
            } else {
                Ok(split)
            },
        );
    }
    splits
}

/// Returns the latest split in which each cluster has a prediction time.
fn latest_splits(members: &[SplitMember], cuts: &TimeCuts) -> Vec<Split> {
    let groups = members.iter().map(|member| member.group as usize + 1).max();
    let mut latest_splits = vec![Split::Train; groups.unwrap_or(0)];
    for member in members {
        let latest = &mut latest_splits[member.group as usize];
        *latest = cuts.split_at_time(member.asked_ms).max(*latest);
    }
    latest_splits
}

/// Shuffles whole groups, and deals them out until each split has its share.
fn by_group(
    members: &[SplitMember],
    settings: &TensorSettings,
    group: impl Fn(&SplitMember, usize) -> u64,
) -> Vec<Split> {
    let fractions = settings.fractions;
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        *sizes.entry(group(member, index)).or_default() += 1;
    }
    let mut order: Vec<(u64, usize)> = sizes.into_iter().collect();
    order.shuffle(&mut poolcast_base::seed::generator(
        settings.seed,
        "split",
        &[],
    ));

    let total = members.len() as f64;
    let mut dealt = 0;
    let mut split_of_group = BTreeMap::new();
    for (id, size) in order {
        let split = match dealt as f64 / total {
            share if share < fractions[0] => Split::Train,
            share if share < fractions[0] + fractions[1] => Split::Validate,
            _ => Split::Test,
        };
        // A group goes to the first split that is not full yet, and may exceed its share.
        split_of_group.insert(id, split);
        dealt += size;
    }

    members
        .iter()
        .enumerate()
        .map(|(index, member)| split_of_group[&group(member, index)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(split: SplitMethod, split_clusters: SplitClusters, seed: u64) -> TensorSettings {
        let settings = TensorSettings::of_defaults();
        TensorSettings {
            split,
            split_clusters,
            fractions: [0.6, 0.2, 0.2],
            seed,
            ..settings
        }
    }

    fn member(asked_ms: i64, decided_ms: i64, group: u32) -> SplitMember {
        SplitMember {
            asked_ms,
            decided_ms,
            group,
        }
    }

    #[test]
    fn separate_clusters_leave_out_their_earlier_holds() {
        let members: Vec<SplitMember> = (0..10)
            .map(|i| member(i, i, if i == 9 { 0 } else { i as u32 }))
            .collect();
        let separate = settings(SplitMethod::Time, SplitClusters::Separate, 1);
        let found = assign_splits(&members, &separate);
        assert_eq!(found[0], Err(ExclusionReason::ClusterInTwoSplits));
        assert_eq!(found[1..6], [Ok(Split::Train); 5]);
        assert_eq!(found[6..8], [Ok(Split::Validate); 2]);
        assert_eq!(found[8..], [Ok(Split::Test); 2]);

        let keep = settings(SplitMethod::Time, SplitClusters::Keep, 1);
        assert_eq!(assign_splits(&members, &keep)[0], Ok(Split::Train));
    }

    #[test]
    fn outcomes_after_the_cutoff_are_left_out() {
        // The splits begin at 6 and at 8.
        let decided_ms = [0, 5, 6, 99, 4, 5, 7, 8, 99, 99];
        let members: Vec<SplitMember> = (0..)
            .zip(decided_ms)
            .map(|(asked_ms, decided_ms)| member(asked_ms, decided_ms, 0))
            .collect();
        let found = assign_splits(
            &members,
            &settings(SplitMethod::Time, SplitClusters::Keep, 1),
        );
        let too_late = Err(ExclusionReason::DecidedTooLate);
        let train = Ok(Split::Train);
        assert_eq!(found[..6], [train, train, too_late, too_late, train, train]);
        assert_eq!(found[6..8], [Ok(Split::Validate), too_late]);
        assert_eq!(found[8..], [Ok(Split::Test); 2]);
    }

    proptest! {
        #[test]
        fn splits_do_not_overlap_in_time_or_clusters(
            raw in proptest::collection::vec((0..1000i64, 0..400i64, 0..30u32), 0..200),
            seed in 0..9u64,
        ) {
            let members: Vec<SplitMember> = raw.iter().map(|&(asked_ms, later_ms, group)| member(asked_ms, asked_ms + later_ms, group)).collect();
            for (split, clusters) in [(SplitMethod::Time, SplitClusters::Separate), (SplitMethod::Cluster, SplitClusters::Keep)] {
                let found = assign_splits(&members, &settings(split, clusters, seed));
                let mut split_of = BTreeMap::new();
                for (member, split) in members.iter().zip(&found) {
                    if let Ok(split) = split {
                        prop_assert_eq!(*split_of.entry(member.group).or_insert(*split), *split, "no cluster in two splits");
                    }
                }
            }
            for clusters in [SplitClusters::Keep, SplitClusters::Separate] {
                let found = assign_splits(&members, &settings(SplitMethod::Time, clusters, seed));
                let placed: Vec<(Split, SplitMember)> = found.into_iter().zip(&members)
                    .filter_map(|(split, member)| Some((split.ok()?, *member))).collect();
                for (a, b) in placed.iter().flat_map(|a| placed.iter().map(move |b| (a, b))) {
                    prop_assert!(a.0 >= b.0 || a.1.decided_ms < b.1.asked_ms, "an earlier split was decided before a later one is asked");
                }
            }
            let random = assign_splits(&members, &settings(SplitMethod::Random, SplitClusters::Keep, seed));
            prop_assert!(random.iter().all(Result::is_ok));
        }
    }
}
