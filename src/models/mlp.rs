//! A multilayer perceptron without a notion of time: the last frame counted, beside the static features → linear layers
//! with ReLU → logit.

use anyhow::Result;
use candle_core::{D, Tensor};

use super::{Architecture, Input, Parameter, Shape, Weights};

#[derive(Debug)]
pub(super) struct Mlp;

impl Architecture for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn about(&self) -> &'static str {
        "A multilayer perceptron over the last frame, counted, and what else is known of the held job"
    }

    fn takes_statics(&self) -> bool {
        true
    }

    fn parameters(&self, shape: &Shape) -> Vec<Parameter> {
        let h = shape.hidden_size;
        let linear = |name: String, n: usize, k: usize| {
            [
                Parameter::new(format!("{name}.weight"), &[k, n], n),
                Parameter::new(format!("{name}.bias"), &[k], n),
            ]
        };
        let inputs = |layer| if layer == 0 { 2 * shape.e + shape.s } else { h };
        let hidden = (0..shape.lstm_layers)
            .flat_map(|layer| linear(format!("hidden.{layer}"), inputs(layer), h));
        hidden.chain(linear("linear".to_owned(), h, 1)).collect()
    }

    fn logits(&self, weights: &Weights, input: &Input<'_>, _states: &[Tensor]) -> Result<Tensor> {
        let mut values = Tensor::cat(&[&last_frame(input)?, &input.statics()?], 1)?;
        for layer in 0..input.shape.lstm_layers {
            values = weights
                .linear(&format!("hidden.{layer}"), &values)?
                .relu()?;
        }
        Ok(weights.linear("linear", &values)?.squeeze(D::Minus1)?)
    }
}

/// The last frame of each sample `[b, 2*e]`: the held job's state one-hot, and the share of all jobs in each state.
fn last_frame(input: &Input<'_>) -> Result<Tensor> {
    let Shape { e, j, .. } = *input.shape;
    let mut counts = vec![0f32; input.len() * 2 * e];
    for (codes, counts) in input.samples().zip(counts.chunks_exact_mut(2 * e)) {
        for (job, &code) in codes[codes.len() - j..]
            .iter()
            .enumerate()
            .filter(|(_, code)| usize::from(**code) < e)
        {
            counts[usize::from(code)] += f32::from(u8::from(job == 0));
            counts[e + usize::from(code)] += 1.0 / j as f32;
        }
    }
    input.tensor(counts, 2 * e)
}
