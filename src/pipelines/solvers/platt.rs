//! Platt scaling: decision values of a support vector machine → probabilities of two classes.
//!
//! Newton's method with a backtracking line search fits Platt's sigmoid, as in Lin, Lin and Weng,
//! "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68,
//! 2007: libsvm's `sigmoid_train`.

use poolcast_base::stats::stable_sigmoid;

/// Maximum number of Newton steps.
const MAX_STEPS: usize = 100;
/// Absolute value that both entries of the gradient must fall below to stop.
const GRADIENT_TOLERANCE: f64 = 1e-5;
/// Addend to the diagonal of the Hessian, which keeps it positive definite.
const HESSIAN_RIDGE: f64 = 1e-12;
/// Minimum fraction of a Newton step that the line search tries.
const MIN_STEP: f64 = 1e-10;
/// Share of its expected gain that a step must reach (Armijo's condition).
const SUFFICIENT_DECREASE: f64 = 1e-4;

/// A sigmoid. The probability of the second class is `sigmoid(slope * decision + offset)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlattSigmoid {
    /// Increase of the logit per unit of the decision value.
    pub(crate) slope: f64,
    /// Logit at the decision value 0.
    pub(crate) offset: f64,
}

/// Fits a sigmoid to the `decisions` `[n]` of rows whose `signs` `[n]` are 1 or -1.
pub(crate) fn fit_sigmoid(decisions: &[f64], signs: &[f64]) -> PlattSigmoid {
    let positives = count_of_sign(signs, true);
    let negatives = count_of_sign(signs, false);
    let targets = smoothed_targets(signs, positives, negatives);

    let mut found = PlattSigmoid {
        slope: 0.0,
        offset: ((positives + 1.0) / (negatives + 1.0)).ln(),
    };
    let mut loss = found.log_loss(decisions, &targets);
    for _ in 0..MAX_STEPS {
        let derivatives = LossDerivatives::at(found, decisions, &targets);
        if derivatives.by_slope.abs() < GRADIENT_TOLERANCE
            && derivatives.by_offset.abs() < GRADIENT_TOLERANCE
        {
            break;
        }

        // Halve the step until it gains enough.
        let step = derivatives.newton_step();
        let expected = derivatives.by_slope * step.slope + derivatives.by_offset * step.offset;
        let mut t = 1.0;
        let (next, next_loss) = loop {
            // Rounding leaves nothing to gain, so this is the minimum.
            if t <= MIN_STEP {
                return found;
            }
            let next = PlattSigmoid {
                slope: found.slope + t * step.slope,
                offset: found.offset + t * step.offset,
            };
            let next_loss = next.log_loss(decisions, &targets);
            if next_loss < loss + SUFFICIENT_DECREASE * t * expected {
                break (next, next_loss);
            }
            t /= 2.0;
        };
        found = next;
        loss = next_loss;
    }
    found
}

fn count_of_sign(signs: &[f64], is_positive: bool) -> f64 {
    signs
        .iter()
        .filter(|sign| (**sign > 0.0) == is_positive)
        .count() as f64
}

/// Returns Platt's targets, slightly less than 1 and more than 0. Perfectly separable classes would
/// otherwise give an infinite slope.
fn smoothed_targets(signs: &[f64], positives: f64, negatives: f64) -> Vec<f64> {
    let high = (positives + 1.0) / (positives + 2.0);
    let low = 1.0 / (negatives + 2.0);
    signs
        .iter()
        .map(|sign| if *sign > 0.0 { high } else { low })
        .collect()
}

impl PlattSigmoid {
    /// Returns the logit of a row with this decision value.
    pub(crate) fn logit(self, decision: f64) -> f64 {
        self.slope * decision + self.offset
    }

    /// Computes the sum of the log losses, `ln(1 + exp(logit)) - target * logit`, written so that
    /// no exponential overflows.
    fn log_loss(self, decisions: &[f64], targets: &[f64]) -> f64 {
        decisions
            .iter()
            .zip(targets)
            .map(|(decision, target)| {
                let logit = self.logit(*decision);
                logit.max(0.0) + (-logit.abs()).exp().ln_1p() - target * logit
            })
            .sum()
    }
}

/// Gradient and Hessian of the log loss.
struct LossDerivatives {
    by_slope: f64,
    by_offset: f64,
    by_slope_twice: f64,
    by_slope_and_offset: f64,
    by_offset_twice: f64,
}

impl LossDerivatives {
    fn at(point: PlattSigmoid, decisions: &[f64], targets: &[f64]) -> LossDerivatives {
        let mut derivatives = LossDerivatives {
            by_slope: 0.0,
            by_offset: 0.0,
            by_slope_twice: HESSIAN_RIDGE,
            by_slope_and_offset: 0.0,
            by_offset_twice: HESSIAN_RIDGE,
        };
        for (decision, target) in decisions.iter().zip(targets) {
            let p = stable_sigmoid(point.logit(*decision));
            derivatives.by_slope += decision * (p - target);
            derivatives.by_offset += p - target;

            let variance = p * (1.0 - p);
            derivatives.by_slope_twice += decision * decision * variance;
            derivatives.by_slope_and_offset += decision * variance;
            derivatives.by_offset_twice += variance;
        }
        derivatives
    }

    /// Returns minus the inverse of the Hessian times the gradient, by Cramer's rule.
    fn newton_step(&self) -> PlattSigmoid {
        let determinant = self.by_slope_twice * self.by_offset_twice
            - self.by_slope_and_offset * self.by_slope_and_offset;
        PlattSigmoid {
            slope: (self.by_slope_and_offset * self.by_offset
                - self.by_offset_twice * self.by_slope)
                / determinant,
            offset: (self.by_slope_and_offset * self.by_slope
                - self.by_slope_twice * self.by_offset)
                / determinant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_and_offset_of_known_rows_are_recovered() {
        // At each value there are 200 rows. The share of sign 1 follows a slope of 2 and an offset
        // of -1.
        let grid: Vec<f64> = (-20..=20).map(|at| f64::from(at) / 10.0).collect();
        let ones = |value: f64| (200.0 * stable_sigmoid(2.0 * value - 1.0)).round() as usize;
        let rows = grid.iter().flat_map(|value| {
            (0..200).map(move |row| (*value, if row < ones(*value) { 1.0 } else { -1.0 }))
        });
        let (values, signs): (Vec<f64>, Vec<f64>) = rows.unzip();
        let PlattSigmoid { slope, offset } = fit_sigmoid(&values, &signs);
        assert!(
            (slope - 2.0).abs() < 0.02 && (offset + 1.0).abs() < 0.02,
            "{slope} {offset}"
        );
    }
}
