//! Bootstrap intervals: recomputes scores over clusters drawn with replacement (Efron's percentile
//! bootstrap).
//!
//! Whole clusters are drawn, not single holds. The procs of a cluster tend to have the same
//! outcome, so intervals over single holds would be too narrow.

use std::collections::BTreeMap;

use rand::Rng as _;

use super::quantile::nearest_rank_quantile;
use super::scores::{SCORE_COUNT, Scores};
use crate::parallel::map_numbers;

/// Predictions for some samples, with their true labels.
#[derive(Debug, Clone, Copy)]
pub struct LabelledPredictions<'a> {
    /// Probabilities of success, `[n]`.
    pub probabilities: &'a [f64],
    /// True labels, `[n]`.
    pub labels: &'a [bool],
    /// Minimum probability at which success is predicted.
    pub threshold: f64,
}

/// Number of resamples to draw, and the seed.
#[derive(Debug, Clone, Copy)]
pub struct Resampling {
    /// Number of resamples.
    pub resamples: usize,
    /// Root seed of the draws.
    pub seed: u64,
}

/// Sample indices by group.
#[derive(Debug)]
pub struct SampleGroups {
    /// Samples of each group, in the order of the groups.
    members: Vec<Vec<usize>>,
}

impl SampleGroups {
    /// Groups the samples. `groups` `[n]` has the group of each sample.
    pub fn new<G: Ord + Copy>(groups: &[G]) -> SampleGroups {
        let mut members: BTreeMap<G, Vec<usize>> = BTreeMap::new();
        for (sample, group) in groups.iter().enumerate() {
            members.entry(*group).or_default().push(sample);
        }
        SampleGroups {
            members: members.into_values().collect(),
        }
    }

    /// The number of groups.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The samples of a group.
    pub fn samples(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// Draws as many groups as there are, with replacement. The draw depends only on `seed`,
    /// `purpose` and the number of the resample.
    pub fn draw_groups(&self, seed: u64, purpose: &str, resample: usize) -> Vec<usize> {
        let mut generator = crate::seed::generator(seed, purpose, &[resample as i64]);
        (0..self.members.len())
            .map(|_| generator.random_range(0..self.members.len()))
            .collect()
    }
}

/// The 2.5 % and 97.5 % percentiles of each score over the resamples. `None` for a score that is
/// undefined in most resamples.
pub fn score_intervals(
    predictions: LabelledPredictions<'_>,
    groups: &SampleGroups,
    resampling: Resampling,
) -> [Option<(f64, f64)>; SCORE_COUNT] {
    let Resampling { resamples, seed } = resampling;
    let drawn: Vec<[Option<f64>; SCORE_COUNT]> = map_numbers(resamples, |resample| {
        let drawn = groups.draw_groups(seed, "bootstrap", resample);
        score_groups(predictions, groups, &drawn).values()
    });

    std::array::from_fn(|score| {
        // A resample of one class has no ROC-AUC, so some values may be missing.
        let values = drawn.iter().filter_map(|values| values[score]).collect();
        percentile_interval(values, resamples)
    })
}

/// The scores on the samples of the drawn groups.
fn score_groups(
    predictions: LabelledPredictions<'_>,
    groups: &SampleGroups,
    drawn: &[usize],
) -> Scores {
    let mut probabilities = Vec::new();
    let mut labels = Vec::new();
    for &group in drawn {
        for &sample in groups.samples(group) {
            probabilities.push(predictions.probabilities[sample]);
            labels.push(predictions.labels[sample]);
        }
    }
    Scores::compute(&probabilities, &labels, predictions.threshold)
}

/// The 2.5 % and 97.5 % percentiles of `values`. `None` if fewer than half of the `resamples` have
/// a value.
pub fn percentile_interval(mut values: Vec<f64>, resamples: usize) -> Option<(f64, f64)> {
    if values.len() * 2 < resamples {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let low = nearest_rank_quantile(&values, 0.025)?;
    let high = nearest_rank_quantile(&values, 0.975)?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_with_equal_outcomes_widen_the_interval() {
        // Each run of eight holds is predicted all right or all wrong. Four of five runs are right.
        let labels: Vec<bool> = (0..400).map(|i| i % 2 == 0).collect();
        let is_right = |i: usize| !(i / 8).is_multiple_of(5);
        let probabilities: Vec<f64> = (0..400)
            .map(|i| if labels[i] == is_right(i) { 0.9 } else { 0.1 })
            .collect();
        let predictions = LabelledPredictions {
            probabilities: &probabilities,
            labels: &labels,
            threshold: 0.5,
        };
        let resampling = Resampling {
            resamples: 500,
            seed: 1,
        };
        let width = |groups: Vec<u32>| {
            let groups = SampleGroups::new(&groups);
            let (low, high) =
                score_intervals(predictions, &groups, resampling)[0].expect("defined");
            assert!(low < 0.8 && 0.8 < high, "the accuracy is 0.8");
            high - low
        };
        let single = width((0..400).collect());
        let runs = width((0..400).map(|i| i / 8).collect());
        assert!((0.05..0.12).contains(&single), "{single}");
        assert!(
            (2.0..4.0).contains(&(runs / single)),
            "about the root of eight: {}",
            runs / single
        );
    }
}
