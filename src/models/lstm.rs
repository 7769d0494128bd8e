//! The LSTM: codes `[b, m, j]` → one-hot `[b, m, e*j]` → layers → last time step → linear → logit `[b]`.
//!
//! Names, gate order (input, forget, cell, output) and initial ranges are those of PyTorch's `nn.LSTM` and `nn.Linear`,
//! so that weights travel between the two. Unlike candle's own LSTM it draws its weights from a seed and multiplies the
//! inputs of all time steps at once.

use anyhow::{Context as _, Result, ensure};
use candle_core::{D, DType, Device, Tensor, Var};
use rand::Rng as _;
use serde::{Deserialize, Serialize};

use crate::tensors::EMPTY;

/// What decides the shapes of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Event types.
    pub e: usize,
    /// Time frames.
    pub m: usize,
    /// Jobs.
    pub j: usize,
    /// Width of each layer's state, `h`.
    pub hidden_size: usize,
    /// Layers.
    pub lstm_layers: usize,
}

impl Shape {
    /// Every parameter's name and shape, sorted by name: the order of every sum over parameters.
    pub fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        let (h, gates) = (self.hidden_size, 4 * self.hidden_size);
        let mut all = vec![("linear.bias".to_owned(), vec![1]), ("linear.weight".to_owned(), vec![1, h])];
        for layer in 0..self.lstm_layers {
            let inputs = if layer == 0 { self.e * self.j } else { h };
            all.push((format!("lstm.bias_hh_l{layer}"), vec![gates]));
            all.push((format!("lstm.bias_ih_l{layer}"), vec![gates]));
            all.push((format!("lstm.weight_hh_l{layer}"), vec![gates, h]));
            all.push((format!("lstm.weight_ih_l{layer}"), vec![gates, inputs]));
        }
        all.sort();
        all
    }
}

/// A model: its shape and its parameters on a device.
#[derive(Debug)]
pub struct Lstm {
    /// The shapes of its weights.
    pub shape: Shape,
    /// In the order of [`Shape::parameters`].
    parameters: Vec<(String, Var)>,
}

impl Lstm {
    /// A model with PyTorch's initial weights: uniform in `±1/sqrt(hidden_size)`, drawn from `seed` by parameter name.
    pub fn new(shape: Shape, seed: u64, device: &Device) -> Result<Lstm> {
        let bound = 1.0 / (shape.hidden_size as f32).sqrt();
        let draw = |(name, dims): (String, Vec<usize>)| {
            let mut generator = crate::seed::generator(seed, &format!("weights {name}"), &[]);
            let count = dims.iter().product();
            let values: Vec<f32> = (0..count).map(|_| generator.random_range(-bound..bound)).collect();
            Ok((name, Var::from_tensor(&Tensor::from_vec(values, dims, device)?)?))
        };
        let parameters = shape.parameters().into_iter().map(draw).collect::<Result<_>>()?;
        Ok(Lstm { shape, parameters })
    }

