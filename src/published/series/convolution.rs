//! Two convolution layers over frames and columns, as published, then two linear layers.

use anyhow::Result;
use candle_core::Tensor;

use super::design::{ConvolutionWidths, KERNEL_REDUCTION, KERNELS, SeriesDesign};
use super::dropout::DropoutMasks;
use poolcast_models::layers::linear_parameters;
use poolcast_models::{ParameterSpec, Weights};

/// Dropout probability. PyTorch's default, which the published program keeps.
const DROPOUT_SHARE: f32 = 0.5;

pub(super) fn parameters(design: &SeriesDesign) -> Vec<ParameterSpec> {
    let ConvolutionWidths {
        first,
        second,
        linear,
    } = design.convolution_widths();
    let mut parameters = Vec::new();
    let channels = [(1, first), (first, second)];
    for (layer, ((inputs, outputs), (frames, columns))) in
        channels.into_iter().zip(KERNELS).enumerate()
    {
        let fan_in = inputs * frames * columns;
        let dims = [outputs, inputs, frames, columns];
        parameters.push(ParameterSpec::new(
            format!("conv.{layer}.weight"),
            &dims,
            fan_in,
        ));
        parameters.push(ParameterSpec::new(
            format!("conv.{layer}.bias"),
            &[outputs],
            fan_in,
        ));
    }

    let (frames, columns) = KERNEL_REDUCTION;
    let left = (design.steps() - frames) * (design.columns - columns) * second;
    parameters.extend(linear_parameters("linear.0", left, linear));
    parameters.extend(linear_parameters("linear.1", linear, design.outputs));
    parameters
}

/// Computes `[b, t, c] → [b, k]`.
pub(super) fn outputs(
    weights: &Weights,
    samples: &Tensor,
    masks: &mut DropoutMasks,
) -> Result<Tensor> {
    let mut image = samples.unsqueeze(1)?;
    for layer in 0..KERNELS.len() {
        let weight = weights.get(&format!("conv.{layer}.weight"))?;
        let bias = weights.get(&format!("conv.{layer}.bias"))?;
        let sums = image.conv2d(weight, 0, 1, 1, 1)?;
        image = leaky_relu(&sums.broadcast_add(&bias.reshape((1, (), 1, 1))?)?)?;
    }
    let flat = masks.drop(image, DROPOUT_SHARE)?.flatten_from(1)?;
    let values = leaky_relu(&weights.linear("linear.0", &flat)?)?;
    weights.linear("linear.1", &values)
}

/// Computes `x`, or `x/100` below 0, like PyTorch's `LeakyReLU`.
fn leaky_relu(x: &Tensor) -> Result<Tensor> {
    Ok(candle_nn::ops::leaky_relu(x, 0.01)?)
}
