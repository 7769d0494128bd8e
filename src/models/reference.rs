//! The LSTM in candle's operations: codes `[b, m, j]` → one-hot `[b, m, e*j]` → layers → last state beside static
//! features → linear → logit `[b]`, with candle's own gradient.
//!
//! The model that [`Lstm`] is tested against, and the way to devices the engine does not know. Unlike candle's own LSTM it
//! multiplies the inputs of all frames at once.

use anyhow::{Context as _, Result};
use candle_core::{D, DType, Device, Tensor, Var};

use super::{Batch, Lstm, Parameter, Shape};
use crate::tensors::EMPTY;

/// The model's parameters as candle's variables on a device.
#[derive(Debug)]
pub struct Reference {
    shape: Shape,
    /// In the order of [`Shape::parameters`].
    parameters: Vec<(String, Var)>,
}

impl Reference {
    /// The model with the weights of `model`.
    pub fn new(model: &Lstm, device: &Device) -> Result<Reference> {
        let shape = model.shape;
        let load = |(parameter, values): (Parameter, Vec<f32>)| {
            let tensor = Tensor::from_vec(values, parameter.dims(&shape), device)?;
            Ok((parameter.name(), Var::from_tensor(&tensor)?))
        };
        let parameters = shape.parameters().into_iter().zip(model.weights()).map(load).collect::<Result<_>>()?;
        Ok(Reference { shape, parameters })
    }

    /// The mean cross-entropy of `batch` against `targets` `[b]`, each 0 or 1, and the gradient of each parameter's
    /// elements, in the order of [`Shape::parameters`].
    pub fn gradient(&self, batch: &Batch<'_>, targets: &[f32], pos_weight: f32) -> Result<(f32, Vec<Vec<f32>>)> {
        let logits = self.logits(batch)?;
        let loss = bce_with_logits(&logits, &Tensor::from_slice(targets, targets.len(), self.device())?, pos_weight)?;
        let store = loss.backward()?;
        let of = |(name, var): &(String, Var)| {
            let gradient = store.get(var).with_context(|| format!("`{name}` has no gradient"))?;
            Ok(gradient.flatten_all()?.to_vec1()?)
        };
        Ok((loss.to_scalar()?, self.parameters.iter().map(of).collect::<Result<_>>()?))
    }

    /// The logits `[b]` of the success of the samples of `batch`.
    pub fn logits(&self, batch: &Batch<'_>) -> Result<Tensor> {
        let Shape { m, s, hidden_size, lstm_layers, .. } = self.shape;
        let b = batch.len();
        let mut inputs = self.one_hot(batch.codes)?;
        for layer in 0..lstm_layers {
            let states = self.layer(layer, &inputs, b)?;
            inputs = Tensor::stack(&states, 1)?.reshape((b * m, hidden_size))?;
        }
        let last = inputs.reshape((b, m, hidden_size))?.narrow(1, m - 1, 1)?.squeeze(1)?;
        let statics = Tensor::from_slice(batch.statics, (b, s), self.device())?;
        let features = if s > 0 { Tensor::cat(&[&last, &statics], 1)? } else { last };
        let (weight, bias) = (self.get("linear.weight")?, self.get("linear.bias")?);
        Ok(features.matmul(&weight.t()?)?.broadcast_add(bias)?.squeeze(D::Minus1)?)
    }

    /// `[b * m, e * j]`, one 1 for each job that has a state.
    fn one_hot(&self, codes: &[u8]) -> Result<Tensor> {
        let Shape { e, j, .. } = self.shape;
        let rows = codes.len() / j;
        let mut cells = vec![0f32; rows * e * j];
        for (row, cells) in codes.chunks_exact(j).zip(cells.chunks_exact_mut(e * j)) {
            for (job, &code) in row.iter().enumerate().filter(|(_, code)| **code != EMPTY) {
                cells[job * e + usize::from(code)] = 1.0;
            }
        }
        Ok(Tensor::from_vec(cells, (rows, e * j), self.device())?)
    }

    /// The states `[b, h]` of one layer at each of `m` steps from its inputs `[b * m, inputs]`.
    fn layer(&self, layer: usize, inputs: &Tensor, b: usize) -> Result<Vec<Tensor>> {
        let Shape { m, hidden_size, .. } = self.shape;
        let get = |kind: &str| self.get(&format!("lstm.{kind}_l{layer}"));
        let bias = (get("bias_ih")? + get("bias_hh")?)?;
        let from_inputs = inputs.matmul(&get("weight_ih")?.t()?)?.broadcast_add(&bias)?;
        let from_inputs = from_inputs.reshape((b, m, 4 * hidden_size))?;
        let recurrent = get("weight_hh")?.t()?.contiguous()?;
        let mut state = Tensor::zeros((b, hidden_size), DType::F32, self.device())?;
        let mut cell = state.clone();
        let mut states = Vec::with_capacity(m);
        for step in 0..m {
            let at_step = from_inputs.narrow(1, step, 1)?.squeeze(1)?;
            let gates = (at_step + state.matmul(&recurrent)?)?;
            let gates = gates.chunk(4, 1)?;
            let input = candle_nn::ops::sigmoid(&gates[0])?;
            let forget = candle_nn::ops::sigmoid(&gates[1])?;
            let output = candle_nn::ops::sigmoid(&gates[3])?;
            cell = ((forget * cell)? + (input * gates[2].tanh()?)?)?;
            state = (output * cell.tanh()?)?;
            states.push(state.clone());
        }
        Ok(states)
    }

    fn device(&self) -> &Device {
        self.parameters[0].1.device()
    }

    fn get(&self, name: &str) -> Result<&Tensor> {
        let at = self.parameters.iter().position(|(known, _)| known == name);
        Ok(&self.parameters[at.with_context(|| format!("no parameter `{name}`"))?].1)
    }
}

/// The mean of `max(x, 0) - x*y + ln(1 + exp(-|x|))`. candle's own takes the logarithm of a sigmoid, which is infinite
/// once the sigmoid saturates.
fn bce_with_logits(logits: &Tensor, targets: &Tensor, pos_weight: f32) -> Result<Tensor> {
    let softplus = (logits.abs()?.neg()?.exp()? + 1.0)?.log()?;
    let loss = ((logits.relu()? - (logits * targets)?)? + softplus)?;
    let weights = targets.affine(f64::from(pos_weight) - 1.0, 1.0)?;
    Ok((loss * weights)?.mean_all()?)
}
