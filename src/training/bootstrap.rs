//! Intervals: scores again and again over clusters drawn with replacement (Efron's percentile bootstrap).
//!
//! Whole clusters are drawn and not single holds: the procs of a cluster share their fate, and intervals over single
//! holds would be too narrow.

use std::collections::BTreeMap;

use rand::Rng as _;
use rayon::prelude::*;

use super::metrics::{SCORES, Scores};

/// The 2.5 % and 97.5 % points of each score over `resamples`; absent where a score is mostly undefined.
pub(super) fn intervals(
    probabilities: &[f64],
    labels: &[bool],
    groups: &[u32],
    resamples: usize,
    seed: u64,
    threshold: f64,
) -> [Option<(f64, f64)>; SCORES] {
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    groups
        .iter()
        .enumerate()
        .for_each(|(sample, group)| members.entry(*group).or_default().push(sample));
    let members: Vec<Vec<usize>> = members.into_values().collect();
    let drawn: Vec<[Option<f64>; SCORES]> = (0..resamples)
        .into_par_iter()
        .map(|resample| {
            let mut generator = crate::seed::generator(seed, "bootstrap", &[resample as i64]);
            let picks =
                (0..members.len()).map(|_| &members[generator.random_range(0..members.len())]);
            let samples: Vec<usize> = picks.flatten().copied().collect();
            let probabilities: Vec<f64> = samples
                .iter()
                .map(|&sample| probabilities[sample])
                .collect();
            let labels: Vec<bool> = samples.iter().map(|&sample| labels[sample]).collect();
            Scores::of(&probabilities, &labels, threshold).values()
        })
        .collect();
    std::array::from_fn(|score| {
        percentiles(
            drawn.iter().filter_map(|values| values[score]).collect(),
            resamples,
        )
    })
}

/// The 2.5 % and 97.5 % points of what `resamples` gave, unless most gave nothing.
pub(crate) fn percentiles(mut values: Vec<f64>, resamples: usize) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    (!values.is_empty() && values.len() * 2 >= resamples).then(|| (at(0.025), at(0.975)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_one_fate_widen_the_interval() {
        // Runs of eight holds share their fate: four runs of five are predicted right.
        let labels: Vec<bool> = (0..400).map(|i| i % 2 == 0).collect();
        let right = |i: usize| !(i / 8).is_multiple_of(5);
        let probabilities: Vec<f64> = (0..400)
            .map(|i| if labels[i] == right(i) { 0.9 } else { 0.1 })
            .collect();
        let width = |groups: Vec<u32>| {
            let (low, high) =
                intervals(&probabilities, &labels, &groups, 500, 1, 0.5)[0].expect("defined");
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
