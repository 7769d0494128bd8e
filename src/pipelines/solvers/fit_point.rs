//! A point of a fit, and the search along a step from it.

use super::objective::LogisticObjective;

/// Expected gain of a step, relative to the objective, at which the fit stops.
const GAIN_TOLERANCE: f64 = 1e-13;
/// Minimum fraction of a step that the line search tries.
const MIN_STEP: f64 = 1e-10;
/// Share of its expected gain that a step must reach (Armijo's condition).
const SUFFICIENT_DECREASE: f64 = 0.01;

/// Weights, with their logits and their objective.
pub(super) struct FitPoint {
    /// Weights, `[o, w]`.
    pub(super) weights: Vec<f64>,
    /// Logits, `[o, n]`.
    pub(super) logits: Vec<f64>,
    /// Objective at the weights.
    pub(super) value: f64,
}

impl FitPoint {
    /// Returns the point whose weights are all 0.
    pub(super) fn zero(objective: &LogisticObjective) -> FitPoint {
        let weights = vec![0.0; objective.weight_count()];
        let logits = vec![0.0; objective.truth.len()];
        let value = objective.value(&weights, &logits);
        FitPoint {
            weights,
            logits,
            value,
        }
    }

    /// Halves `step` `[o, w]` until it gains enough of the `expected` change; returns the point
    /// there. Returns `None` if the step gains nothing beyond rounding.
    pub(super) fn search_line(
        &self,
        objective: &LogisticObjective,
        step: &[f64],
        expected: f64,
    ) -> Option<FitPoint> {
        // Rounding can make the expected change NaN. The fit stops then, too.
        if expected.is_nan() || expected >= -GAIN_TOLERANCE * self.value.abs() {
            return None;
        }

        // Logits are linear in the weights, so one product serves all fractions of the step.
        let logit_step = objective.logits(step);

        let mut t = 1.0;
        while t > MIN_STEP {
            let weights = move_along(&self.weights, step, t);
            let logits = move_along(&self.logits, &logit_step, t);
            let value = objective.value(&weights, &logits);
            if value <= self.value + SUFFICIENT_DECREASE * t * expected {
                return Some(FitPoint {
                    weights,
                    logits,
                    value,
                });
            }
            t /= 2.0;
        }
        None
    }
}

fn move_along(from: &[f64], step: &[f64], t: f64) -> Vec<f64> {
    from.iter()
        .zip(step)
        .map(|(from, step)| from + t * step)
        .collect()
}
