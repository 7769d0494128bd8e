//! Binary cross-entropy of a logit: the loss that models minimise.

use poolcast_base::stats::sigmoid;

/// The loss of a sample, and its derivative.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleLoss {
    pub(super) loss: f64,
    /// Derivative of the loss with respect to the logit.
    pub(super) slope: f32,
}

/// Computes `max(x, 0) - x*y + ln(1 + exp(-|x|))` and its derivative with respect to `x`, for the
/// logit `x` and the label `y`. Both are multiplied by `weight`.
///
/// In this form `exp` cannot overflow.
pub(super) fn cross_entropy(logit: f32, label: f32, weight: f32) -> SampleLoss {
    let x = f64::from(logit);
    let y = f64::from(label);
    let weight = f64::from(weight);

    let loss = x.max(0.0) - x * y + (-x.abs()).exp().ln_1p();
    let probability = sigmoid(x);
    SampleLoss {
        loss: weight * loss,
        slope: (weight * (probability - y)) as f32,
    }
}
