//! The objective that logistic regression minimises.
//!
//! It is the objective of scikit-learn's `LogisticRegression`: `C * sum of weighted log losses +
//! l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|²`, without a penalty on the intercepts.

use super::labels::{ClassLabels, output_classes};
use super::logits::softmax_in_place;
use super::matrix::{ColumnMatrix, add_scaled};
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
