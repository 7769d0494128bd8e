//! Attention over outcome tokens: the held job attends once over what happened to related jobs. The
//! block is the one of a transformer with normalisation first (Xiong et al., On Layer Normalization in
//! the Transformer Architecture, 2020), with the held job as its only query.

use anyhow::Result;
use candle_core::{D, Tensor};

use super::members::{MEMBERS, RECIPE, all_logits, all_parameters, member_name};
use super::token_tensors::TokenTensors;
use crate::layers::{layer_norm, linear_parameters, norm_parameters};
use crate::token_batch::{QUESTION_FEATURES, REASON_WORDS, TOKEN_CODES, TOKEN_FEATURES, TOKENS};
use crate::{Architecture, ModelInput, ModelShape, ParameterSpec, TrainingRecipe, Weights};

/// Number of attention heads of a network.
const HEADS: usize = 4;
/// Hidden units of the feed-forward layer, as a multiple of the width.
const FEED_FORWARD: usize = 2;
/// Number by which the score of a token that does not exist is lowered.
const NO_TOKEN: f64 = 1e9;
/// Sum of attention weights that a sample without tokens is divided by.
const MIN_SUM: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Attention;

impl Architecture for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn about(&self) -> &'static str {
        "Attention of the held job over the last outcomes of related jobs"
    }

    fn takes_tokens(&self) -> bool {
        true
    }

    fn recipe(&self) -> TrainingRecipe {
        RECIPE
    }

    fn dropout_units(&self, shape: &ModelShape) -> usize {
        MEMBERS * FEED_FORWARD * shape.hidden_size
    }

    fn parameters(&self, shape: &ModelShape) -> Vec<ParameterSpec> {
        all_parameters(|member| member_parameters(member, shape.hidden_size))
    }

    fn logits(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
        _states: &[Tensor],
    ) -> Result<Tensor> {
        let tokens = TokenTensors::new(input)?;
        all_logits(|member| {
            let network = Network {
                weights,
                member,
                width: input.shape.hidden_size,
            };
            network.logits(&tokens)
        })
    }
}

/// Width of an attention head of a network of `width` units.
fn head_width(width: usize) -> usize {
    width.div_ceil(HEADS)
}

fn member_parameters(member: usize, width: usize) -> Vec<ParameterSpec> {
    let linear = |layer: &str, n, k| linear_parameters(&member_name(member, layer), n, k);
    let norm = |layer: &str| norm_parameters(&member_name(member, layer), width);
    let table = |layer: &str| {
        let name = member_name(member, &format!("{layer}.weight"));
        ParameterSpec::new(name, &[TOKEN_CODES, width], width)
    };

    let attended = HEADS * head_width(width);
    let mut parameters = vec![table("token_code"), table("question_code")];
    parameters.extend(linear("token", TOKEN_FEATURES, width));
    parameters.extend(linear("question", QUESTION_FEATURES, width));
    parameters.extend(linear("words", REASON_WORDS, width));
    parameters.extend(linear("query", width, attended));
    parameters.extend(linear("key", width, attended));
    parameters.extend(linear("value", width, attended));
    parameters.extend(linear("attended", attended, width));
    parameters.extend(linear("hidden", width, FEED_FORWARD * width));
    parameters.extend(linear("output", FEED_FORWARD * width, width));
    parameters.extend(linear("logit", width, 1));
    for layer in ["token_norm", "query_norm", "hidden_norm", "logit_norm"] {
        parameters.extend(norm(layer));
    }
    parameters
}

/// One of the networks of the model.
struct Network<'a> {
    weights: &'a Weights,
    member: usize,
    width: usize,
}

