//! A column of numbers → its mean, its spread, its median.

/// The mean of some numbers and how far they lie from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanSpread {
    /// The arithmetic mean.
    pub(super) mean: f64,
    /// The mean square of the distance from the mean: numpy's `var`.
    pub(super) variance: f64,
}

impl MeanSpread {
    /// That of `values`.
    pub(super) fn new(values: &[f64]) -> MeanSpread {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        MeanSpread {
            mean,
            variance: squares / n,
        }
    }

    /// The square root of the variance: numpy's `std`.
    pub(super) fn standard_deviation(self) -> f64 {
        self.variance.sqrt()
    }
}

/// The middle of the values that are not NaN, the mean of the two middle ones where their number is
/// even; 0 of none.
pub(super) fn median_of_known(values: &[f64]) -> f64 {
    let mut known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    known.sort_unstable_by(f64::total_cmp);
    match known.len() {
        0 => 0.0,
        n if n % 2 == 1 => known[n / 2],
        n => f64::midpoint(known[n / 2 - 1], known[n / 2]),
    }
}
