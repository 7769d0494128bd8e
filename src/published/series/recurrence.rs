//! An LSTM over the frames, as published: its last state → ReLU → linear → ReLU → linear.

use anyhow::Result;
use candle_core::{DType, Tensor};
use candle_nn::ops::sigmoid;

use super::design::SeriesDesign;
use poolcast_models::layers::linear_parameters;
use poolcast_models::{ParameterSpec, Weights};

pub(super) fn parameters(design: &SeriesDesign) -> Vec<ParameterSpec> {
    let width = design.state_width();
    let mut parameters = vec![
        ParameterSpec::new("lstm.weight_ih_l0", &[4 * width, design.columns], width),
        ParameterSpec::new("lstm.weight_hh_l0", &[4 * width, width], width),
        ParameterSpec::new("lstm.bias_ih_l0", &[4 * width], width),
        ParameterSpec::new("lstm.bias_hh_l0", &[4 * width], width),
    ];
    parameters.extend(linear_parameters("fc_1", width, width));
    parameters.extend(linear_parameters("fc", width, design.outputs));
    parameters
}

/// Computes `[b, t, c] → [b, k]`.
pub(super) fn outputs(weights: &Weights, samples: &Tensor) -> Result<Tensor> {
    let state = last_state(weights, samples)?.relu()?;
    let values = weights.linear("fc_1", &state)?.relu()?;
    weights.linear("fc", &values)
}

/// Computes the last state of PyTorch's `nn.LSTM` of one layer. Gates are in the order input,
/// forget, cell, output.
fn last_state(weights: &Weights, samples: &Tensor) -> Result<Tensor> {
    let (b, t, c) = samples.dims3()?;
    let hidden_weight = weights.get("lstm.weight_hh_l0")?.t()?.contiguous()?;
    let width = hidden_weight.dim(0)?;
    let bias = (weights.get("lstm.bias_ih_l0")? + weights.get("lstm.bias_hh_l0")?)?;

    // Use one product over all frames, because inputs do not depend on the previous frame's state.
    let frames = samples.transpose(0, 1)?.contiguous()?.reshape((t * b, c))?;
    let sums = frames.matmul(&weights.get("lstm.weight_ih_l0")?.t()?)?;
    let sums = sums.broadcast_add(&bias)?;

    let mut state = Tensor::zeros((b, width), DType::F32, samples.device())?;
    let mut cell = state.clone();
    for inputs in sums.chunk(t, 0)? {
        let gates = (inputs + state.matmul(&hidden_weight)?)?.chunk(4, 1)?;
        let kept = (sigmoid(&gates[1])? * &cell)?;
        cell = (kept + (sigmoid(&gates[0])? * gates[2].tanh()?)?)?;
        state = (sigmoid(&gates[3])? * cell.tanh()?)?;
    }
    Ok(state)
}
