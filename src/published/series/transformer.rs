//! A transformer encoder without positional encoding, as published: frames → linear → encoder
//! layers → all numbers → linear. Each encoder layer is PyTorch's `nn.TransformerEncoderLayer`,
//! with normalisation after its sums.

use anyhow::Result;
use candle_core::{D, Tensor};
use candle_nn::ops::softmax;

use super::design::{EncoderWidths, SeriesDesign};
use super::dropout::DropoutMasks;
use poolcast_models::layers::{layer_norm, linear_parameters, norm_parameters};
use poolcast_models::{ParameterSpec, Weights};

/// Dropout probability. PyTorch's default, which the published program keeps.
const DROPOUT_SHARE: f32 = 0.1;

/// The parameters of a transformer. Their names begin with `prefix`.
pub(super) fn parameters(design: &SeriesDesign, prefix: &str) -> Vec<ParameterSpec> {
    let EncoderWidths {
        model,
        layers,
        feedforward,
        ..
    } = design.encoder_widths();
    let mut parameters = Vec::new();
    let embedding = format!("{prefix}embedding");
    parameters.extend(linear_parameters(&embedding, design.columns, model));

    for layer in 0..layers {
        let layer = layer_name(prefix, layer);
        let attention = format!("{layer}.self_attn");
        // PyTorch's `xavier_uniform_` of the three projections together, and biases of 0.
        let bound = (6.0 / (4 * model) as f32).sqrt();
        let in_weight = format!("{attention}.in_proj_weight");
        let in_weight = ParameterSpec::new(in_weight, &[3 * model, model], model);
        parameters.push(in_weight.within(bound));
        let in_bias = format!("{attention}.in_proj_bias");
        parameters.push(ParameterSpec::constant(in_bias, &[3 * model], 0.0));
        let [out_weight, _] = linear_parameters(&format!("{attention}.out_proj"), model, model);
        parameters.push(out_weight);
        let out_bias = format!("{attention}.out_proj.bias");
        parameters.push(ParameterSpec::constant(out_bias, &[model], 0.0));

        parameters.extend(linear_parameters(
            &format!("{layer}.linear1"),
            model,
            feedforward,
        ));
        parameters.extend(linear_parameters(
            &format!("{layer}.linear2"),
            feedforward,
            model,
        ));
        parameters.extend(norm_parameters(&format!("{layer}.norm1"), model));
        parameters.extend(norm_parameters(&format!("{layer}.norm2"), model));
    }

    let last = format!("{prefix}decoder_module");
    parameters.extend(linear_parameters(
        &last,
        design.steps() * model,
        design.outputs,
    ));
    parameters
}

fn layer_name(prefix: &str, layer: usize) -> String {
    format!("{prefix}encoder_module.layers.{layer}")
}

/// Computes `[b, t, c] → [b, k]`.
pub(super) fn outputs(
    design: &SeriesDesign,
    weights: &Weights,
    prefix: &str,
    samples: &Tensor,
    masks: &mut DropoutMasks,
) -> Result<Tensor> {
    let widths = design.encoder_widths();
    let (b, t, c) = samples.dims3()?;
    let frames = samples.reshape((b * t, c))?;
    let mut rows = weights.linear(&format!("{prefix}embedding"), &frames)?;
    for layer in 0..widths.layers {
        let layer = EncoderLayer {
            weights,
            name: layer_name(prefix, layer),
            widths,
            b,
            t,
        };
        rows = layer.outputs(&rows, masks)?;
    }
    let flat = rows.reshape((b, t * widths.model))?;
    weights.linear(&format!("{prefix}decoder_module"), &flat)
}

/// A layer of the encoder, with the shape of the samples that go through it.
struct EncoderLayer<'a> {
    weights: &'a Weights,
    name: String,
    widths: EncoderWidths,
    b: usize,
    t: usize,
}

impl EncoderLayer<'_> {
    /// Computes `[b*t, d] → [b*t, d]`.
    fn outputs(&self, rows: &Tensor, masks: &mut DropoutMasks) -> Result<Tensor> {
        let EncoderLayer { weights, name, .. } = self;
        let attended = self.attention(rows, masks)?;
        let attended = masks.drop(attended, DROPOUT_SHARE)?;
        let rows = layer_norm(weights, &format!("{name}.norm1"), &(rows + attended)?)?;

        let inner = weights.linear(&format!("{name}.linear1"), &rows)?.relu()?;
        let inner = masks.drop(inner, DROPOUT_SHARE)?;
        let outer = weights.linear(&format!("{name}.linear2"), &inner)?;
        let outer = masks.drop(outer, DROPOUT_SHARE)?;
        layer_norm(weights, &format!("{name}.norm2"), &(rows + outer)?)
    }

    /// Computes the attention of each frame to all frames of its sample, `[b*t, d] → [b*t, d]`.
    fn attention(&self, rows: &Tensor, masks: &mut DropoutMasks) -> Result<Tensor> {
        let EncoderLayer { b, t, .. } = *self;
        let EncoderWidths { model, heads, .. } = self.widths;
        let name = format!("{}.self_attn", self.name);
        let weight = self.weights.get(&format!("{name}.in_proj_weight"))?;
        let bias = self.weights.get(&format!("{name}.in_proj_bias"))?;
        let projected = rows.matmul(&weight.t()?)?.broadcast_add(bias)?;

        let width = model / heads;
        let by_head = projected.reshape((b, t, 3, heads, width))?;
        let by_head = by_head.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let [queries, keys, values] = [by_head.get(0)?, by_head.get(1)?, by_head.get(2)?];

        let scores = (queries.matmul(&keys.t()?)? / (width as f64).sqrt())?;
        let shares = masks.drop(softmax(&scores, D::Minus1)?, DROPOUT_SHARE)?;
        let mixed = shares.matmul(&values)?.transpose(1, 2)?;
        let mixed = mixed.contiguous()?.reshape((b * t, model))?;
        self.weights.linear(&format!("{name}.out_proj"), &mixed)
    }
}
