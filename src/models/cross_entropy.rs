//! The loss that models minimise: the binary cross-entropy of a logit.

/// The loss of a sample, and how it changes with the sample's logit.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleLoss {
    pub(super) loss: f64,
    /// The derivative of the loss by the logit.
    pub(super) slope: f32,
}

/// `max(x, 0) - x*y + ln(1 + exp(-|x|))` and its derivative by `x`, for the logit `x` and the label
/// `y`; both are multiplied by `weight`.
///
/// In this form `exp` cannot overflow.
pub(super) fn cross_entropy(logit: f32, label: f32, weight: f32) -> SampleLoss {
    let x = f64::from(logit);
    let y = f64::from(label);
    let weight = f64::from(weight);

    let loss = x.max(0.0) - x * y + (-x.abs()).exp().ln_1p();
    let probability = 1.0 / (1.0 + (-x).exp());
    SampleLoss {
        loss: weight * loss,
        slope: (weight * (probability - y)) as f32,
    }
}
