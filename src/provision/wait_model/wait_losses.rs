//! Losses of what is said of waits, and their derivatives.

use serde::{Deserialize, Serialize};

/// What a network minimises. Errors are what it says less what came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WaitLoss {
    /// The pinball loss of a quantile for each output (Koenker and Bassett 1978).
    Pinball { quantiles: Vec<f64> },
    /// The absolute error.
    Absolute,
    /// Its square.
    Squared,
}

impl WaitLoss {
    /// The sum of the losses of `outputs` `[k]`, where `target` came; writes down its derivatives.
    pub(super) fn slopes(&self, outputs: &[f32], target: f64, slopes: &mut [f32]) -> f64 {
        let mut sum = 0.0;
        for (place, (output, slope)) in outputs.iter().zip(slopes).enumerate() {
            let error = f64::from(*output) - target;
            let (loss, derivative) = match self {
                WaitLoss::Pinball { quantiles } => {
                    let quantile = quantiles[place];
                    let above = if error > 0.0 { 1.0 } else { 0.0 };
                    (pinball(quantile, -error), above - quantile)
                }
                WaitLoss::Absolute => (error.abs(), if error > 0.0 { 1.0 } else { -1.0 }),
                WaitLoss::Squared => (error * error, 2.0 * error),
            };
            sum += loss;
            *slope = derivative as f32;
        }
        sum
    }
}

/// The pinball loss of a quantile that `excess` came above: the quantile of a sample is what makes
/// its mean least.
pub(super) fn pinball(quantile: f64, excess: f64) -> f64 {
    if excess > 0.0 {
        quantile * excess
    } else {
        (quantile - 1.0) * excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_losses() {
        let losses = [
            WaitLoss::Pinball {
                quantiles: vec![0.5, 0.9],
            },
            WaitLoss::Absolute,
            WaitLoss::Squared,
        ];
        for loss in losses {
            let mut slopes = [0.0; 2];
            let outputs = [1.5f32, -0.25];
            loss.slopes(&outputs, 0.5, &mut slopes);
            for place in 0..2 {
                let at = |by: f32| {
                    let mut moved = outputs;
                    moved[place] += by;
                    loss.slopes(&moved, 0.5, &mut [0.0; 2])
                };
                let slope = (at(1.0 / 64.0) - at(-1.0 / 64.0)) * 32.0;
                assert!((slope - f64::from(slopes[place])).abs() < 1e-6, "{loss:?}");
            }
        }
        assert_eq!([pinball(0.75, 2.0), pinball(0.75, -2.0)], [1.5, 0.5]);
    }
}
