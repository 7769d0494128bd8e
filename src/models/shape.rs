//! What decides the shapes of an LSTM's weights, and the parameters there are.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// What decides the shapes of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Event types.
    pub e: usize,
    /// Time frames.
    pub m: usize,
    /// Jobs.
    pub j: usize,
    /// Static features of a sample.
    pub s: usize,
    /// Width of each layer's state, `h`.
    pub hidden_size: usize,
    /// Layers.
    pub lstm_layers: usize,
}

impl Shape {
    /// Refuses sizes that no model has, as a damaged file may.
    ///
    /// # Errors
    /// Fails when a size is zero, or larger than any configuration can make it.
    pub fn check(&self) -> Result<()> {
        let Shape { e, m, j, s, hidden_size, lstm_layers } = *self;
        let is_model = (1..=255).contains(&e)
            && (1..=10_000).contains(&m)
            && (1..=10_000).contains(&j)
            && s <= 10_000
            && (1..=4096).contains(&hidden_size)
            && (1..=16).contains(&lstm_layers);
        ensure!(is_model, "no model has this shape: {self:?}");
        Ok(())
    }

    /// Every parameter, sorted by name.
    pub fn parameters(&self) -> Vec<Parameter> {
        use Parameter::*;
        let of_layer = |l| [BiasHh(l), BiasIh(l), WeightHh(l), WeightIh(l)];
        let mut all: Vec<Parameter> = (0..self.lstm_layers).flat_map(of_layer).collect();
        all.extend([LinearBias, LinearWeight]);
        all.sort_by_key(Parameter::name);
        all
    }

    /// The inputs of `layer` at each frame: the one-hot codes, or the states of the layer below.
    pub fn inputs(&self, layer: usize) -> usize {
        if layer == 0 { self.e * self.j } else { self.hidden_size }
    }
}

/// A parameter, by its place in PyTorch's `nn.LSTM` (of layer `l`) and `nn.Linear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// `[1]`.
    LinearBias,
    /// `[1, h + s]`: for the last state, then for the static features.
    LinearWeight,
    /// `[4*h]`.
    BiasHh(usize),
    /// `[4*h]`.
    BiasIh(usize),
    /// `[4*h, h]`.
    WeightHh(usize),
    /// `[4*h, e*j]` in the first layer, `[4*h, h]` in the others.
    WeightIh(usize),
}

impl Parameter {
    /// The name it has in PyTorch, and in files.
    pub fn name(&self) -> String {
        match self {
            Parameter::LinearBias => "linear.bias".to_owned(),
            Parameter::LinearWeight => "linear.weight".to_owned(),
            Parameter::BiasHh(l) => format!("lstm.bias_hh_l{l}"),
            Parameter::BiasIh(l) => format!("lstm.bias_ih_l{l}"),
            Parameter::WeightHh(l) => format!("lstm.weight_hh_l{l}"),
            Parameter::WeightIh(l) => format!("lstm.weight_ih_l{l}"),
        }
    }

    /// Its dimensions, in row-major order.
    pub fn dims(&self, shape: &Shape) -> Vec<usize> {
        let (h, gates) = (shape.hidden_size, 4 * shape.hidden_size);
        match *self {
            Parameter::LinearBias => vec![1],
            Parameter::LinearWeight => vec![1, h + shape.s],
            Parameter::BiasHh(_) | Parameter::BiasIh(_) => vec![gates],
            Parameter::WeightHh(_) => vec![gates, h],
            Parameter::WeightIh(layer) => vec![gates, shape.inputs(layer)],
        }
    }

    /// How many elements it has.
    pub fn len(&self, shape: &Shape) -> usize {
        self.dims(shape).iter().product()
    }
}