impl Network<'_> {
    /// Computes the logits `[b, 1]`.
    fn logits(&self, tokens: &TokenTensors) -> Result<Tensor> {
        let code = self.embed("question_code", &tokens.codes)?;
        let held = (self.linear("question", &tokens.question)? + code)?;
        let held = (held + self.linear("words", &tokens.words)?)?;
        let held = (&held + self.attend(&held, tokens)?)?;

        let hidden = self
            .linear("hidden", &self.norm("hidden_norm", &held)?)?
            .gelu()?;
        let hidden = match &tokens.kept {
            Some(kept) => (hidden * self.kept_units(kept)?)?,
            None => hidden,
        };
        let held = (held + self.linear("output", &hidden)?)?;
        self.linear("logit", &self.norm("logit_norm", &held)?)
    }

    /// Computes what the held jobs `[b, h]` read from their tokens, `[b, h]`.
    fn attend(&self, held: &Tensor, tokens: &TokenTensors) -> Result<Tensor> {
        let b = held.dim(0)?;
        let width = head_width(self.width);
        let inputs = self.linear("token", &tokens.tokens)?;
        let inputs = (inputs + self.embed("token_code", &tokens.token_codes)?)?;
        let inputs = self.norm("token_norm", &inputs)?;

        let by_head = (b, TOKENS, HEADS, width);
        let keys = self.linear("key", &inputs)?.reshape(by_head)?;
        let values = self.linear("value", &inputs)?.reshape(by_head)?;
        let queries = self.linear("query", &self.norm("query_norm", held)?)?;
        let queries = (queries.reshape((b, 1, HEADS, width))? / (width as f64).sqrt())?;
        let scores = keys.broadcast_mul(&queries)?.sum(D::Minus1)?;

        let shares = masked_softmax(&scores, &tokens.mask)?.unsqueeze(D::Minus1)?;
        let read = values.broadcast_mul(&shares)?.sum(1)?;
        self.linear("attended", &read.reshape((b, HEADS * width))?)
    }

    /// Computes `inputs [n, i] → [n, k]` with the parameters of `layer`.
    fn linear(&self, layer: &str, inputs: &Tensor) -> Result<Tensor> {
        self.weights.linear(&self.name(layer), inputs)
    }

    /// Normalises each row of `inputs [n, h]`.
    fn norm(&self, layer: &str, inputs: &Tensor) -> Result<Tensor> {
        layer_norm(self.weights, &self.name(layer), inputs)
    }

    /// Returns the rows of a table that `codes [n]` select, `[n, h]`.
    fn embed(&self, table: &str, codes: &Tensor) -> Result<Tensor> {
        let table = self.weights.get(&format!("{}.weight", self.name(table)))?;
        Ok(table.index_select(codes, 0)?)
    }

    /// The factors of the hidden units of this network, `[b, 2 * h]`.
    fn kept_units(&self, kept: &Tensor) -> Result<Tensor> {
        let units = FEED_FORWARD * self.width;
        Ok(kept.narrow(D::Minus1, self.member * units, units)?)
    }

    fn name(&self, layer: &str) -> String {
        member_name(self.member, layer)
    }
}

/// Computes the softmax of `scores [b, 64, heads]` over the tokens that exist, by `mask [b, 64, 1]`.
/// The shares of a sample without tokens are 0.
fn masked_softmax(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let no_token = ((mask - 1.0)? * NO_TOKEN)?;
    let scores = scores.broadcast_add(&no_token)?;
    let highest = scores.max_keepdim(1)?.detach();
    let weights = scores.broadcast_sub(&highest)?.exp()?.broadcast_mul(mask)?;
    let sums = (weights.sum_keepdim(1)? + MIN_SUM)?;
    Ok(weights.broadcast_div(&sums)?)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn shares_sum_to_one_over_the_tokens_that_exist() {
        let scores = Tensor::new(
            &[[[0f32], [1.0], [2.0]], [[3.0], [4.0], [5.0]]],
            &Device::Cpu,
        );
        let mask = Tensor::new(
            &[[[0f32], [1.0], [1.0]], [[0.0], [0.0], [0.0]]],
            &Device::Cpu,
        );
        let shares = masked_softmax(&scores.expect("scores"), &mask.expect("a mask"));
        let shares = shares.and_then(|shares| Ok(shares.flatten_all()?.to_vec1::<f32>()?));
        let shares = shares.expect("shares");
        let second = 1.0 / (1.0 + 1f32.exp());
        let expected = [0.0, second, 1.0 - second, 0.0, 0.0, 0.0];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-6, "{shares:?}");
        }
    }
}
