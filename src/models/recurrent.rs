//! PyTorch's recurrent networks: layers over the frames → the last state, beside the static features → linear → logit.

use std::ops::Range;

use anyhow::Result;
use candle_core::{D, Tensor};

use super::{Architecture, Input, Parameter, Shape, Weights};

/// Layers of one of PyTorch's recurrent modules, batch by batch, and an `nn.Linear`.
#[derive(Debug)]
pub(super) struct Recurrent {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// What PyTorch's names begin with.
    pub(super) module: &'static str,
    pub(super) takes_statics: bool,
    pub(super) is_fused: bool,
    /// Gates of a unit, `g`.
    pub(super) gates: usize,
    /// States of a layer; the first is what the layer above sees.
    pub(super) states: usize,
    /// The states `[b, h]` after a frame, from what its inputs and the state before it add to the gates, `[b, g*h]` each
    /// and each with its bias, and from the states before it.
    pub(super) step:
        fn(inputs: &Tensor, hidden: &Tensor, states: &[Tensor]) -> candle_core::Result<Vec<Tensor>>,
}

/// A parameter, by its place in PyTorch's module (of layer `l`) and its `nn.Linear`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// `[1]`.
    LinearBias,
    /// `[1, h + s]`: for the last state, then for the static features.
    LinearWeight,
    /// `[g*h]`.
    BiasHh(usize),
    /// `[g*h]`.
    BiasIh(usize),
    /// `[g*h, h]`.
    WeightHh(usize),
    /// `[g*h, e*j]` in the first layer, `[g*h, h]` in the others.
    WeightIh(usize),
}

impl Recurrent {
    /// Every part, sorted by its parameter's name.
    pub(super) fn parts(&self, shape: &Shape) -> Vec<Part> {
        use Part::*;
        let of_layer = |l| [BiasHh(l), BiasIh(l), WeightHh(l), WeightIh(l)];
        let mut all: Vec<Part> = (0..shape.lstm_layers).flat_map(of_layer).collect();
        all.extend([LinearBias, LinearWeight]);
        all.sort_by_key(|part| self.parameter(*part, shape).name);
        all
    }

    fn parameter(&self, part: Part, shape: &Shape) -> Parameter {
        let h = shape.hidden_size;
        let gates = self.gates * h;
        let of_layer = |kind: &str, l: usize, dims: &[usize]| {
            Parameter::new(format!("{}.{kind}_l{l}", self.module), dims, h)
        };
        match part {
            Part::LinearBias => Parameter::new("linear.bias", &[1], h),
            Part::LinearWeight => Parameter::new("linear.weight", &[1, h + shape.s], h),
            Part::BiasHh(l) => of_layer("bias_hh", l, &[gates]),
            Part::BiasIh(l) => of_layer("bias_ih", l, &[gates]),
            Part::WeightHh(l) => of_layer("weight_hh", l, &[gates, h]),
            Part::WeightIh(0) => of_layer("weight_ih", 0, &[gates, shape.e * shape.j]).table(),
            Part::WeightIh(l) => of_layer("weight_ih", l, &[gates, h]),
        }
    }

    /// What the inputs of some frames add to the gates of a layer, `[frames * b, g*h]`: codes, or the states `below`.
    fn inputs(
        &self,
        weights: &Weights,
        input: &Input<'_>,
        frames: Range<usize>,
        below: Option<&[Tensor]>,
        layer: usize,
    ) -> Result<Tensor> {
        let weight = weights.get(&format!("{}.weight_ih_l{layer}", self.module))?;
        let sums = match below {
            None => input.gather(weight, frames)?,
            Some(below) => Tensor::cat(below, 0)?.matmul(&weight.t()?)?,
        };
        Ok(sums.broadcast_add(weights.get(&format!("{}.bias_ih_l{layer}", self.module))?)?)
    }
}

impl Architecture for Recurrent {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn takes_statics(&self) -> bool {
        self.takes_statics
    }

    fn is_fused(&self) -> bool {
        self.is_fused
    }

    fn parameters(&self, shape: &Shape) -> Vec<Parameter> {
        self.parts(shape)
            .into_iter()
            .map(|part| self.parameter(part, shape))
            .collect()
    }

    fn states(&self, shape: &Shape) -> usize {
        self.states * shape.lstm_layers
    }

    fn advance(
        &self,
        weights: &Weights,
        input: &Input<'_>,
        frames: Range<usize>,
        states: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut after = Vec::with_capacity(states.len());
        let mut below: Option<Vec<Tensor>> = None;
        for (layer, states) in states.chunks_exact(self.states).enumerate() {
            let inputs = self.inputs(weights, input, frames.clone(), below.as_deref(), layer)?;
            let weight = weights
                .get(&format!("{}.weight_hh_l{layer}", self.module))?
                .t()?
                .contiguous()?;
            let bias = weights.get(&format!("{}.bias_hh_l{layer}", self.module))?;
            let mut states = states.to_vec();
            let mut outputs = Vec::with_capacity(frames.len());
            for inputs in inputs.chunk(frames.len(), 0)? {
                let hidden = states[0].matmul(&weight)?.broadcast_add(bias)?;
                states = (self.step)(&inputs, &hidden, &states)?;
                outputs.push(states[0].clone());
            }
            below = Some(outputs);
            after.extend(states);
        }
        Ok(after)
    }

    fn logits(&self, weights: &Weights, input: &Input<'_>, states: &[Tensor]) -> Result<Tensor> {
        let last = &states[states.len() - self.states];
        let features = if input.shape.s > 0 {
            Tensor::cat(&[last, &input.statics()?], 1)?
        } else {
            last.clone()
        };
        Ok(weights.linear("linear", &features)?.squeeze(D::Minus1)?)
    }
}
