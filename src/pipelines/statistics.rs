//! Mean, variance, median and other quantiles of a column of numbers.

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

/// Returns the median of the values that are not NaN: the mean of the two middle ones if their
/// number is even, and 0 if there are none.
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

/// A number and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeightedNumber {
    /// Number.
    pub(super) value: f64,
    /// Weight of the number.
    pub(super) weight: f64,
}

/// Returns a quantile of `numbers`, as xgboost computes it, or 0 if there are none. It sorts the
/// numbers.
///
/// With equal weights, the quantile is at position `quantile * (n + 1)` of the sorted numbers,
/// counted from 1. If this is not a whole number, the quantile is interpolated. With other weights,
/// it is the first number at which the sum of the weights so far reaches the share `quantile` of
/// all weights.
pub(super) fn weighted_quantile(numbers: &mut [WeightedNumber], quantile: f64) -> f64 {
    numbers.sort_by(|a, b| a.value.total_cmp(&b.value));
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        return 0.0;
    };

    if numbers.iter().all(|number| number.weight == first.weight) {
        let n = numbers.len() as f64;
        let place = (quantile * (n + 1.0) - 1.0).clamp(0.0, n - 1.0);
        let below = numbers[place.floor() as usize].value;
        let above = numbers[place.ceil() as usize].value;
        return below + (place - place.floor()) * (above - below);
    }

    let wanted = quantile * numbers.iter().map(|number| number.weight).sum::<f64>();
    let mut sum = 0.0;
    let reaches = |number: &&WeightedNumber| {
        sum += number.weight;
        sum >= wanted
    };
    numbers.iter().find(reaches).unwrap_or(last).value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile(values: &[f64], weights: &[f64], share: f64) -> f64 {
        let numbers = values.iter().zip(weights);
        let mut numbers: Vec<WeightedNumber> = numbers
            .map(|(value, weight)| WeightedNumber {
                value: *value,
                weight: *weight,
            })
            .collect();
        weighted_quantile(&mut numbers, share)
    }

    #[test]
    fn quantiles_of_equal_weights_are_interpolated() {
        let of = |share| quantile(&[4.0, 1.0, 2.0], &[1.0; 3], share);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(of),
            [1.0, 1.0, 2.0, 4.0, 4.0]
        );
        assert_eq!(of(0.625), 3.0);
        assert_eq!(quantile(&[7.0], &[2.0], 0.9), 7.0);
        assert_eq!(quantile(&[], &[], 0.9), 0.0);
    }

    #[test]
    fn heavy_numbers_reach_a_share_earlier() {
        let of = |share| quantile(&[4.0, 1.0, 2.0], &[1.0, 1.0, 6.0], share);
        assert_eq!(
            [0.1, 0.2, 0.875, 0.9, 1.0].map(of),
            [1.0, 2.0, 2.0, 4.0, 4.0]
        );
    }
}
