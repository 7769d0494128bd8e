//! Logistic regression with an L2 penalty alone: columns and classes → the weights of the logits.
//!
//! Without an L1 penalty the objective is smooth. L-BFGS finds its minimum (Nocedal and Wright, "Numerical
//! optimization", 2nd edition, algorithm 7.4), with the inverse of the Hessian at an earlier point as its first
//! estimate: so it needs few steps where columns are correlated, too, and each step costs two passes over the
//! columns. With many weights, the estimate is the inverse of the Hessian's diagonal. scikit-learn's `lbfgs` and
//! `newton-cholesky` reach the same minimum.

use std::collections::VecDeque;

use anyhow::Result;

use super::cholesky::CholeskyFactor;
use super::fit_point::FitPoint;
use super::matrix::{MAX_PAIRED_COLUMNS, add_scaled, difference, dot_product};
use super::objective::LogisticObjective;
use super::stop::StopSignal;

/// Maximum number of estimates. One or two suffice, unless the classes are perfectly separable.
const MAX_ESTIMATES: usize = 50;
/// Number of steps after which a Hessian is computed again, because the curvature has changed.
const STEPS_PER_HESSIAN: usize = 20;
/// The same for the diagonal of a Hessian, which is worth less than what the steps have shown.
const STEPS_PER_DIAGONAL: usize = 100;
/// Number of steps that are remembered.
const MAX_CHANGES: usize = 20;

/// Returns the weights `[o, w]` that minimise `objective`, whose penalty must be L2 alone.
pub(super) fn minimise_smooth(
    objective: &LogisticObjective,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let mut point = FitPoint::zero(objective);
    let mut gradient = gradient(objective, &point);
    for _ in 0..MAX_ESTIMATES {
        let mut steps = StepHistory {
            first: FirstEstimate::new(objective, &point)?,
            changes: VecDeque::new(),
        };
        for _ in 0..steps.first.step_count() {
            stop.check()?;
            let step = steps.newton_step(&gradient);
            let expected = dot_product(&gradient, &step);
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

/// The curvature of the objective at one point.
enum FirstEstimate {
    /// The second derivatives with respect to all pairs of weights.
    Hessian(CholeskyFactor),
    /// The second derivative with respect to each weight, `[o, w]`.
    Diagonal(Vec<f64>),
}

impl FirstEstimate {
    fn new(objective: &LogisticObjective, point: &FitPoint) -> Result<FirstEstimate> {
        let probabilities = objective.probabilities(&point.logits);
        let count = objective.weight_count();
        let l2 = |place: usize| objective.penalty_factors(place).l2;
        // With more weights than rows, most of the work of a factorisation is for directions that only the penalty
        // decides.
        if count > objective.x.n.min(MAX_PAIRED_COLUMNS) {
            let mut diagonal = objective.loss_curvatures(&probabilities);
            for (place, curvature) in diagonal.iter_mut().enumerate() {
                *curvature += l2(place);
            }
            return Ok(FirstEstimate::Diagonal(diagonal));
        }

        let mut hessian = objective.loss_hessian(&probabilities)?;
        for place in 0..count {
            hessian[place * count + place] += l2(place);
        }
        Ok(FirstEstimate::Hessian(CholeskyFactor::new(hessian, count)))
    }

    /// Returns the number of steps for which it is used.
    fn step_count(&self) -> usize {
        match self {
            FirstEstimate::Hessian(_) => STEPS_PER_HESSIAN,
            FirstEstimate::Diagonal(_) => STEPS_PER_DIAGONAL,
        }
    }

    /// Returns the `x` `[o, w]` whose product with the curvature is `target` `[o, w]`.
    fn solve(&self, target: &[f64]) -> Vec<f64> {
        match self {
            FirstEstimate::Hessian(factor) => factor.solve(target),
            FirstEstimate::Diagonal(curvatures) => {
                let quotient = |(target, curvature): (&f64, &f64)| {
                    // The weight of a column that is 0 everywhere stays 0.
                    if *curvature > f64::MIN_POSITIVE {
                        target / curvature
                    } else {
                        0.0
                    }
                };
                target.iter().zip(curvatures).map(quotient).collect()
            }
        }
    }
}

/// An estimate of the curvature, and the steps since, from which its change is known.
struct StepHistory {
    first: FirstEstimate,
    /// Changes of the weights and of the gradient, `[o, w]` each, the oldest first.
    changes: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl StepHistory {
    fn push(&mut self, weights: Vec<f64>, gradient: Vec<f64>) {
        // The objective is convex, so only rounding makes the product negative.
        if dot_product(&weights, &gradient) > 0.0 {
            self.changes.push_back((weights, gradient));
        }
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
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

        let mut step = self.first.solve(&rest);
        for ((weights, slopes), share) in self.changes.iter().zip(shares.iter().rev()) {
            let back = dot_product(slopes, &step) / dot_product(weights, slopes);
            add_scaled(&mut step, share - back, weights);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::super::labels::ClassLabels;
    use super::super::matrix::ColumnMatrix;
    use super::super::objective::ElasticNetPenalty;
    use super::*;

    /// Returns the largest slope that is left at the minimum of `n` rows of `classes` classes. The second column is
    /// nearly the first, the third is constant, and `more` columns are random.
    fn slope_at_minimum(n: usize, more: usize, classes: u32, c: f64) -> f64 {
        let mut generator = poolcast_base::seed::generator(1, "rows", &[]);
        let mut random = |count: usize| -> Vec<f64> {
            (0..count)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect()
        };
        let first = random(n);
        let second = first
            .iter()
            .zip(random(n))
            .map(|(x, noise)| x + 1e-4 * noise);
        let second: Vec<f64> = second.collect();
        let most = f64::from(classes) - 1.0;
        let class_of = |(x, noise): (&f64, f64)| {
            let share = (x + 0.3 * noise + 1.0) / 2.0;
            (share * f64::from(classes)).clamp(0.0, most) as u32
        };
        let y: Vec<u32> = first.iter().zip(random(n)).map(class_of).collect();
        let weights: Vec<f64> = (0..n).map(|row| (row % 3) as f64).collect();

        let x = ColumnMatrix {
            n,
            f: more + 4,
            values: [first, second, vec![2.0; n], random(n * more), vec![1.0; n]].concat(),
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
                let slope = slope_at_minimum(200, 0, classes, c);
                assert!(slope < 1e-5, "{classes} classes, C {c}: {slope}");
            }
        }
    }

    #[test]
    fn nothing_is_left_to_gain_with_more_weights_than_rows() {
        for classes in [2, 3] {
            for c in [1e-3, 1.0, 1e3] {
                let slope = slope_at_minimum(40, 100, classes, c);
                assert!(slope < 1e-5, "{classes} classes, C {c}: {slope}");
            }
        }
    }
}
