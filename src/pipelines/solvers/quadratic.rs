//! The quadratic approximation of a logistic objective, and its minimum by coordinate descent.
//!
//! Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear models via
//! coordinate descent", Journal of Statistical Software 33(1), 2010.

use anyhow::Result;

use super::matrix::{add_scaled, dot_product};
use super::objective::LogisticObjective;
use super::stop::StopSignal;

/// The most sweeps over the coordinates within one Newton step.
const MAX_SWEEPS: usize = 10_000;
/// The descent ends where a sweep gains no more than this share of what the first sweep gained.
const GAIN_TOLERANCE: f64 = 1e-5;

/// The objective around some weights, with its loss as a quadratic form.
pub(super) struct QuadraticModel<'a> {
    objective: &'a LogisticObjective,
    /// The weights around which the loss was expanded, `[o, w]`.
    start: &'a [f64],
    /// The weights of least value so far, `[o, w]`.
    pub(super) weights: Vec<f64>,
    /// The probability of each logit's class at `start`, `[o, n]`.
    probabilities: Vec<f64>,
    /// The gradient of the loss at `start`, `[o, w]`.
    start_gradient: Vec<f64>,
    /// The gradient of the quadratic form at `weights`, `[o, w]`.
    gradient: Vec<f64>,
    /// The diagonal of the Hessian of the loss, `[o, w]`.
    curvatures: Vec<f64>,
    /// The rows of the Hessian of those weights that have moved, `[o, w]` of `[o, w]`. Few weights
    /// ever move under an L1 penalty, and with these rows the cost of a sweep does not depend on
    /// how many rows `x` has.
    hessian_rows: Vec<Option<Box<[f64]>>>,
}

impl<'a> QuadraticModel<'a> {
    /// The approximation around `start`, which makes the logits `logits` `[o, n]`.
    pub(super) fn new(
        objective: &'a LogisticObjective,
        start: &'a [f64],
        logits: &[f64],
    ) -> QuadraticModel<'a> {
        let x = &objective.x;
        let factors = &objective.loss_factors;
        let probabilities = objective.probabilities(logits);

        // With the factor `c` of a row its gradient by a logit is `c * (p - y)`, the second derivative
        // `c * p * (1 - p)`.
        let mut start_gradient = Vec::with_capacity(start.len());
        let mut curvatures = Vec::with_capacity(start.len());
        for (p, truth) in probabilities
            .chunks_exact(x.n)
            .zip(objective.truth.chunks_exact(x.n))
        {
            let mut errors = Vec::with_capacity(x.n);
            let mut variances = Vec::with_capacity(x.n);
            for ((p, y), c) in p.iter().zip(truth).zip(factors) {
                errors.push(c * (p - y));
                variances.push(c * p * (1.0 - p));
            }
            for column in (0..x.f).map(|column| x.column(column)) {
                start_gradient.push(dot_product(column, &errors));
                curvatures.push(weighted_square(column, &variances));
            }
        }

        QuadraticModel {
            objective,
            start,
            weights: start.to_vec(),
            probabilities,
            gradient: start_gradient.clone(),
            start_gradient,
            curvatures,
            hessian_rows: vec![None; start.len()],
        }
    }

    /// Sweeps over all weights, then over those that are not 0 until they rest, and so on until all
    /// rest. This is the active set strategy of the paper's section 2.6 and of glmnet.
    pub(super) fn minimise(&mut self, stop: StopSignal<'_>) -> Result<()> {
        let all: Vec<usize> = (0..self.weights.len()).collect();
        let first_gain = self.sweep(&all);
        let enough = GAIN_TOLERANCE * first_gain;

        let mut sweeps = 1;
        while sweeps < MAX_SWEEPS {
            // Most weights rest at 0: a sweep over the others is far cheaper.
            let active = self.active_places();
            loop {
                stop.check()?;
                sweeps += 1;
                if self.sweep(&active) <= enough || sweeps >= MAX_SWEEPS {
                    break;
                }
            }

            sweeps += 1;
            if self.sweep(&all) <= enough {
                break;
            }
        }
        Ok(())
    }

    /// The places of the intercepts and of the weights that are not 0.
    fn active_places(&self) -> Vec<usize> {
        (0..self.weights.len())
            .filter(|place| self.weights[*place] != 0.0 || self.objective.is_intercept(*place))
            .collect()
    }

    /// Minimises along each of these coordinates in turn; returns the largest gain of one.
    fn sweep(&mut self, places: &[usize]) -> f64 {
        places
            .iter()
            .map(|place| self.minimise_coordinate(*place))
            .fold(0.0, f64::max)
    }

    /// Moves one weight to where the form is least, and returns what that gains, times two.
    fn minimise_coordinate(&mut self, place: usize) -> f64 {
        let factors = self.objective.penalty_factors(place);
        let curvature = self.curvatures[place] + factors.l2;
        // A column that is 0 everywhere has no curvature, and nothing depends on its weight.
        if curvature <= f64::MIN_POSITIVE {
            return 0.0;
        }

        // Soft thresholding: the paper's equations 5 and 6.
        let before = self.weights[place];
        let target = self.curvatures[place] * before - self.gradient[place];
        let after = target.signum() * (target.abs() - factors.l1).max(0.0) / curvature;

        if after != before {
            self.weights[place] = after;
            // The gradient of a quadratic form changes by the row of its Hessian.
            let row = self.hessian_rows[place]
                .get_or_insert_with(|| hessian_row(self.objective, &self.probabilities, place));
            add_scaled(&mut self.gradient, after - before, row);
        }
        curvature * (after - before).powi(2)
    }

    /// What the move from `start` to `weights` should change the objective by, to first order in
    /// the loss. It is never above 0.
    pub(super) fn expected_change(&self) -> f64 {
        let loss: f64 = self
            .start_gradient
            .iter()
            .zip(self.weights.iter().zip(self.start))
            .map(|(gradient, (to, from))| gradient * (to - from))
            .sum();
        loss + self.objective.penalty_value(&self.weights)
            - self.objective.penalty_value(self.start)
    }
}

fn weighted_square(column: &[f64], weights: &[f64]) -> f64 {
    column.iter().zip(weights).map(|(x, w)| x * x * w).sum()
}

/// The second derivatives of the loss by the weight at `place` and every other, `[o, w]`. Of one
/// logit they are `c * x_i * x_j * p * (1 - p)`, of two logits `-c * x_i * x_j * p * q`, where `c` is the
/// factor of the row.
fn hessian_row(objective: &LogisticObjective, probabilities: &[f64], place: usize) -> Box<[f64]> {
    let x = &objective.x;
    let output = place / x.f;
    let column = x.column(place % x.f);
    let own = &probabilities[output * x.n..][..x.n];

    let mut hessian = Vec::with_capacity(probabilities.len() / x.n * x.f);
    for (other, p) in probabilities.chunks_exact(x.n).enumerate() {
        let factors: Vec<f64> = (0..x.n)
            .map(|row| {
                let covariance = if other == output {
                    p[row] * (1.0 - p[row])
                } else {
                    -p[row] * own[row]
                };
                objective.loss_factors[row] * column[row] * covariance
            })
            .collect();
        hessian.extend((0..x.f).map(|other| dot_product(&factors, x.column(other))));
    }
    hessian.into_boxed_slice()
}
