//! Columns and classes → the weights of logits of least objective.
//!
//! Proximal Newton steps: around the weights so far the loss is a quadratic form, whose penalised
//! minimum coordinate descent finds, and a line search decides how far to go there (Lee, Sun and
//! Saunders, "Proximal Newton-type methods for minimizing composite functions", SIAM Journal on
//! Optimization 24(3), 2014). scikit-learn's `saga` and `lbfgs` end at the same minimum.
//!
//! With four classes or another even number an L1 penalty alone has many minima: the penalty does
//! not change while the weights of a column move together between the middle two.

use anyhow::Result;

use super::labels::ClassLabels;
use super::matrix::ColumnMatrix;
use super::objective::{ElasticNetPenalty, LogisticObjective};
use super::quadratic::QuadraticModel;
use super::stop::StopSignal;

/// The most Newton steps. A handful suffices unless classes can be told apart without error.
const MAX_STEPS: usize = 100;
/// The fit ends where a step can gain no more than this share of the objective.
const GAIN_TOLERANCE: f64 = 1e-13;
/// The smallest fraction of a step that the line search tries.
const MIN_STEP: f64 = 1e-10;
/// A step must gain this share of what is expected of it (Armijo's condition).
const SUFFICIENT_DECREASE: f64 = 0.01;

/// The weights `[o, w]` of least objective: of each logit the weights of the columns of `x` and,
/// last, the intercept. The last column of `x` stands for the intercepts and is all ones.
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

/// Weights, and what follows from them.
struct FitPoint {
    /// `[o, w]`.
    weights: Vec<f64>,
    /// `[o, n]`.
    logits: Vec<f64>,
    /// The objective.
    value: f64,
}

/// A fit on its way to the minimum.
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

    /// Makes one Newton step; says whether another may gain something.
    fn step(&mut self, stop: StopSignal<'_>) -> Result<bool> {
        let point = &self.point;
        let mut model = QuadraticModel::new(&self.objective, &point.weights, &point.logits);
        model.minimise(stop)?;

        let expected = model.expected_change();
        // Rounding ends here too: NaN is no promise of a gain.
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

    /// The first point along `step` `[o, w]`, halved again and again, that gains enough of the
    /// `expected` change; none where rounding leaves nothing to gain.
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
