//! Mean, variance and median of a column of numbers.

use poolcast_base::stats::median;

/// Mean and variance of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanSpread {
    /// Arithmetic mean.
    pub(super) mean: f64,
    /// Mean squared distance from the mean: numpy's `var`.
    pub(super) variance: f64,
}

impl MeanSpread {
    /// Computes the mean and the variance of `values`.
    pub(super) fn new(values: &[f64]) -> MeanSpread {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        MeanSpread {
            mean,
            variance: squares / n,
        }
    }

    /// Returns the square root of the variance: numpy's `std`.
    pub(super) fn standard_deviation(self) -> f64 {
        self.variance.sqrt()
    }
}

/// Returns the mean of the values that are not NaN, and 0 if there are none.
pub(super) fn mean_of_known(values: &[f64]) -> f64 {
    let known = || values.iter().filter(|value| !value.is_nan());
    known().sum::<f64>() / known().count().max(1) as f64
}

/// Returns the median of the values that are not NaN: the mean of the two middle ones if their
/// number is even, and 0 if there are none.
pub(super) fn median_of_known(values: &[f64]) -> f64 {
    let mut known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    known.sort_unstable_by(f64::total_cmp);
    median(&known).unwrap_or(0.0)
}
