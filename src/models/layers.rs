//! Layers shared by several networks: their parameters, named as in PyTorch, and their computation.

use anyhow::Result;
use candle_core::{D, Tensor};

use super::{ParameterSpec, Weights};

/// Increment of the variance before the division by its root.
const NORM_EPSILON: f64 = 1e-5;

/// The parameters of an `nn.Linear` from `n` inputs to `k` outputs.
pub fn linear_parameters(name: &str, n: usize, k: usize) -> [ParameterSpec; 2] {
    [
        ParameterSpec::new(format!("{name}.weight"), &[k, n], n),
        ParameterSpec::new(format!("{name}.bias"), &[k], n),
    ]
}

/// The parameters of an `nn.LayerNorm` over `d` numbers.
pub fn norm_parameters(name: &str, d: usize) -> [ParameterSpec; 2] {
    [
        ParameterSpec::constant(format!("{name}.weight"), &[d], 1.0),
        ParameterSpec::constant(format!("{name}.bias"), &[d], 0.0),
    ]
}

/// Shifts and scales each of the rows `[n, d]` to mean 0 and variance 1, then applies the layer's
/// parameters.
///
/// # Errors
/// Fails when the layer has no parameters, and when the device fails.
pub fn layer_norm(weights: &Weights, name: &str, rows: &Tensor) -> Result<Tensor> {
    let centred = rows.broadcast_sub(&rows.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let scaled = centred.broadcast_div(&(variance + NORM_EPSILON)?.sqrt()?)?;
    let weight = weights.get(&format!("{name}.weight"))?;
    let bias = weights.get(&format!("{name}.bias"))?;
    Ok(scaled.broadcast_mul(weight)?.broadcast_add(bias)?)
}
