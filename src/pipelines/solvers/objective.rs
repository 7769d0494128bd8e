//! The objective that logistic regression minimises.
//!
//! It is the objective of scikit-learn's `LogisticRegression`: `C * sum of weighted log losses +
//! l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|²`, without a penalty on the intercepts.

use anyhow::Result;

use super::labels::{ClassLabels, output_classes};
use super::logits::softmax_in_place;
use super::matrix::{ColumnMatrix, add_scaled, dot_product, products_of_columns};
use poolcast_base::stats::stable_sigmoid;

/// The elastic net penalty, in scikit-learn's terms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElasticNetPenalty {
    /// Weight of the losses relative to the penalty: `C`.
    pub(crate) c: f64,
    /// Share of the L1 penalty: 0 is L2 alone, 1 is L1 alone.
    pub(crate) l1_ratio: f64,
}

/// Penalty factors of one weight: `l1 * |w| + l2 / 2 * w²`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PenaltyFactors {
    pub(super) l1: f64,
    pub(super) l2: f64,
}

/// Objective of the weights `[o, w]` of `o` logits over `w` columns. The last column is all ones,
/// and its weights are the intercepts.
pub(super) struct LogisticObjective {
    /// Columns, `[w, n]`.
    pub(super) x: ColumnMatrix,
    /// 1 if a row is of the logit's class, otherwise 0, `[o, n]`.
    pub(super) truth: Vec<f64>,
    /// Factor of each row's loss, `[n]`: `C` times the row's weight.
    pub(super) loss_factors: Vec<f64>,
    pub(super) output_count: usize,
    pub(super) penalty: ElasticNetPenalty,
}

impl LogisticObjective {
    pub(super) fn new(
        x: ColumnMatrix,
        labels: ClassLabels<'_>,
        penalty: ElasticNetPenalty,
    ) -> LogisticObjective {
        let classes = output_classes(labels.class_count);
        let truth = classes
            .iter()
            .flat_map(|class| labels.y.iter().map(move |y| f64::from(y == class)))
            .collect();

        LogisticObjective {
            x,
            truth,
            loss_factors: labels
                .weights
                .iter()
                .map(|weight| penalty.c * weight)
                .collect(),
            output_count: classes.len(),
            penalty,
        }
    }

    pub(super) fn weight_count(&self) -> usize {
        self.output_count * self.x.f
    }

    /// Returns the objective at `weights` `[o, w]`. `logits` `[o, n]` must be their logits.
    pub(super) fn value(&self, weights: &[f64], logits: &[f64]) -> f64 {
        self.log_loss(logits) + self.penalty_value(weights)
    }

    /// Computes the logits `[o, n]` of `weights` `[o, w]`.
    pub(super) fn logits(&self, weights: &[f64]) -> Vec<f64> {
        let mut logits = vec![0.0; self.output_count * self.x.n];
        for (logits, weights) in logits
            .chunks_exact_mut(self.x.n)
            .zip(weights.chunks_exact(self.x.f))
        {
            for (column, weight) in weights.iter().enumerate() {
                // With an L1 penalty, most weights are 0.
                if *weight != 0.0 {
                    add_scaled(logits, *weight, self.x.column(column));
                }
            }
        }
        logits
    }

    /// Returns the sum of the losses of all rows, each multiplied by its factor.
    fn log_loss(&self, logits: &[f64]) -> f64 {
        (0..self.x.n)
            .map(|row| self.loss_factors[row] * self.log_loss_of_row(logits, row))
            .sum()
    }

