//! Loss weights of samples by the size of their clusters.

use std::collections::HashMap;
use std::hash::Hash;

/// Returns a weight for each sample that is learned from, `[n]`. The mean weight is 1.
///
/// Jobs of one cluster share their program, their files and their faults, so hundreds of holds of
/// one cluster carry little more information than ten. A sample of a cluster with `c` samples
/// therefore has `1 / sqrt(c)` times the weight of one that is alone. This is half-way between
/// counting samples and counting clusters.
pub fn cluster_weights<T: Eq + Hash>(clusters: &[T]) -> Vec<f64> {
    let mut counts: HashMap<&T, f64> = HashMap::new();
    for cluster in clusters {
        *counts.entry(cluster).or_default() += 1.0;
    }

    let weights = clusters.iter().map(|cluster| 1.0 / counts[cluster].sqrt());
    scaled_to_mean_1(weights.collect())
}

/// Scales `weights`, `[n]`, to a mean of 1.
pub(crate) fn scaled_to_mean_1(mut weights: Vec<f64>) -> Vec<f64> {
    let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_four_counts_twice_as_much_as_one_alone() {
        let weights = cluster_weights(&[7, 7, 3, 7, 7]);
        assert!((weights.iter().sum::<f64>() - 5.0).abs() < 1e-12);
        assert!((weights[2] - 2.0 * weights[0]).abs() < 1e-12);
        assert_eq!(cluster_weights(&[1, 2, 3]), [1.0; 3]);
        assert!(cluster_weights::<u32>(&[]).is_empty());
    }
}
