//! Mean, variance and median of a column of numbers.

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
    if known.is_empty() {
        return 0.0;
    }
    // A selection is several times faster than sorting.
    let (middle, is_even) = (known.len() / 2, known.len().is_multiple_of(2));
    let (below, upper, _) = known.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    let lower = lower.filter(|_| is_even).unwrap_or(*upper);
    f64::midpoint(lower, *upper)
}
