//! Mean and standard deviation of each input column, for normalising a network's inputs.

use serde::{Deserialize, Serialize};

/// Bound of a normalised value, in standard deviations. It protects the network from queues far
/// outside the training samples.
const MAX_DEVIATIONS: f32 = 10.0;

/// Mean and standard deviation of each column, `[c]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnScales {
    means: Vec<f32>,
    /// Standard deviation; 1 for a constant column.
    deviations: Vec<f32>,
}

impl ColumnScales {
    /// Computes the scales of `samples`. Each sample holds rows of `columns` numbers, one row after
    /// the other.
    pub fn of(columns: usize, samples: impl Iterator<Item = Vec<f32>>) -> ColumnScales {
        let mut count = 0.0f64;
        let mut means = vec![0.0f64; columns];
        let mut squares = vec![0.0f64; columns];
        for sample in samples {
            for row in sample.chunks_exact(columns) {
                count += 1.0;
                // Welford's algorithm: it stays accurate for large numbers with small differences.
                for ((mean, square), x) in means.iter_mut().zip(&mut squares).zip(row) {
                    let before = f64::from(*x) - *mean;
                    *mean += before / count;
                    *square += before * (f64::from(*x) - *mean);
                }
            }
        }

        let deviation = |square: &f64| {
            let deviation = (square / count.max(1.0)).sqrt() as f32;
            if deviation > 0.0 { deviation } else { 1.0 }
        };
        ColumnScales {
            means: means.iter().map(|mean| *mean as f32).collect(),
            deviations: squares.iter().map(deviation).collect(),
        }
    }

    /// Returns the number of columns.
    pub fn column_count(&self) -> usize {
        self.means.len()
    }

    /// Normalises the rows of `sample` in place.
    pub fn normalise(&self, sample: &mut [f32]) {
        for row in sample.chunks_exact_mut(self.means.len()) {
            for ((x, mean), deviation) in row.iter_mut().zip(&self.means).zip(&self.deviations) {
                *x = ((*x - mean) / deviation).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS);
            }
        }
    }

    /// Converts a normalised number of the first column back to its original scale.
    pub fn restore(&self, x: f32) -> f64 {
        f64::from(self.means[0]) + f64::from(self.deviations[0]) * f64::from(x)
    }

    /// Returns the standard deviation of the first column.
    pub fn deviation(&self) -> f64 {
        f64::from(self.deviations[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_normalised_independently() {
        let samples = [vec![1.0, 5.0, 3.0, 5.0], vec![5.0, 5.0, 7.0, 5.0]];
        let scales = ColumnScales::of(2, samples.into_iter());
        let mut sample = vec![4.0, 5.0, 4.0 + 5f32.sqrt(), 6.0];
        scales.normalise(&mut sample);
        for (found, expected) in sample.iter().zip([0.0, 0.0, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{sample:?}");
        }
        assert!((scales.restore(1.0) - (4.0 + 5f64.sqrt())).abs() < 1e-6);

        let mut far = vec![1e9, -1e9];
        scales.normalise(&mut far);
        assert_eq!(far, [10.0, -10.0]);
    }
}
