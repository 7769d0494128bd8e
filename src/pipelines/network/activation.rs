//! Activation functions, applied after each hidden layer.

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use poolcast_base::stats::stable_sigmoid;

/// An activation function, with scikit-learn's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActivationFunction {
    Relu,
    Tanh,
    Logistic,
}

impl ActivationFunction {
    pub(super) fn apply(self, value: f64) -> f64 {
        match self {
            ActivationFunction::Relu => value.max(0.0),
            ActivationFunction::Tanh => value.tanh(),
            ActivationFunction::Logistic => stable_sigmoid(value),
        }
    }

    pub(super) fn apply_to_tensor(self, values: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            ActivationFunction::Relu => values.relu(),
            ActivationFunction::Tanh => values.tanh(),
            // The sigmoid of x is (tanh(x / 2) + 1) / 2. A tanh has a gradient in candle.
            ActivationFunction::Logistic => ((values * 0.5)?.tanh()? + 1.0)? * 0.5,
        }
    }

    /// Returns the factor of Glorot's bound. The bound is for tanh. scikit-learn uses a smaller one
    /// for the logistic function, which is four times as flat.
    pub(super) fn glorot_factor(self) -> f32 {
        match self {
            ActivationFunction::Logistic => 2.0,
            ActivationFunction::Relu | ActivationFunction::Tanh => 6.0,
        }
    }
}
