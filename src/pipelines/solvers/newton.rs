//! Logistic regression by proximal Newton steps: columns and classes → the weights of the logits.
//!
//! Each step approximates the loss around the current weights by a quadratic form. Coordinate
//! descent finds the penalised minimum of this form, and a line search decides how far to move
//! towards it (Lee, Sun and Saunders, "Proximal Newton-type methods for minimizing composite
//! functions", SIAM Journal on Optimization 24(3), 2014). scikit-learn's `saga` and `lbfgs` reach
//! the same minimum.
//!
//! With four classes or a larger even number, an L1 penalty alone has many minima: the penalty does
//! not change while the weights of a column move together between the middle two.

use anyhow::Result;

use super::labels::ClassLabels;
use super::matrix::ColumnMatrix;
use super::objective::{ElasticNetPenalty, LogisticObjective};
use super::quadratic::QuadraticModel;
use super::stop::StopSignal;

/// Maximum number of Newton steps. A handful suffices, unless the classes are perfectly separable.
const MAX_STEPS: usize = 100;
/// Expected gain of a step, relative to the objective, at which the fit stops.
const GAIN_TOLERANCE: f64 = 1e-13;
/// Minimum fraction of a step that the line search tries.
const MIN_STEP: f64 = 1e-10;
/// Share of its expected gain that a step must reach (Armijo's condition).
const SUFFICIENT_DECREASE: f64 = 0.01;

/// Returns the weights `[o, w]` that minimise the objective: for each logit, the weights of the
/// columns of `x`, with the intercept last. The last column of `x` must be all ones, for the
/// intercepts.
pub(crate) fn minimise_objective(
    x: ColumnMatrix,
    labels: ClassLabels<'_>,
    penalty: ElasticNetPenalty,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let mut fit = NewtonFit::new(LogisticObjective::new(x, labels, penalty));
    for _ in 0..MAX_STEPS {
        stop.check()?;
        if !fit.step(stop)? {
            break;
        }
    }
    Ok(fit.point.weights)
}

/// Weights, with their logits and their objective.
struct FitPoint {
    /// Weights, `[o, w]`.
    weights: Vec<f64>,
    /// Logits, `[o, n]`.
    logits: Vec<f64>,
    /// Objective at the weights.
    value: f64,
}

/// State of the fit.
struct NewtonFit {
    objective: LogisticObjective,
    point: FitPoint,
}

impl NewtonFit {
    fn new(objective: LogisticObjective) -> NewtonFit {
        let weights = vec![0.0; objective.weight_count()];
        let logits = vec![0.0; objective.truth.len()];
        let value = objective.value(&weights, &logits);
        NewtonFit {
            objective,
            point: FitPoint {
                weights,
                logits,
                value,
            },
        }
    }

    /// Takes one Newton step; returns true if a further step may gain something.
    fn step(&mut self, stop: StopSignal<'_>) -> Result<bool> {
        let point = &self.point;
        let mut model = QuadraticModel::new(&self.objective, &point.weights, &point.logits);
        model.minimise(stop)?;

        let expected = model.expected_change();
        // Rounding can make the expected change NaN. The fit stops then, too.
        if expected.is_nan() || expected >= -GAIN_TOLERANCE * point.value.abs() {
            return Ok(false);
        }

        let step: Vec<f64> = model
            .weights
            .iter()
            .zip(&point.weights)
            .map(|(to, from)| to - from)
            .collect();
        match self.search_line(&step, expected) {
            Some(better) => {
                self.point = better;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Halves `step` `[o, w]` until it gains enough of the `expected` change; returns the point
    /// there. Returns `None` if rounding leaves nothing to gain.
    fn search_line(&self, step: &[f64], expected: f64) -> Option<FitPoint> {
        // Logits are linear in the weights, so one product serves all fractions of the step.
        let logit_step = self.objective.logits(step);

        let mut t = 1.0;
        while t > MIN_STEP {
            let weights = move_along(&self.point.weights, step, t);
            let logits = move_along(&self.point.logits, &logit_step, t);
            let value = self.objective.value(&weights, &logits);
            if value <= self.point.value + SUFFICIENT_DECREASE * t * expected {
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
