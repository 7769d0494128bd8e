//! Linear layers with ReLU over all numbers of a sample.

use anyhow::Result;
use candle_core::Tensor;

use super::design::SeriesDesign;
use poolcast_models::layers::linear_parameters;
use poolcast_models::{ParameterSpec, Weights};

pub(super) fn parameters(design: &SeriesDesign) -> Vec<ParameterSpec> {
    let mut inputs = design.steps() * design.columns;
    let mut parameters = Vec::new();
    for (layer, width) in design.dense_widths().iter().enumerate() {
        parameters.extend(linear_parameters(
            &format!("layers.{layer}"),
            inputs,
            *width,
        ));
        inputs = *width;
    }
    parameters.extend(linear_parameters("last", inputs, design.outputs));
    parameters
}

/// Computes `[b, t, c] → [b, k]`.
pub(super) fn outputs(
    design: &SeriesDesign,
    weights: &Weights,
    samples: &Tensor,
) -> Result<Tensor> {
    let mut values = samples.flatten_from(1)?;
    for layer in 0..design.dense_widths().len() {
        values = weights
            .linear(&format!("layers.{layer}"), &values)?
            .relu()?;
    }
    weights.linear("last", &values)
}
