//! A mixture of transformers, as published. A gate over all numbers of a sample weights the outputs
//! of each transformer.

use anyhow::Result;
use candle_core::{D, Tensor};
use candle_nn::ops::softmax;

use super::design::SeriesDesign;
use super::dropout::DropoutMasks;
use super::transformer;
use poolcast_models::layers::linear_parameters;
use poolcast_models::{ParameterSpec, Weights};

/// Width between the two linear layers of the gate. There is no activation between them.
const GATE_WIDTH: usize = 32;

pub(super) fn parameters(design: &SeriesDesign) -> Vec<ParameterSpec> {
    let mut parameters = Vec::new();
    for expert in 0..design.experts() {
        parameters.extend(transformer::parameters(design, &expert_prefix(expert)));
    }
    let inputs = design.steps() * design.columns;
    parameters.extend(linear_parameters("gate.0", inputs, GATE_WIDTH));
    parameters.extend(linear_parameters("gate.1", GATE_WIDTH, design.experts()));
    parameters
}

/// The prefix of the names of an expert's parameters.
pub(super) fn expert_prefix(expert: usize) -> String {
    format!("experts.{expert}.")
}

/// Computes the outputs of all experts, `[b, t, c] → [b, experts, k]`.
pub(super) fn expert_outputs(
    design: &SeriesDesign,
    weights: &Weights,
    samples: &Tensor,
    masks: &mut DropoutMasks,
) -> Result<Tensor> {
    let mut said = Vec::with_capacity(design.experts());
    for expert in 0..design.experts() {
        let prefix = expert_prefix(expert);
        said.push(transformer::outputs(
            design, weights, &prefix, samples, masks,
        )?);
    }
    Ok(Tensor::stack(&said, 1)?)
}

/// Computes the weighted sum of the experts' outputs, `[b, t, c] → [b, k]`.
pub(super) fn outputs(
    design: &SeriesDesign,
    weights: &Weights,
    samples: &Tensor,
    masks: &mut DropoutMasks,
) -> Result<Tensor> {
    let said = expert_outputs(design, weights, samples, masks)?;
    let gate = weights.linear("gate.0", &samples.flatten_from(1)?)?;
    let shares = softmax(&weights.linear("gate.1", &gate)?, D::Minus1)?;
    Ok(said.broadcast_mul(&shares.unsqueeze(2)?)?.sum(1)?)
}
