//! Several networks over outcome tokens that learn side by side, each from its own loss. They have
//! different initial weights, and the model's logit is the mean of theirs.

use anyhow::Result;
use candle_core::Tensor;

use crate::{ParameterSpec, RateSchedule, TrainingRecipe};

/// Number of networks.
pub(crate) const MEMBERS: usize = 3;

/// The settings of their training. Architectures differ in the limit of the gradient alone.
pub(super) const RECIPE: TrainingRecipe = TrainingRecipe {
    max_epochs: Some(20),
    schedule: RateSchedule::WarmUpAndCosine,
    token_dropout: 0.1,
    dropout: 0.2,
    weight_decay: 0.05,
    clip_grad_norm: 1.0,
};

/// Returns the name of parameter `name` of a network.
pub(crate) fn member_name(member: usize, name: &str) -> String {
    format!("members.{member}.{name}")
}

/// Joins the parameters of each network.
pub(super) fn all_parameters(
    of_member: impl Fn(usize) -> Vec<ParameterSpec>,
) -> Vec<ParameterSpec> {
    (0..MEMBERS).flat_map(of_member).collect()
}

/// Joins the logits of each network, `[b, 1]`, to `[b, networks]`.
pub(super) fn all_logits(of_member: impl Fn(usize) -> Result<Tensor>) -> Result<Tensor> {
    let logits: Vec<Tensor> = (0..MEMBERS).map(of_member).collect::<Result<_>>()?;
    Ok(Tensor::cat(&logits, 1)?)
}
