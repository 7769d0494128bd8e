//! A multilayer perceptron that ignores time: counts of the last frame, joined with the static
//! features → linear layers with ReLU → logit.

use anyhow::Result;
use candle_core::{D, Tensor};

use crate::layers::linear_parameters;
use crate::{Architecture, ModelInput, ModelShape, ParameterSpec, Weights};

#[derive(Debug)]
pub(super) struct Mlp;

impl Architecture for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn about(&self) -> &'static str {
        "A multilayer perceptron over the counts of the last frame and the static features"
    }

    fn takes_statics(&self) -> bool {
        true
    }

    fn parameters(&self, shape: &ModelShape) -> Vec<ParameterSpec> {
        let width = shape.hidden_size;
        let mut inputs = 2 * shape.e + shape.s;
        let mut parameters = Vec::new();

        for layer in 0..shape.lstm_layers {
            parameters.extend(linear_parameters(&format!("hidden.{layer}"), inputs, width));
            inputs = width;
        }
        parameters.extend(linear_parameters("linear", width, 1));
        parameters
    }

    fn logits(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        _states: &[Tensor],
    ) -> Result<Tensor> {
        let mut values = Tensor::cat(&[&count_last_frame(input)?, &input.statics()?], 1)?;
        for layer in 0..input.shape.lstm_layers {
            let sums = weights.linear(&format!("hidden.{layer}"), &values)?;
            values = sums.relu()?;
        }
        Ok(weights.linear("linear", &values)?.squeeze(D::Minus1)?)
    }
}

/// Counts the last frame of each sample, `[b, 2*e]`: the held job's state as a one-hot vector, and
/// the share of all jobs in each state.
fn count_last_frame(input: &ModelInput<'_>) -> Result<Tensor> {
    let ModelShape { e, j, .. } = *input.shape;
    let mut counts = vec![0f32; input.len() * 2 * e];

    for (codes, counts) in input.samples().zip(counts.chunks_exact_mut(2 * e)) {
        let last_frame = &codes[codes.len() - j..];
        for (job, &code) in last_frame.iter().enumerate() {
            let state = usize::from(code);
            if state >= e {
                continue; // The job has no state.
            }
            if job == 0 {
                counts[state] += 1.0;
            }
            counts[e + state] += 1.0 / j as f32;
        }
    }
    input.tensor(counts, 2 * e)
}
