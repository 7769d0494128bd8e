//! Logistic regression with an L1, L2 or elastic net penalty.
//!
//! Two classes have one logit, more classes have one each (softmax), as in scikit-learn's
//! `LogisticRegression`.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::classifier::{Classifier, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::output_count;
use super::solvers::logits::class_probabilities;
use super::solvers::matrix::{ColumnMatrix, add_scaled, dot_product};
use super::solvers::newton::minimise_objective;
use super::solvers::objective::ElasticNetPenalty;
use super::solvers::stop::StopSignal;
use poolcast_base::output::counted;

/// A fitted logistic regression with `o` logits: one for two classes, otherwise one per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LogisticRegression {
    /// Weights, `[o, f]`.
    pub(super) weights: Vec<f64>,
    /// Intercepts, `[o]`.
    pub(super) intercepts: Vec<f64>,
}

impl LogisticRegression {
    /// Fits the weights that minimise the objective under `penalty`.
    pub(super) fn fit(
        penalty: ElasticNetPenalty,
        training: TrainingSet<'_>,
        stop: StopSignal<'_>,
    ) -> Result<LogisticRegression> {
        let TrainingSet { x, labels } = training;
        let means: Vec<f64> = (0..x.f)
            .map(|column| x.column(column).iter().sum::<f64>() / x.n as f64)
            .collect();
        let found = minimise_objective(centred_with_ones(x, &means), labels, penalty, stop)?;

        // The fit used centred columns, so adapt the intercepts to the original columns.
        let mut weights = Vec::new();
        let mut intercepts = Vec::new();
        for of_output in found.chunks_exact(x.f + 1) {
            let (of_columns, intercept) = of_output.split_at(x.f);
            weights.extend_from_slice(of_columns);
            intercepts.push(intercept[0] - dot_product(of_columns, &means));
        }

        if labels.class_count > 2 {
            // A softmax does not change if all its logits are shifted alike, so centre the
            // intercepts.
            let mean = intercepts.iter().sum::<f64>() / labels.class_count as f64;
            intercepts
                .iter_mut()
                .for_each(|intercept| *intercept -= mean);
        }
        Ok(LogisticRegression {
            weights,
            intercepts,
        })
    }
}

impl Classifier for LogisticRegression {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        let outputs = self.intercepts.len();
        let mut logits = vec![0.0; x.n * outputs];
        for (output, logits) in logits.chunks_exact_mut(x.n.max(1)).enumerate() {
            logits.fill(self.intercepts[output]);
            for column in 0..x.f {
                let weight = self.weights[output * x.f + column];
                add_scaled(logits, weight, x.column(column));
            }
        }

        class_probabilities(&ColumnMatrix {
            n: x.n,
            f: outputs,
            values: logits,
        })
    }

    fn importances(&self, f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_coefficients(&self.weights, f))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = output_count(k);
        ensure!(
            self.intercepts.len() == outputs,
            "{} for {k} classes",
            counted(self.intercepts.len(), "intercept")
        );
        ensure!(
            self.weights.len() == outputs * f,
            "{} for {outputs} x {f}",
            counted(self.weights.len(), "weight")
        );
        Ok(())
    }
}

/// Returns the columns minus their means, and a last column of ones for the intercepts. With
/// centred columns, the intercepts hardly depend on the weights, so the descent needs fewer sweeps.
fn centred_with_ones(x: &ColumnMatrix, means: &[f64]) -> ColumnMatrix {
    let mut values = Vec::with_capacity((x.f + 1) * x.n);
    for (column, mean) in means.iter().enumerate() {
        values.extend(x.column(column).iter().map(|value| value - mean));
    }
    values.extend(std::iter::repeat_n(1.0, x.n));
    ColumnMatrix {
        n: x.n,
        f: x.f + 1,
        values,
    }
}
