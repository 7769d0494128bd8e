//! A column of numbers → its mean, its spread, its median and other quantiles.

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

/// A number, and how often it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeightedNumber {
    /// The number.
    pub(super) value: f64,
    /// How often it counts.
    pub(super) weight: f64,
}

/// The value that the share `quantile` of `numbers` is below, as xgboost has it; 0 of none. The
/// numbers are sorted on the way.
///
/// With equal weights it stands at place `quantile * (n + 1)` of the sorted numbers, counted from 1,
/// and between two of them where that is no whole number. With other weights it is the first number
/// at which the weights so far reach the share of all weights.
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
    fn quantiles_of_equal_weights_lie_between_numbers() {
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