    /// A model with given weights; `weight` returns the elements of the parameter of a name, in row-major order.
    ///
    /// # Errors
    /// Fails when a parameter is missing or of another size.
    pub fn with_weights<'a>(shape: Shape, weight: impl Fn(&str) -> Result<&'a [f32]>, device: &Device) -> Result<Lstm> {
        let load = |(name, dims): (String, Vec<usize>)| {
            let values = weight(&name)?;
            let count: usize = dims.iter().product();
            ensure!(values.len() == count, "`{name}` has {} elements, expected {count} for {dims:?}", values.len());
            let tensor = Tensor::from_slice(values, dims, device)?;
            Ok((name, Var::from_tensor(&tensor)?))
        };
        let parameters = shape.parameters().into_iter().map(load).collect::<Result<_>>()?;
        Ok(Lstm { shape, parameters })
    }

    /// The parameters, sorted by name.
    pub fn parameters(&self) -> &[(String, Var)] {
        &self.parameters
    }

    /// A copy of every parameter's elements, in the order of [`Lstm::parameters`].
    pub fn weights(&self) -> Result<Vec<Vec<f32>>> {
        self.parameters.iter().map(|(_, var)| Ok(var.flatten_all()?.to_vec1()?)).collect()
    }

    /// The logits `[b]` of the success of `b` samples from their codes, `b * m * j` bytes.
    ///
    /// Row `b` of the result depends on no other row. With `trained` false no gradient can be taken, and nothing is kept
    /// for one.
    pub fn logits(&self, codes: &[u8], trained: bool) -> Result<Tensor> {
        let Shape { m, j, hidden_size, lstm_layers, .. } = self.shape;
        let b = codes.len() / (m * j);
        let mut inputs = self.one_hot(codes)?;
        for layer in 0..lstm_layers {
            let states = self.layer(layer, &inputs, b, trained)?;
            inputs = Tensor::stack(&states, 1)?.reshape((b * m, hidden_size))?;
        }
        let last = inputs.reshape((b, m, hidden_size))?.narrow(1, m - 1, 1)?.squeeze(1)?;
        let weight = self.get("linear.weight", trained)?;
        let bias = self.get("linear.bias", trained)?;
        Ok(last.matmul(&weight.t()?)?.broadcast_add(&bias)?.squeeze(D::Minus1)?)
    }

    /// `[b * m, e * j]`, one 1 for each job that has a state.
    fn one_hot(&self, codes: &[u8]) -> Result<Tensor> {
        let Shape { e, m, j, .. } = self.shape;
        let rows = codes.len() / j;
        let mut cells = vec![0f32; rows * e * j];
        for (row, cells) in codes.chunks_exact(j).zip(cells.chunks_exact_mut(e * j)) {
            for (job, &code) in row.iter().enumerate().filter(|(_, code)| **code != EMPTY) {
                cells[job * e + usize::from(code)] = 1.0;
            }
        }
        debug_assert_eq!(rows % m, 0);
        Ok(Tensor::from_vec(cells, (rows, e * j), self.device())?)
    }

    /// The states `[b, h]` of one layer at each of `m` steps from its inputs `[b * m, inputs]`.
    fn layer(&self, layer: usize, inputs: &Tensor, b: usize, trained: bool) -> Result<Vec<Tensor>> {
        let Shape { m, hidden_size, .. } = self.shape;
        let get = |kind: &str| self.get(&format!("lstm.{kind}_l{layer}"), trained);
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

    fn get(&self, name: &str, trained: bool) -> Result<Tensor> {
        let at = self.parameters.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok();
        let var = &self.parameters[at.with_context(|| format!("no parameter `{name}`"))?].1;
        Ok(if trained { var.as_tensor().clone() } else { var.as_detached_tensor() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: usize = 49;

    const SHAPE: Shape = Shape { e: VOCABULARY, m: 5, j: 3, hidden_size: 4, lstm_layers: 2 };

    fn logits(model: &Lstm, codes: &[u8]) -> Vec<f32> {
        model.logits(codes, false).expect("logits").to_vec1().expect("a vector")
    }

    #[test]
    fn rows_do_not_touch_each_other() {
        let model = Lstm::new(SHAPE, 1, &Device::Cpu).expect("a model");
        let codes: Vec<u8> = (0..30).map(|i| if i % 7 == 0 { EMPTY } else { i as u8 }).collect();
        let both = logits(&model, &codes);
        assert_eq!(both, [logits(&model, &codes[..15]), logits(&model, &codes[15..])].concat());
        assert_ne!(both[0], both[1]);
    }

    #[test]
    fn weights_depend_on_seed_and_name_alone() {
        let weights = |seed| Lstm::new(SHAPE, seed, &Device::Cpu).expect("a model").weights().expect("weights");
        assert_eq!(weights(1), weights(1));
        assert_ne!(weights(1), weights(2));
        let bound = 0.5;
        assert!(weights(1).iter().flatten().all(|w| w.abs() <= bound));
    }

    /// A step by hand, by the equations of `nn.LSTM`.
    #[test]
    fn one_cell_by_hand() {
        let shape = Shape { e: VOCABULARY, m: 2, j: 1, hidden_size: 1, lstm_layers: 1 };
        let model = Lstm::new(shape, 3, &Device::Cpu).expect("a model");
        let weights: std::collections::BTreeMap<_, _> =
            shape.parameters().into_iter().map(|(name, _)| name).zip(model.weights().expect("weights")).collect();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let (mut state, mut cell) = (0f32, 0f32);
        for code in [0usize, 12] {
            let gate = |k: usize| {
                weights["lstm.weight_ih_l0"][k * VOCABULARY + code]
                    + weights["lstm.weight_hh_l0"][k] * state
                    + weights["lstm.bias_ih_l0"][k]
                    + weights["lstm.bias_hh_l0"][k]
            };
            cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * gate(2).tanh();
            state = sigmoid(gate(3)) * cell.tanh();
        }
        let expected = weights["linear.weight"][0] * state + weights["linear.bias"][0];
        assert!((logits(&model, &[0, 12])[0] - expected).abs() < 1e-6);
    }

    #[test]
    fn weights_of_another_shape_are_refused() {
        let short = [0f32; 3];
        assert!(Lstm::with_weights(SHAPE, |_| Ok(&short), &Device::Cpu).is_err());
    }
}
