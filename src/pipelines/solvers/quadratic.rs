//! Quadratic approximation of a logistic objective, minimised by coordinate descent.
//!
//! The method is from Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear
//! models via coordinate descent", Journal of Statistical Software 33(1), 2010.

use anyhow::Result;

use super::matrix::{MAX_PAIRED_COLUMNS, add_scaled, dot_product};
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
    /// Rows of the Hessian, `[o, w]` of `[o, w]`: of all weights, or where these are many, of those that have moved,
    /// as with an L1 penalty few ever move. With these rows, the cost of a sweep does not depend on
    /// the number of rows of `x`.
    hessian_rows: Vec<Option<Box<[f64]>>>,
}

impl<'a> QuadraticModel<'a> {
    /// Creates the approximation around `start`, whose logits are `logits` `[o, n]`.
    pub(super) fn new(
        objective: &'a LogisticObjective,
        start: &'a [f64],
        logits: &[f64],
    ) -> Result<QuadraticModel<'a>> {
        let probabilities = objective.probabilities(logits);

        let start_gradient = objective.loss_gradient(&probabilities);
        // A product of matrices takes a tenth of the time of single rows.
        let hessian_rows = if start.len() <= MAX_PAIRED_COLUMNS {
            let hessian = objective.loss_hessian(&probabilities)?;
            hessian
                .chunks_exact(start.len())
                .map(|row| Some(Box::from(row)))
                .collect()
        } else {
            vec![None; start.len()]
        };

        Ok(QuadraticModel {
            objective,
            start,
            weights: start.to_vec(),
            curvatures: objective.loss_curvatures(&probabilities),
            probabilities,
            gradient: start_gradient.clone(),
            start_gradient,
            hessian_rows,
        })
    }

    /// Sweeps over all weights, then over the nonzero ones until they converge, and repeats this
    /// until all converge. This is the active set strategy of the paper's section 2.6 and of
    /// glmnet.
    pub(super) fn minimise(&mut self, stop: StopSignal<'_>) -> Result<()> {
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

/// Returns the second derivatives of the loss with respect to the weight at index `place` and every
/// other weight, `[o, w]`.
fn hessian_row(objective: &LogisticObjective, probabilities: &[f64], place: usize) -> Box<[f64]> {
    let x = &objective.x;
    let column = x.column(place % x.f);
    let mut hessian = Vec::with_capacity(objective.weight_count());
    for other in 0..objective.output_count {
        let factors = objective.curvature_factors(probabilities, place / x.f, other);
        let factors: Vec<f64> = factors.iter().zip(column).map(|(c, x)| c * x).collect();
        hessian.extend((0..x.f).map(|other| dot_product(&factors, x.column(other))));
    }
    hessian.into_boxed_slice()
}