    /// Returns the logarithm of the sum of exponentials minus the logit of the true class. The
    /// first of two classes has the logit 0, which is not in `logits`.
    fn log_loss_of_row(&self, logits: &[f64], row: usize) -> f64 {
        let n = self.x.n;
        let implied = if self.output_count == 1 {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        let largest = (0..self.output_count).fold(implied, |largest, output| {
            largest.max(logits[output * n + row])
        });
        let sum: f64 = (implied - largest).exp()
            + (0..self.output_count)
                .map(|output| (logits[output * n + row] - largest).exp())
                .sum::<f64>();

        largest + sum.ln()
            - (0..self.output_count)
                .map(|output| self.truth[output * n + row] * logits[output * n + row])
                .sum::<f64>()
    }

    /// Returns the gradient of the losses with respect to all weights, `[o, w]`, for the probabilities `[o, n]` of
    /// the logits' classes. For a row with the factor `c`, that of a logit is `c * (p - y)`.
    pub(super) fn loss_gradient(&self, probabilities: &[f64]) -> Vec<f64> {
        let n = self.x.n;
        let mut gradient = Vec::with_capacity(self.weight_count());
        for (p, truth) in probabilities
            .chunks_exact(n)
            .zip(self.truth.chunks_exact(n))
        {
            let rows = p.iter().zip(truth).zip(&self.loss_factors);
            let errors: Vec<f64> = rows.map(|((p, y), c)| c * (p - y)).collect();
            gradient.extend((0..self.x.f).map(|place| dot_product(self.x.column(place), &errors)));
        }
        gradient
    }

    /// Returns the factors of `x_i * x_j` in the second derivatives of the losses with respect to a weight of the
    /// logit `output` and one of the logit `other`, `[n]`. Within one logit they are `c * p * (1 - p)`, and between
    /// two logits `-c * p * q`, where `c` is the factor of the row.
    pub(super) fn curvature_factors(
        &self,
        probabilities: &[f64],
        output: usize,
        other: usize,
    ) -> Vec<f64> {
        let n = self.x.n;
        let own = &probabilities[output * n..][..n];
        let p = &probabilities[other * n..][..n];
        let covariance = |row: usize| {
            if other == output {
                p[row] * (1.0 - p[row])
            } else {
                -p[row] * own[row]
            }
        };
        (0..n)
            .map(|row| self.loss_factors[row] * covariance(row))
            .collect()
    }

    /// Returns the second derivative of the losses with respect to each weight, `[o, w]`, for the probabilities
    /// `[o, n]` of the logits' classes.
    pub(super) fn loss_curvatures(&self, probabilities: &[f64]) -> Vec<f64> {
        let mut curvatures = Vec::with_capacity(self.weight_count());
        for output in 0..self.output_count {
            let factors = self.curvature_factors(probabilities, output, output);
            let of_column = |place: usize| -> f64 {
                let column = self.x.column(place).iter();
                column.zip(&factors).map(|(x, factor)| x * x * factor).sum()
            };
            curvatures.extend((0..self.x.f).map(of_column));
        }
        curvatures
    }

    /// Returns all second derivatives of the losses, `[o, w, o, w]`, for the probabilities `[o, n]` of the logits'
    /// classes.
    pub(super) fn loss_hessian(&self, probabilities: &[f64]) -> Result<Vec<f64>> {
        let columns = self.x.f;
        let count = self.weight_count();
        let mut hessian = vec![0.0; count * count];
        for output in 0..self.output_count {
            for other in 0..=output {
                let factors = self.curvature_factors(probabilities, output, other);
                let block = products_of_columns(&self.x, Some(&factors))?;
                // The block is symmetric, and so is the whole.
                for (row, values) in block.chunks_exact(columns).enumerate() {
                    let at = |a: usize, b: usize| (a * columns + row) * count + b * columns;
                    hessian[at(output, other)..][..columns].copy_from_slice(values);
                    hessian[at(other, output)..][..columns].copy_from_slice(values);
                }
            }
        }
        Ok(hessian)
    }

    pub(super) fn penalty_value(&self, weights: &[f64]) -> f64 {
        weights
            .iter()
            .enumerate()
            .map(|(place, weight)| {
                let factors = self.penalty_factors(place);
                factors.l1 * weight.abs() + factors.l2 / 2.0 * weight * weight
            })
            .sum()
    }

    /// Returns the penalty factors of the weight at index `place`. For an intercept, they are 0.
    pub(super) fn penalty_factors(&self, place: usize) -> PenaltyFactors {
        if self.is_intercept(place) {
            return PenaltyFactors { l1: 0.0, l2: 0.0 };
        }
        PenaltyFactors {
            l1: self.penalty.l1_ratio,
            l2: 1.0 - self.penalty.l1_ratio,
        }
    }

    pub(super) fn is_intercept(&self, place: usize) -> bool {
        place % self.x.f + 1 == self.x.f
    }

    /// Returns the probability of each logit's class, `[o, n]`.
    pub(super) fn probabilities(&self, logits: &[f64]) -> Vec<f64> {
        if self.output_count == 1 {
            return logits.iter().map(|logit| stable_sigmoid(*logit)).collect();
        }

        let by_output = ColumnMatrix {
            n: self.x.n,
            f: self.output_count,
            values: logits.to_vec(),
        };
        let mut rows = by_output.to_rows();
        rows.chunks_exact_mut(self.output_count)
            .for_each(softmax_in_place);

        // The outputs of a row are a column of the transposed matrix, so `to_rows` gives `[o, n]`.
        let by_row = ColumnMatrix {
            n: self.output_count,
            f: self.x.n,
            values: rows,
        };
        by_row.to_rows()
    }
}
