//! Intervals: scores again and again over clusters drawn with replacement (Efron's percentile
//! bootstrap).
//!
//! Whole clusters are drawn and not single holds: the procs of a cluster share their fate, and
//! intervals over single holds would be too narrow.

use std::collections::BTreeMap;

use rand::Rng as _;
use rayon::prelude::*;

use super::scores::{SCORES, Scores};

/// The predictions for some samples, and what is true of them.
#[derive(Debug, Clone, Copy)]
pub struct LabelledPredictions<'a> {
    /// Of success, `[n]`.
    pub probabilities: &'a [f64],
    /// `[n]`.
    pub labels: &'a [bool],
    /// Success is predicted from this probability on.
    pub threshold: f64,
}

/// How many resamples are drawn, and from which seed.
#[derive(Debug, Clone, Copy)]
pub struct Resampling {
    /// Number of resamples.
    pub resamples: usize,
    /// Root seed of the draws.
    pub seed: u64,
}

/// Samples by their group.
#[derive(Debug)]
pub struct SampleGroups {
    /// The samples of each group, in the order of the groups.
    members: Vec<Vec<usize>>,
}

impl SampleGroups {
    /// The samples of each group; `groups` `[n]` has the group of each sample.
    pub fn new<G: Ord + Copy>(groups: &[G]) -> SampleGroups {
        let mut members: BTreeMap<G, Vec<usize>> = BTreeMap::new();
        for (sample, group) in groups.iter().enumerate() {
            members.entry(*group).or_default().push(sample);
        }
        SampleGroups {
            members: members.into_values().collect(),
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The samples of a group.
    pub fn samples(&self, group: usize) -> &[usize] {
        &self.members[group]
    }

    /// As many groups as there are, drawn with replacement. What is drawn follows from `seed`, the
    /// `purpose` and the number of the resample.
    pub fn draw_groups(&self, seed: u64, purpose: &str, resample: usize) -> Vec<usize> {
        let mut generator = crate::seed::generator(seed, purpose, &[resample as i64]);
        (0..self.members.len())
            .map(|_| generator.random_range(0..self.members.len()))
            .collect()
    }
}

/// The 2.5 % and 97.5 % points of each score over the resamples; absent where a score is mostly
/// undefined.
pub fn score_intervals(
    predictions: LabelledPredictions<'_>,
    groups: &SampleGroups,
    resampling: Resampling,
) -> [Option<(f64, f64)>; SCORES] {
    let Resampling { resamples, seed } = resampling;
    let drawn: Vec<[Option<f64>; SCORES]> = (0..resamples)
        .into_par_iter()
        .map(|resample| {
            let drawn = groups.draw_groups(seed, "bootstrap", resample);
            score_groups(predictions, groups, &drawn).values()
        })
        .collect();

    std::array::from_fn(|score| {
        let values = drawn.iter().filter_map(|values| values[score]).collect();
        percentile_interval(values, resamples)
    })
}

/// The scores on the samples of the groups that were drawn.
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

/// The 2.5 % and 97.5 % points of what `resamples` gave, unless most gave nothing.
pub fn percentile_interval(mut values: Vec<f64>, resamples: usize) -> Option<(f64, f64)> {
    if values.is_empty() || values.len() * 2 < resamples {
        return None;
    }
    values.sort_by(f64::total_cmp);
    Some((nearest_rank(&values, 0.025), nearest_rank(&values, 0.975)))
}

/// The value at a share of the way through sorted values.
fn nearest_rank(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_one_fate_widen_the_interval() {
        // Runs of eight holds share their fate: four runs of five are predicted right.
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
