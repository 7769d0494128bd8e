//! Quantiles, medians and means of measured values. The quantiles differ in their definitions, and
//! each result has to stay what it is, so no function replaces another.

/// Returns the quantile `q` of `sorted`, interpolated linearly between neighbours, like numpy's
/// default. Returns 0 if `sorted` is empty.
pub fn interpolated_quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = q * last as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// Returns the value of `sorted` that is nearest to the quantile `q`, without interpolation.
/// Returns `None` if `sorted` is empty.
pub fn nearest_rank_quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * q).round() as usize).copied()
}

/// Returns the first value of `sorted` with `share` of all values before it. Returns `None` if no
/// value is left after the share.
pub fn first_after_share<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let before = (share * sorted.len() as f64).round() as usize;
    sorted.get(before).copied()
}

/// A number and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedNumber {
    /// Number.
    pub value: f64,
    /// Weight of the number.
    pub weight: f64,
}

/// Returns a quantile of `numbers`, as xgboost computes it, or 0 if there are none. It sorts the
/// numbers.
///
/// With equal weights, the quantile is at position `quantile * (n + 1)` of the sorted numbers,
/// counted from 1. If this is not a whole number, the quantile is interpolated. With other weights,
/// it is the first number at which the sum of the weights so far reaches the share `quantile` of
/// all weights.
pub fn weighted_quantile(numbers: &mut [WeightedNumber], quantile: f64) -> f64 {
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

/// Returns the median of `sorted`: the mean of the two middle values if their number is even.
/// Returns `None` if `sorted` is empty.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    (n > 0).then(|| f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]))
}

/// Returns the upper median of `sorted`: the higher of the two middle values if their number is
/// even. Returns `None` if `sorted` is empty.
pub fn upper_median<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

/// Returns the quantile of the wait whose expected cost is lowest. One hour of interruption costs
/// as much as `cost_ratio` hours of overlap.
pub fn cost_quantile(cost_ratio: f64) -> f64 {
    cost_ratio / (1.0 + cost_ratio)
}

/// Returns the cost of a gap of `gap_h` hours between two jobs, in hours of overlap; a negative gap
/// is an overlap. One hour of interruption costs as much as `cost_ratio` hours of overlap.
pub fn gap_cost_h(cost_ratio: f64, gap_h: f64) -> f64 {
    if gap_h > 0.0 {
        cost_ratio * gap_h
    } else {
        -gap_h
    }
}

/// Returns the pinball loss of a predicted quantile that the actual value exceeds by `excess`
/// (Koenker and Bassett 1978). The quantile of a sample minimises the mean of this loss over the
/// sample.
pub fn pinball_loss(quantile: f64, excess: f64) -> f64 {
    if excess < 0.0 {
        (quantile - 1.0) * excess
    } else {
        quantile * excess
    }
}

/// Returns the mean, or 0 if `values` is empty.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolated_quantiles_lie_between_values() {
        let sorted = [1.0, 2.0, 4.0];
        let found = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| interpolated_quantile(&sorted, q));
        assert_eq!(found, [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert_eq!(
            (interpolated_quantile(&[], 0.5), mean(&[]), mean(&sorted)),
            (0.0, 0.0, 7.0 / 3.0)
        );
    }

    #[test]
    fn other_quantiles_are_values() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        let nearest = [0.0, 0.4, 0.9, 1.0].map(|q| nearest_rank_quantile(&sorted, q));
        assert_eq!(nearest, [1.0, 2.0, 8.0, 8.0].map(Some));
        let after = [0.0, 0.25, 0.9, 1.0].map(|share| first_after_share(&sorted, share));
        assert_eq!(after, [Some(1.0), Some(2.0), None, None]);
        assert_eq!(nearest_rank_quantile(&[], 0.5), None);
    }

    #[test]
    fn medians_differ_for_even_numbers_of_values() {
        let of = |sorted: &[f64]| (median(sorted), upper_median(sorted));
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[1.0, 2.0, 4.0]), (Some(2.0), Some(2.0)));
        assert_eq!(of(&[1.0, 2.0, 4.0, 8.0]), (Some(3.0), Some(4.0)));
    }

    #[test]
    fn pinball_losses_weigh_both_sides_by_the_quantile() {
        let losses = [4.0, 0.0, -4.0].map(|excess| pinball_loss(0.75, excess));
        assert_eq!(losses, [3.0, 0.0, 1.0]);
    }

    #[test]
    fn gap_cost_weights_interruptions_by_the_ratio() {
        assert_eq!(
            [2.0, -2.0, 0.0].map(|gap_h| gap_cost_h(3.0, gap_h)),
            [6.0, 2.0, 0.0]
        );
    }

    fn weighted(values: &[f64], weights: &[f64], share: f64) -> f64 {
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
        let of = |share| weighted(&[4.0, 1.0, 2.0], &[1.0; 3], share);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(of),
            [1.0, 1.0, 2.0, 4.0, 4.0]
        );
        assert_eq!(of(0.625), 3.0);
        assert_eq!(weighted(&[7.0], &[2.0], 0.9), 7.0);
        assert_eq!(weighted(&[], &[], 0.9), 0.0);
    }

    #[test]
    fn heavy_numbers_reach_a_share_earlier() {
        let of = |share| weighted(&[4.0, 1.0, 2.0], &[1.0, 1.0, 6.0], share);
        assert_eq!(
            [0.1, 0.2, 0.875, 0.9, 1.0].map(of),
            [1.0, 2.0, 2.0, 4.0, 4.0]
        );
    }
}
