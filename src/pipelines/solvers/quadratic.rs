//! Quadratic approximation of a logistic objective, minimised by coordinate descent, or without an L1 penalty
//! by a factorisation of its Hessian.
//!
//! The descent is from Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear
//! models via coordinate descent", Journal of Statistical Software 33(1), 2010.

use anyhow::Result;

use super::cholesky::solve_symmetric;
use super::matrix::{add_scaled, dot_product, products_of_columns};
use super::objective::LogisticObjective;
use super::stop::StopSignal;

/// Maximum number of sweeps over the coordinates in one Newton step.
const MAX_SWEEPS: usize = 10_000;
/// Gain of a sweep, relative to the first sweep, at which the descent stops.
const GAIN_TOLERANCE: f64 = 1e-5;

/// The objective around some weights, with its loss as a quadratic form.
pub(super) struct QuadraticModel<'a> {
    objective: &'a LogisticObjective,
    /// Weights around which the loss was expanded, `[o, w]`.
    start: &'a [f64],
    /// Weights with the smallest value so far, `[o, w]`.
    pub(super) weights: Vec<f64>,
    /// Probability of each logit's class at `start`, `[o, n]`.
    probabilities: Vec<f64>,
    /// Gradient of the loss at `start`, `[o, w]`.
    start_gradient: Vec<f64>,
    /// Gradient of the quadratic form at `weights`, `[o, w]`.
    gradient: Vec<f64>,
    /// Diagonal of the Hessian of the loss, `[o, w]`.
    curvatures: Vec<f64>,
    /// Rows of the Hessian for the weights that have moved, `[o, w]` of `[o, w]`. With an L1
    /// penalty, few weights ever move. With these rows, the cost of a sweep does not depend on the
    /// number of rows of `x`.
    hessian_rows: Vec<Option<Box<[f64]>>>,
}

impl<'a> QuadraticModel<'a> {
    /// Creates the approximation around `start`, whose logits are `logits` `[o, n]`.
    pub(super) fn new(
        objective: &'a LogisticObjective,
        start: &'a [f64],
        logits: &[f64],
    ) -> QuadraticModel<'a> {
        let x = &objective.x;
        let factors = &objective.loss_factors;
        let probabilities = objective.probabilities(logits);

        // For a row with the factor `c`, the gradient with respect to a logit is `c * (p - y)`, and
        // the second derivative is `c * p * (1 - p)`.
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

    /// Moves the weights to the minimum of the form, or near to it.
    pub(super) fn minimise(&mut self, stop: StopSignal<'_>) -> Result<()> {
        // With more weights than rows, most of the factorisation's work is for directions that only the penalty
        // decides, and the descent is faster.
        let is_small = self.weights.len() <= self.objective.x.n;
        if self.objective.penalty.l1_ratio == 0.0 && is_small {
            self.solve()
        } else {
            self.descend(stop)
        }
    }

    /// Solves for the minimum of the form and of an L2 penalty. Where columns are correlated, the descent needs
    /// thousands of sweeps for the same.
    fn solve(&mut self) -> Result<()> {
        let count = self.weights.len();
        let mut hessian = hessian_of_loss(self.objective, &self.probabilities)?;
        let mut target = Vec::with_capacity(count);
        for (place, weight) in self.start.iter().enumerate() {
            let l2 = self.objective.penalty_factors(place).l2;
            hessian[place * count + place] += l2;
            target.push(-self.start_gradient[place] - l2 * weight);
        }

        let step = solve_symmetric(&mut hessian, &target);
        for (weight, step) in self.weights.iter_mut().zip(&step) {
            *weight += step;
        }
        Ok(())
    }

