//! Columns and classes → logistic regression with an L1, L2 or elastic net penalty.
//!
//! Two classes have one logit, more have one each (softmax), as scikit-learn has it.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::importances::ColumnImportances;
use super::matrix::{Matrix, add, dot, sigmoid, softmax};
use super::model::Model;
use super::newton::{Penalty, minimise};
use super::stop::Stop;

/// A fitted logistic regression: one logit for two classes, else one for each, `o` in all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Logistic {
    /// `[o, f]`.
    pub(super) weights: Vec<f64>,
    /// `[o]`.
    pub(super) intercepts: Vec<f64>,
}

impl Logistic {
    /// Fits on `x` with classes `y` below `k`.
    pub(super) fn fit(
        x: &Matrix,
        y: &[u32],
        k: usize,
        penalty: Penalty,
        stop: Stop<'_>,
    ) -> Result<Logistic> {
        let means: Vec<f64> = (0..x.f)
            .map(|j| x.column(j).iter().sum::<f64>() / x.n as f64)
            .collect();
        let values = minimise(centred(x, &means), y, k, penalty, stop)?;
        let outputs = values.chunks_exact(x.f + 1);
        let weights: Vec<f64> = outputs
            .clone()
            .flat_map(|values| &values[..x.f])
            .copied()
            .collect();
        let mut intercepts: Vec<f64> = outputs
            .map(|values| values[x.f] - dot(&values[..x.f], &means))
            .collect();
        if k > 2 {
            // A softmax is blind to what all its logits share.
            let mean = intercepts.iter().sum::<f64>() / k as f64;
            intercepts
                .iter_mut()
                .for_each(|intercept| *intercept -= mean);
        }
        Ok(Logistic {
            weights,
            intercepts,
        })
    }
}

impl Model for Logistic {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let outputs = self.intercepts.len();
        let mut logits = vec![0.0; x.n * outputs];
        for (o, logits) in logits.chunks_exact_mut(x.n.max(1)).enumerate() {
            logits.fill(self.intercepts[o]);
            (0..x.f).for_each(|j| add(logits, self.weights[o * x.f + j], x.column(j)));
        }
        if outputs == 1 {
            return logits
                .iter()
                .flat_map(|logit| [sigmoid(-logit), sigmoid(*logit)])
                .collect();
        }
        let mut rows = Matrix {
            n: x.n,
            f: outputs,
            x: logits,
        }
        .by_rows();
        rows.chunks_exact_mut(outputs).for_each(softmax);
        rows
    }

    fn importances(&self, f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::of_coefficients(&self.weights, f))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = if k == 2 { 1 } else { k };
        ensure!(
            self.intercepts.len() == outputs,
            "{} for {k} classes",
            crate::output::counted(self.intercepts.len(), "intercept")
        );
        ensure!(
            self.weights.len() == outputs * f,
            "{} for {outputs} x {f}",
            crate::output::counted(self.weights.len(), "weight")
        );
        Ok(())
    }
}

/// The columns with mean 0, so that the intercepts hardly depend on the weights and fewer sweeps do, and a last one of ones.
fn centred(x: &Matrix, means: &[f64]) -> Matrix {
    let columns = means.iter().enumerate();
    let values = columns.flat_map(|(j, mean)| x.column(j).iter().map(move |value| value - mean));
    Matrix {
        n: x.n,
        f: x.f + 1,
        x: values.chain(std::iter::repeat_n(1.0, x.n)).collect(),
    }
}
