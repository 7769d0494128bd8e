//! Architecture of a model: its name, its parameters, and its path from a batch to logits in
//! candle's operations.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::{Context as _, Result};
use candle_core::Tensor;

use super::{ModelInput, ModelShape, ParameterSpec, TrainingRecipe};

/// A kind of model. `docs/new-model.md` shows how to add one.
pub trait Architecture: fmt::Debug + Sync {
    /// Name in the configuration, in files and in tables.
    fn name(&self) -> &'static str;

    /// Short description.
    fn about(&self) -> &'static str;

    /// Returns true if the model also uses the static features.
    fn takes_statics(&self) -> bool {
        false
    }

    /// Returns true if the model also uses what each job of a sample shares with the held one.
    fn takes_shared(&self) -> bool {
        false
    }

    /// Returns true if the model reads outcome tokens.
    fn takes_tokens(&self) -> bool {
        false
    }

    /// Returns how the model is trained where a trial does not say.
    fn recipe(&self) -> TrainingRecipe {
        TrainingRecipe::default()
    }

    /// The number of units that [`TrainingRecipe::dropout`] leaves out at random.
    fn dropout_units(&self, _shape: &ModelShape) -> usize {
        0
    }

    /// The parameters, in any order.
    fn parameters(&self, shape: &ModelShape) -> Vec<ParameterSpec>;

    /// The number of states `[b, h]` that the model carries from frame to frame. They start as
    /// zeros.
    fn state_count(&self, _shape: &ModelShape) -> usize {
        0
    }

    /// Computes the states after `frames` from the states before them. Frames come in order, a few
    /// per call. A gradient over many frames thus needs no more memory and no deeper graph than one
    /// over few.
    fn advance(
        &self,
        _weights: &Weights,
        _input: &ModelInput<'_>,
        _frames: Range<usize>,
        states: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        Ok(states.to_vec())
    }

    /// Computes the logits `[b]` of success from the states after all frames. A model of several
    /// networks returns the logits of each, `[b, networks]`. Each network learns from its own loss, and
    /// the mean of the logits counts.
    ///
    /// Row `b` must not depend on other rows, because batches are cut into chunks.
    fn logits(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        states: &[Tensor],
    ) -> Result<Tensor>;

    /// Returns true if the fused engine for the CPU computes the same, faster.
    fn is_fused(&self) -> bool {
        false
    }
}

/// The parameters of a model, as tensors on its device.
#[derive(Debug)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// Collects parameters by name. Fails with the first error among `tensors`.
    pub fn new(tensors: impl IntoIterator<Item = Result<(String, Tensor)>>) -> Result<Weights> {
        Ok(Weights(tensors.into_iter().collect::<Result<_>>()?))
    }

    /// Returns the same weights without gradient tracking.
    pub fn detached(&self) -> Weights {
        let detached = self
            .0
            .iter()
            .map(|(name, tensor)| (name.clone(), tensor.detach()));
        Weights(detached.collect())
    }

    /// The parameter `name`, with the dimensions from [`Architecture::parameters`].
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.0
            .get(name)
            .with_context(|| format!("the model has no parameter `{name}`"))
    }

    /// Computes `inputs [b, n] → [b, k]` with `name.weight` `[k, n]` and `name.bias` `[k]`, like
    /// PyTorch's `nn.Linear`.
    pub fn linear(&self, name: &str, inputs: &Tensor) -> Result<Tensor> {
        let weight = self.get(&format!("{name}.weight"))?;
        let bias = self.get(&format!("{name}.bias"))?;
        Ok(inputs.matmul(&weight.t()?)?.broadcast_add(bias)?)
    }
}