    /// Sweeps over all weights, then over the nonzero ones until they converge, and repeats this
    /// until all converge. This is the active set strategy of the paper's section 2.6 and of
    /// glmnet.
    fn descend(&mut self, stop: StopSignal<'_>) -> Result<()> {
        let all: Vec<usize> = (0..self.weights.len()).collect();
        let first_gain = self.sweep(&all);
        let enough = GAIN_TOLERANCE * first_gain;

        let mut sweeps = 1;
        while sweeps < MAX_SWEEPS {
            // Most weights stay at 0, so a sweep over the others is far cheaper.
            let active = self.active_indices();
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

    /// Returns the indices of the intercepts and of the nonzero weights.
    fn active_indices(&self) -> Vec<usize> {
        (0..self.weights.len())
            .filter(|place| self.weights[*place] != 0.0 || self.objective.is_intercept(*place))
            .collect()
    }

    /// Minimises along each of the coordinates `places` in turn; returns twice the largest gain.
    fn sweep(&mut self, places: &[usize]) -> f64 {
        places
            .iter()
            .map(|place| self.minimise_coordinate(*place))
            .fold(0.0, f64::max)
    }

    /// Moves one weight to the minimum of the form; returns twice the gain.
    fn minimise_coordinate(&mut self, place: usize) -> f64 {
        let factors = self.objective.penalty_factors(place);
        let curvature = self.curvatures[place] + factors.l2;
        // A column that is 0 everywhere has no curvature, and the form does not depend on its
        // weight.
        if curvature <= f64::MIN_POSITIVE {
            return 0.0;
        }

        // Soft thresholding: the paper's equations 5 and 6.
        let before = self.weights[place];
        let target = self.curvatures[place] * before - self.gradient[place];
        let after = target.signum() * (target.abs() - factors.l1).max(0.0) / curvature;

        if after != before {
            self.weights[place] = after;
            // The gradient of a quadratic form changes by a multiple of its Hessian's row.
            let row = self.hessian_rows[place]
                .get_or_insert_with(|| hessian_row(self.objective, &self.probabilities, place));
            add_scaled(&mut self.gradient, after - before, row);
        }
        curvature * (after - before).powi(2)
    }

    /// Returns the expected change of the objective from `start` to `weights`, to first order in
    /// the loss. It never exceeds 0.
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

/// Returns the factors of `x_i * x_j` in the second derivatives of the loss with respect to a weight of the logit
/// `output` and one of the logit `other`, `[n]`. Within one logit they are `c * p * (1 - p)`, and between two
/// logits `-c * p * q`, where `c` is the factor of the row.
fn curvature_factors(
    objective: &LogisticObjective,
    probabilities: &[f64],
    output: usize,
    other: usize,
) -> Vec<f64> {
    let n = objective.x.n;
    let own = &probabilities[output * n..][..n];
    let p = &probabilities[other * n..][..n];
    (0..n)
        .map(|row| {
            let covariance = if other == output {
                p[row] * (1.0 - p[row])
            } else {
                -p[row] * own[row]
            };
            objective.loss_factors[row] * covariance
        })
        .collect()
}

/// Returns all second derivatives of the loss, `[o, w, o, w]`.
fn hessian_of_loss(objective: &LogisticObjective, probabilities: &[f64]) -> Result<Vec<f64>> {
    let x = &objective.x;
    let count = objective.weight_count();
    let mut hessian = vec![0.0; count * count];
    for output in 0..objective.output_count {
        for other in 0..=output {
            let factors = curvature_factors(objective, probabilities, output, other);
            let block = products_of_columns(x, Some(&factors))?;
            // The block is symmetric, and so is the whole.
            for (row, values) in block.chunks_exact(x.f).enumerate() {
                let at = |a: usize, b: usize| (a * x.f + row) * count + b * x.f;
                hessian[at(output, other)..][..x.f].copy_from_slice(values);
                hessian[at(other, output)..][..x.f].copy_from_slice(values);
            }
        }
    }
    Ok(hessian)
}

/// Returns the second derivatives of the loss with respect to the weight at index `place` and every
/// other weight, `[o, w]`.
fn hessian_row(objective: &LogisticObjective, probabilities: &[f64], place: usize) -> Box<[f64]> {
    let x = &objective.x;
    let column = x.column(place % x.f);
    let mut hessian = Vec::with_capacity(objective.weight_count());
    for other in 0..objective.output_count {
        let factors = curvature_factors(objective, probabilities, place / x.f, other);
        let factors: Vec<f64> = factors.iter().zip(column).map(|(c, x)| c * x).collect();
        hessian.extend((0..x.f).map(|other| dot_product(&factors, x.column(other))));
    }
    hessian.into_boxed_slice()
}
