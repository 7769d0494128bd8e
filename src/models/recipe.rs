//! How an architecture is trained where a trial does not say.

/// Settings of a training that belong to an architecture. Most have the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrainingRecipe {
    /// Number of epochs of a training that is not stopped early and keeps its last weights; `None`
    /// for early stopping.
    pub max_epochs: Option<usize>,
    /// Course of the learning rate.
    pub schedule: RateSchedule,
    /// Share of the outcome tokens that are left out at random.
    pub token_dropout: f64,
    /// Share of the hidden units that are left out at random.
    pub dropout: f64,
    /// Weight decay of a trial without one.
    pub weight_decay: f64,
    /// Maximum norm of a gradient of a trial without one.
    pub clip_grad_norm: f64,
}

/// Course of the learning rate over a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateSchedule {
    /// The same at every step.
    #[default]
    Constant,
    /// Up from 0 over a tenth of the steps, and down to 0 along a cosine.
    WarmUpAndCosine,
}

/// Share of the steps over which the learning rate goes up.
const WARM_UP: f64 = 0.1;

impl RateSchedule {
    /// Returns the factor of the learning rate at a step, of `steps`, counted from 0.
    pub(super) fn factor(self, step: u64, steps: usize) -> f64 {
        match self {
            RateSchedule::Constant => 1.0,
            RateSchedule::WarmUpAndCosine => {
                let done = step as f64 / steps.max(1) as f64;
                let up = ((step + 1) as f64 / (WARM_UP * steps as f64)).min(1.0);
                let down = ((done - WARM_UP) / (1.0 - WARM_UP)).clamp(0.0, 1.0);
                up * 0.5 * (1.0 + (std::f64::consts::PI * down).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_goes_up_and_down_to_zero() {
        let rate = |step| RateSchedule::WarmUpAndCosine.factor(step, 100);
        assert!((rate(0) - 0.1).abs() < 1e-12 && (rate(10) - 1.0).abs() < 1e-12);
        assert!((rate(55) - 0.5).abs() < 1e-12 && rate(99) < 1e-3);
        assert!((0..9).all(|step| rate(step) < rate(step + 1)));
        assert!((10..99).all(|step| rate(step) > rate(step + 1)));
        assert_eq!(RateSchedule::Constant.factor(99, 100), 1.0);
    }
}
