//! One layer of a fitted network.

use serde::{Deserialize, Serialize};

use crate::solvers::matrix::{ColumnMatrix, add_scaled};

/// A layer in which every output depends on every input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct DenseLayer {
    /// Weights, `[outputs, inputs]`.
    pub(super) weights: Vec<f32>,
    /// Biases, `[outputs]`.
    pub(super) biases: Vec<f32>,
}

impl DenseLayer {
    /// Maps columns `[inputs, n]` to columns `[outputs, n]`.
    pub(super) fn apply(&self, x: &ColumnMatrix) -> ColumnMatrix {
        let outputs = self.biases.len();
        let mut values = vec![0.0; outputs * x.n];
        for (output, column) in values.chunks_exact_mut(x.n.max(1)).enumerate() {
            column.fill(f64::from(self.biases[output]));
            for input in 0..x.f {
                let weight = f64::from(self.weights[output * x.f + input]);
                add_scaled(column, weight, x.column(input));
            }
        }
        ColumnMatrix {
            n: x.n,
            f: outputs,
            values,
        }
    }
}
