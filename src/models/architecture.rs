//! What makes a model: its name, its parameters, and its way from a batch to logits in candle's
//! operations.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::{Context as _, Result};
use candle_core::Tensor;

use super::{ModelInput, ModelShape, ParameterSpec};

/// A kind of model. `docs/new-model.md` shows how to add one.
pub trait Architecture: fmt::Debug + Sync {
    /// Its name in the configuration, in files and in tables.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn about(&self) -> &'static str;

    /// Whether it also looks at the static features.
    fn takes_statics(&self) -> bool {
        false
    }

    /// Its parameters, in any order.
    fn parameters(&self, shape: &ModelShape) -> Vec<ParameterSpec>;

    /// How many states `[b, h]` it carries from frame to frame; they begin as zeros.
    fn state_count(&self, _shape: &ModelShape) -> usize {
        0
    }

    /// The states after `frames`, from those before them. Frames come in order, some at a time, so
    /// that a gradient needs no more memory and no deeper graph for many frames than for few.
    fn advance(
        &self,
        _weights: &Weights,
        _input: &ModelInput<'_>,
        _frames: Range<usize>,
        states: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        Ok(states.to_vec())
    }

    /// The logits `[b]` of success, from the states after all frames.
    ///
    /// Row `b` may depend on no other row: batches are cut into chunks.
    fn logits(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        states: &[Tensor],
    ) -> Result<Tensor>;

    /// Whether the fused engine for the CPU computes the same, faster.
    fn is_fused(&self) -> bool {
        false
    }
}

/// The parameters of a model, as tensors on its device.
#[derive(Debug)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    pub(super) fn new(
        tensors: impl IntoIterator<Item = Result<(String, Tensor)>>,
    ) -> Result<Weights> {
        Ok(Weights(tensors.into_iter().collect::<Result<_>>()?))
    }

    /// The same weights, detached: no gradient goes through them.
    pub(super) fn detached(&self) -> Weights {
        let detached = self
            .0
            .iter()
            .map(|(name, tensor)| (name.clone(), tensor.detach()));
        Weights(detached.collect())
    }

    /// The parameter `name`, with the dimensions that [`Architecture::parameters`] gave it.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.0
            .get(name)
            .with_context(|| format!("the model has no parameter `{name}`"))
    }

    /// `inputs [b, n] → [b, k]` by `name.weight` `[k, n]` and `name.bias` `[k]`, as PyTorch's
    /// `nn.Linear`.
    pub fn linear(&self, name: &str, inputs: &Tensor) -> Result<Tensor> {
        let weight = self.get(&format!("{name}.weight"))?;
        let bias = self.get(&format!("{name}.bias"))?;
        Ok(inputs.matmul(&weight.t()?)?.broadcast_add(bias)?)
    }
}
