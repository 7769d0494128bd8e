//! Losses of predicted waits, and their derivatives.

use poolcast_base::stats::pinball_loss;
use serde::{Deserialize, Serialize};

/// The loss that a network minimises. An error is the prediction minus the actual value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitLoss {
    /// Pinball loss, with one quantile per output (Koenker and Bassett 1978).
    Pinball {
        /// Quantiles, one per output.
        quantiles: Vec<f64>,
    },
    /// Absolute error.
    Absolute,
    /// Squared error.
    Squared,
}

impl WaitLoss {
    /// Returns the sum of the losses of `outputs` `[k]`, given the actual value `target`. Writes
    /// the derivatives to `slopes`.
    pub fn slopes(&self, outputs: &[f32], target: f64, slopes: &mut [f32]) -> f64 {
        let mut sum = 0.0;
        for (place, (output, slope)) in outputs.iter().zip(slopes).enumerate() {
            let error = f64::from(*output) - target;
            let (loss, derivative) = match self {
                WaitLoss::Pinball { quantiles } => {
                    let quantile = quantiles[place];
                    let above = if error > 0.0 { 1.0 } else { 0.0 };
                    (pinball_loss(quantile, -error), above - quantile)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_match_numerical_derivatives() {
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
        assert_eq!(
            [pinball_loss(0.75, 2.0), pinball_loss(0.75, -2.0)],
            [1.5, 0.5]
        );
    }
}
