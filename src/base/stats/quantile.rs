//! Quantiles and means of measured values.

/// Returns the quantile `q` of `sorted`, interpolated linearly between neighbours. Returns 0 if
/// `sorted` is empty.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = q * last as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// Returns the quantile of the wait whose expected cost is lowest. One hour of interruption costs
/// as much as `cost_ratio` hours of overlap.
pub fn cost_quantile(cost_ratio: f64) -> f64 {
    cost_ratio / (1.0 + cost_ratio)
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
    fn quantiles_lie_between_values() {
        let sorted = [1.0, 2.0, 4.0];
        let found = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| quantile(&sorted, q));
        assert_eq!(found, [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert_eq!(
            (quantile(&[], 0.5), mean(&[]), mean(&sorted)),
            (0.0, 0.0, 7.0 / 3.0)
        );
    }
}
