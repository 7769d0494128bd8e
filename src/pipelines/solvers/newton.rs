//! Logistic regression: columns and classes → the weights of the logits, by proximal Newton steps, or without an
//! L1 penalty by `quasi_newton.rs`.
//!
//! Each Newton step approximates the loss around the current weights by a quadratic form. Coordinate
//! descent finds the penalised minimum of this form, and a line search decides how far to move
//! towards it (Lee, Sun and Saunders, "Proximal Newton-type methods for minimizing composite
//! functions", SIAM Journal on Optimization 24(3), 2014). scikit-learn's `saga` and `lbfgs` reach
//! the same minimum.
//!
//! With four classes or a larger even number, an L1 penalty alone has many minima: the penalty does
//! not change while the weights of a column move together between the middle two.

use anyhow::Result;

use super::fit_point::FitPoint;
use super::labels::ClassLabels;
use super::matrix::{ColumnMatrix, difference};
use super::objective::{ElasticNetPenalty, LogisticObjective};
use super::quadratic::QuadraticModel;
use super::quasi_newton::minimise_smooth;
use super::stop::StopSignal;

/// Maximum number of Newton steps. A handful suffices, unless the classes are perfectly separable.
const MAX_STEPS: usize = 100;

/// Returns the weights `[o, w]` that minimise the objective: for each logit, the weights of the
/// columns of `x`, with the intercept last. The last column of `x` must be all ones, for the
/// intercepts.
pub(crate) fn minimise_objective(
    x: ColumnMatrix,
    labels: ClassLabels<'_>,
    penalty: ElasticNetPenalty,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let objective = LogisticObjective::new(x, labels, penalty);
    if penalty.l1_ratio == 0.0 {
        return minimise_smooth(&objective, stop);
    }

    let mut point = FitPoint::zero(&objective);
    for _ in 0..MAX_STEPS {
        stop.check()?;
        match newton_step(&objective, &point, stop)? {
            Some(next) => point = next,
            None => break,
        }
    }
    Ok(point.weights)
}

/// Returns the point after one Newton step; `None` if a further step gains nothing.
fn newton_step(
    objective: &LogisticObjective,
    point: &FitPoint,
    stop: StopSignal<'_>,
) -> Result<Option<FitPoint>> {
    let mut model = QuadraticModel::new(objective, &point.weights, &point.logits)?;
    model.minimise(stop)?;

    let step = difference(&model.weights, &point.weights);
    Ok(point.search_line(objective, &step, model.expected_change()))
}
