//! Logistic regression with an L2 penalty alone: columns and classes → the weights of the logits.
//!
//! Without an L1 penalty the objective is smooth. L-BFGS finds its minimum (Nocedal and Wright, "Numerical
//! optimization", 2nd edition, algorithm 7.4), with the inverse of the Hessian at an earlier point as its first
//! estimate: so it needs few steps where columns are correlated, too, and each step costs two passes over the
//! columns. scikit-learn's `lbfgs` and `newton-cholesky` reach the same minimum.

use std::collections::VecDeque;

use anyhow::Result;

use super::cholesky::CholeskyFactor;
use super::fit_point::FitPoint;
use super::matrix::{add_scaled, dot_product};
use super::objective::LogisticObjective;
use super::stop::StopSignal;

/// Maximum number of Hessians. One or two suffice, unless the classes are perfectly separable.
const MAX_HESSIANS: usize = 50;
/// Number of steps after which the Hessian is computed again, because the curvature has changed.
const STEPS_PER_HESSIAN: usize = 20;
/// Expected gain of a step, relative to the objective, at which the fit stops.
const GAIN_TOLERANCE: f64 = 1e-13;

/// Returns the weights `[o, w]` that minimise `objective`, whose penalty must be L2 alone.
pub(super) fn minimise_smooth(
    objective: &LogisticObjective,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let mut point = FitPoint::zero(objective);
    for _ in 0..MAX_HESSIANS {
        let hessian = hessian(objective, &point)?;
        let mut steps = StepHistory::new(CholeskyFactor::new(hessian, point.weights.len()));
        let mut gradient = gradient(objective, &point);
        for _ in 0..STEPS_PER_HESSIAN {
            stop.check()?;
            let step = steps.newton_step(&gradient);
            let expected = dot_product(&gradient, &step);
            // Rounding can make the expected change NaN. The fit stops then, too.
            if expected.is_nan() || expected >= -GAIN_TOLERANCE * point.value.abs() {
                return Ok(point.weights);
            }
            let Some(next) = point.search_line(objective, &step, expected) else {
                return Ok(point.weights);
            };

            let next_gradient = self::gradient(objective, &next);
            steps.push(
                difference(&next.weights, &point.weights),
                difference(&next_gradient, &gradient),
            );
            (point, gradient) = (next, next_gradient);
        }
    }
    Ok(point.weights)
}

/// Returns the gradient of the objective at `point`, `[o, w]`.
fn gradient(objective: &LogisticObjective, point: &FitPoint) -> Vec<f64> {
    let mut gradient = objective.loss_gradient(&objective.probabilities(&point.logits));
    for (place, (gradient, weight)) in gradient.iter_mut().zip(&point.weights).enumerate() {
        *gradient += objective.penalty_factors(place).l2 * weight;
    }
    gradient
}

/// Returns the second derivatives of the objective at `point`, `[o, w, o, w]`.
fn hessian(objective: &LogisticObjective, point: &FitPoint) -> Result<Vec<f64>> {
    let count = objective.weight_count();
    let mut hessian = objective.loss_hessian(&objective.probabilities(&point.logits))?;
    for place in 0..count {
        hessian[place * count + place] += objective.penalty_factors(place).l2;
    }
    Ok(hessian)
}

/// The steps since a Hessian was computed, from which the change of the curvature is known.
struct StepHistory {
    hessian: CholeskyFactor,
    /// Changes of the weights and of the gradient, `[o, w]` each, the oldest first.
    changes: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl StepHistory {
    fn new(hessian: CholeskyFactor) -> StepHistory {
        StepHistory {
            hessian,
            changes: VecDeque::new(),
        }
    }

    fn push(&mut self, weights: Vec<f64>, gradient: Vec<f64>) {
        // The objective is convex, so only rounding makes the product negative.
        if dot_product(&weights, &gradient) > 0.0 {
            self.changes.push_back((weights, gradient));
        }
    }

    /// Returns the step to the minimum of the quadratic form with `gradient` and the curvature that is known.
    fn newton_step(&self, gradient: &[f64]) -> Vec<f64> {
        let mut rest: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
        let mut shares = Vec::with_capacity(self.changes.len());
        for (weights, slopes) in self.changes.iter().rev() {
            let share = dot_product(weights, &rest) / dot_product(weights, slopes);
            add_scaled(&mut rest, -share, slopes);
            shares.push(share);
        }

        let mut step = self.hessian.solve(&rest);
        for ((weights, slopes), share) in self.changes.iter().zip(shares.iter().rev()) {
            let back = dot_product(slopes, &step) / dot_product(weights, slopes);
            add_scaled(&mut step, share - back, weights);
        }
        step
    }
}

fn difference(to: &[f64], from: &[f64]) -> Vec<f64> {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::super::labels::ClassLabels;
    use super::super::matrix::ColumnMatrix;
    use super::super::objective::ElasticNetPenalty;
    use super::*;

    /// Returns the largest slope that is left at the minimum of rows of `classes` classes, whose second column is
    /// nearly the first and whose third is constant.
    fn slope_at_minimum(classes: u32, c: f64) -> f64 {
        let n = 200_usize;
        let mut generator = poolcast_base::seed::generator(1, "rows", &[]);
        let mut random = || generator.random_range(-1.0..1.0);
        let first: Vec<f64> = (0..n).map(|_| random()).collect();
        let second = first.iter().map(|value| value + 1e-4 * random()).collect();
        let noise: Vec<f64> = (0..n).map(|_| 0.3 * random()).collect();
        let y: Vec<u32> = first
            .iter()
            .zip(&noise)
            .map(|(value, noise)| {
                ((value + noise + 1.0) / 2.0 * f64::from(classes))
                    .clamp(0.0, f64::from(classes) - 1.0) as u32
            })
            .collect();
        let weights: Vec<f64> = (0..n).map(|row| (row % 3) as f64).collect();

        let x = ColumnMatrix {
            n,
            f: 4,
            values: [first, second, vec![2.0; n], vec![1.0; n]].concat(),
        };
        let labels = ClassLabels {
            y: &y,
            weights: &weights,
            class_count: classes as usize,
        };
        let objective = LogisticObjective::new(x, labels, ElasticNetPenalty { c, l1_ratio: 0.0 });
        let weights = minimise_smooth(&objective, StopSignal::new(&|| false)).expect("fitted");
        let point = FitPoint {
            logits: objective.logits(&weights),
            value: 0.0,
            weights,
        };
        let slopes = gradient(&objective, &point);
        slopes.into_iter().map(f64::abs).fold(0.0, f64::max) / c.max(1.0)
    }

    #[test]
    fn nothing_is_left_to_gain_at_the_minimum() {
        for classes in [2, 3, 5] {
            for c in [1e-3, 1.0, 1e3, 1e6] {
                let slope = slope_at_minimum(classes, c);
                assert!(slope < 1e-5, "{classes} classes, C {c}: {slope}");
            }
        }
    }
}
