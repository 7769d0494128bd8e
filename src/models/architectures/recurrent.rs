//! PyTorch's recurrent networks: layers over the frames → the last state, joined with the static
//! features → linear → logit.

use std::ops::Range;

use anyhow::Result;
use candle_core::{D, Tensor};

use crate::{Architecture, ModelInput, ModelShape, ParameterSpec, Weights};

/// Layers of one of PyTorch's recurrent modules, computed batch by batch, and an `nn.Linear`.
#[derive(Debug)]
pub(crate) struct Recurrent {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Prefix of PyTorch's parameter names.
    pub(crate) module: &'static str,
    pub(crate) takes_statics: bool,
    pub(crate) is_fused: bool,
    /// Gates per unit, `g`.
    pub(crate) gates: usize,
    /// States per layer. The first is the input of the layer above.
    pub(crate) states: usize,
    /// One step of PyTorch's cell. `inputs` and `hidden` `[b, g*h]` are the contributions of the
    /// frame's inputs and of the previous state to the gates, each with its bias. `states` are the
    /// states before the frame. Returns the states `[b, h]` after it.
    pub(crate) step:
        fn(inputs: &Tensor, hidden: &Tensor, states: &[Tensor]) -> candle_core::Result<Vec<Tensor>>,
}

/// A parameter of PyTorch's module (in layer `l`), or of the `nn.Linear` after it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecurrentParameter {
    /// Bias of the linear layer, `[1]`.
    LinearBias,
    /// Weights of the linear layer, `[1, h + s]`: for the last state, then for the static features.
    LinearWeight,
    /// Recurrent bias, `[g*h]`.
    BiasHh(usize),
    /// Input bias, `[g*h]`.
    BiasIh(usize),
    /// Recurrent weights, `[g*h, h]`.
    WeightHh(usize),
    /// Input weights, `[g*h, j * (e + shared bits)]` in the first layer, `[g*h, h]` in the others.
    WeightIh(usize),
}

impl Recurrent {
    /// All parameters, sorted by their names in PyTorch.
    pub(crate) fn sorted_parameters(&self, shape: &ModelShape) -> Vec<RecurrentParameter> {
        use RecurrentParameter::*;

        let mut all = vec![LinearBias, LinearWeight];
        for l in 0..shape.lstm_layers {
            all.extend([BiasHh(l), BiasIh(l), WeightHh(l), WeightIh(l)]);
        }
        all.sort_by_key(|parameter| self.parameter_spec(*parameter, shape).name);
        all
    }

    fn parameter_spec(&self, parameter: RecurrentParameter, shape: &ModelShape) -> ParameterSpec {
        use RecurrentParameter::*;

        let h = shape.hidden_size;
        let gates = self.gates * h;
        match parameter {
            LinearBias => ParameterSpec::new("linear.bias", &[1], h),
            LinearWeight => ParameterSpec::new("linear.weight", &[1, h + shape.s], h),
            BiasHh(l) => ParameterSpec::new(self.name_in_layer("bias_hh", l), &[gates], h),
            BiasIh(l) => ParameterSpec::new(self.name_in_layer("bias_ih", l), &[gates], h),
            WeightHh(l) => ParameterSpec::new(self.name_in_layer("weight_hh", l), &[gates, h], h),
            WeightIh(0) => {
                let dims = [gates, shape.frame_inputs()];
                ParameterSpec::new(self.name_in_layer("weight_ih", 0), &dims, h).as_table()
            }
            WeightIh(l) => ParameterSpec::new(self.name_in_layer("weight_ih", l), &[gates, h], h),
        }
    }

    /// PyTorch's name of a parameter of layer `l`.
    fn name_in_layer(&self, kind: &str, l: usize) -> String {
        format!("{}.{kind}_l{l}", self.module)
    }

    /// Computes the contribution of the inputs of some frames to the gates of a layer, `[frames *
    /// b, g*h]`. The inputs are the codes in the first layer, and the states of the layer `below`
    /// in the others.
    fn input_sums(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        frames: Range<usize>,
        below: Option<&[Tensor]>,
        layer: usize,
    ) -> Result<Tensor> {
        let weight = weights.get(&self.name_in_layer("weight_ih", layer))?;
        let bias = weights.get(&self.name_in_layer("bias_ih", layer))?;
        let sums = match below {
            None => input.gather_rows(weight, frames)?,
            Some(below) => Tensor::cat(below, 0)?.matmul(&weight.t()?)?,
        };
        Ok(sums.broadcast_add(bias)?)
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

    fn takes_shared(&self) -> bool {
        true
    }

    fn is_fused(&self) -> bool {
        self.is_fused
    }

    fn parameters(&self, shape: &ModelShape) -> Vec<ParameterSpec> {
        self.sorted_parameters(shape)
            .into_iter()
            .map(|parameter| self.parameter_spec(parameter, shape))
            .collect()
    }

    fn state_count(&self, shape: &ModelShape) -> usize {
        self.states * shape.lstm_layers
    }

    fn advance(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        frames: Range<usize>,
        states: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut after = Vec::with_capacity(states.len());
        let mut below: Option<Vec<Tensor>> = None;

        for (layer, states) in states.chunks_exact(self.states).enumerate() {
            // Use one product over all frames, because inputs do not depend on the previous frame's
            // state.
            let sums = self.input_sums(weights, input, frames.clone(), below.as_deref(), layer)?;
            let weight_hh = weights.get(&self.name_in_layer("weight_hh", layer))?;
            let weight = weight_hh.t()?.contiguous()?;
            let bias = weights.get(&self.name_in_layer("bias_hh", layer))?;

            let mut states = states.to_vec();
            let mut outputs = Vec::with_capacity(frames.len());
            for inputs in sums.chunk(frames.len(), 0)? {
                let hidden = states[0].matmul(&weight)?.broadcast_add(bias)?;
                states = (self.step)(&inputs, &hidden, &states)?;
                outputs.push(states[0].clone());
            }

            below = Some(outputs);
            after.extend(states);
        }
        Ok(after)
    }

    fn logits(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        states: &[Tensor],
    ) -> Result<Tensor> {
        let last = &states[states.len() - self.states];
        let features = if input.shape.s > 0 {
            Tensor::cat(&[last, &input.statics()?], 1)?
        } else {
            last.clone()
        };
        Ok(weights.linear("linear", &features)?.squeeze(D::Minus1)?)
    }
}
