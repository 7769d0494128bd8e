//! Converts logits to class probabilities.

use super::matrix::ColumnMatrix;
use poolcast_base::stats::stable_sigmoid;

/// Replaces logits by probabilities that sum to one.
pub(crate) fn softmax_in_place(logits: &mut [f64]) {
    // The largest exponent is 0, so the exponentials cannot overflow.
    let largest = logits
        .iter()
        .fold(f64::NEG_INFINITY, |most, logit| most.max(*logit));
    for logit in logits.iter_mut() {
        *logit = (*logit - largest).exp();
    }

    let sum: f64 = logits.iter().sum();
    for logit in logits {
        *logit /= sum;
    }
}

/// Returns the probability of each class, row by row `[n, classes]`, from `logits` `[o, n]`. A
/// single logit belongs to the second of two classes. Otherwise each class has a logit.
pub(crate) fn class_probabilities(logits: &ColumnMatrix) -> Vec<f64> {
    if logits.f == 1 {
        return logits
            .values
            .iter()
            .flat_map(|logit| [stable_sigmoid(-logit), stable_sigmoid(*logit)])
            .collect();
    }

    let mut rows = logits.to_rows();
    rows.chunks_exact_mut(logits.f).for_each(softmax_in_place);
    rows
}
