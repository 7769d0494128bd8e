//! Records with learned memory and similarity, over outcome tokens. Each head is a weighted rate:
//! the mean of a value by state over all tokens, with a weight that depends on what a token shares
//! with the held job, and on its age.

use anyhow::Result;
use candle_core::{D, Tensor};

use super::members::{MEMBERS, RECIPE, all_logits, all_parameters, member_name};
use super::token_tensors::TokenTensors;
use crate::token_batch::{
    FIRST_NUMBER, FIRST_STATE, QUESTION_FEATURES, REASON_WORDS, TOKEN_CODES, TOKEN_FEATURES,
    TOKEN_STATES, TOKENS,
};
use crate::{Architecture, ModelInput, ModelShape, ParameterSpec, TrainingRecipe, Weights};

/// Number of heads of a network: two for each kind of thing that a token may share with the held
/// job, and four for all tokens.
pub(crate) const HEADS: usize = 2 * FIRST_STATE + 4;

/// Numbers by which the network knows a hold code, and the words of a hold reason.
pub(crate) const EMBEDDED: usize = 8;

/// Inputs of the hidden layer: a rate and a weight of each head, and the held job itself.
pub(crate) const INPUTS: usize = 2 * HEADS + QUESTION_FEATURES + 2 * EMBEDDED;

/// Range of the logarithm of a token's weight.
pub(crate) const LOG_WEIGHTS: [f32; 2] = [-8.0, 6.0];

/// Minimum of the weight of the value 0 in each rate.
pub(crate) const MIN_PRIOR: f32 = 0.3;

/// Half-width of the range of the initial weights around the weights of the records.
const SPREAD: f32 = 0.1;

#[derive(Debug)]
pub(super) struct Outcomes;

impl Architecture for Outcomes {
    fn name(&self) -> &'static str {
        "outcomes"
    }

    fn about(&self) -> &'static str {
        "Weighted success rates over the last outcomes of related jobs"
    }

    fn takes_tokens(&self) -> bool {
        true
    }

    fn recipe(&self) -> TrainingRecipe {
        TrainingRecipe {
            clip_grad_norm: 0.6,
            ..RECIPE
        }
    }

    fn dropout_units(&self, shape: &ModelShape) -> usize {
        MEMBERS * shape.hidden_size
    }

    fn is_fused(&self) -> bool {
        true
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
        let width = input.shape.hidden_size;
        all_logits(|member| member_logits(&tokens, weights, member, width))
    }
}

fn member_parameters(member: usize, width: usize) -> Vec<ParameterSpec> {
    let spec = |name: &str, dims: &[usize], fan_in| {
        ParameterSpec::new(member_name(member, name), dims, fan_in)
    };
    vec![
        spec("heads.weight", &[HEADS, TOKEN_FEATURES], 1)
            .as_table()
            .within(SPREAD)
            .around(head_weights()),
        spec("heads.bias", &[HEADS], 1)
            .within(SPREAD)
            .around(head_biases()),
        spec("values.weight", &[TOKEN_STATES, HEADS], 1)
            .within(SPREAD)
            .around(state_values()),
        ParameterSpec::constant(member_name(member, "prior"), &[HEADS], 0.0),
        spec("code.weight", &[TOKEN_CODES, EMBEDDED], 4),
        spec("words.weight", &[EMBEDDED, REASON_WORDS], REASON_WORDS).as_table(),
        spec("hidden.weight", &[width, INPUTS], INPUTS).as_table(),
        spec("hidden.bias", &[width], INPUTS),
        spec("output.weight", &[width], width),
        spec("output.bias", &[1], width),
        spec("direct.weight", &[INPUTS], 1)
            .within(SPREAD / 2.0)
            .around(direct_weights()),
    ]
}

/// Number of open states: held, waiting, running. They come first but for one.
const OPEN_STATES: [usize; 3] = [0, 2, 3];

/// The states of first runs.
const FIRST_RUN_STATES: [usize; 2] = [10, 11];

/// Initial value of each state: from a success to another hold.
const STATE_VALUES: [f32; TOKEN_STATES] = [
    0.0, -0.5, 0.0, 0.0, 1.0, 1.5, -1.5, -1.0, -1.0, -0.5, 1.0, -1.0,
];

/// Initial weight of the logarithm of a token's age, for every second head.
const AGE_WEIGHTS: [f32; 2] = [-0.2, -0.9];

/// Initial weight of a rate in the logit.
const RATE_WEIGHT: f32 = 0.2;

/// The initial weights of the heads, `[h, 29]`.
fn head_weights() -> Vec<f32> {
    let mut weights = vec![0.0; HEADS * TOKEN_FEATURES];
    for (head, weights) in weights.chunks_exact_mut(TOKEN_FEATURES).enumerate() {
        if head / 2 < FIRST_STATE {
            weights[head / 2] = 4.0;
        }
        weights[FIRST_NUMBER] = 0.5;
        weights[FIRST_NUMBER + 1] = AGE_WEIGHTS[head % 2];
        for state in OPEN_STATES {
            weights[FIRST_STATE + state] = -3.0;
        }
        for state in FIRST_RUN_STATES {
            weights[FIRST_STATE + state] = -1.0;
        }
    }
    weights
}

/// The initial biases of the heads, `[h]`.
fn head_biases() -> Vec<f32> {
    (0..HEADS)
        .map(|head| if head / 2 < FIRST_STATE { -4.0 } else { -2.0 })
        .collect()
}

/// The initial values of the states, `[12, h]`.
fn state_values() -> Vec<f32> {
    STATE_VALUES
        .iter()
        .flat_map(|value| [*value; HEADS])
        .collect()
}

/// The initial weights of the inputs in the logit: it begins as the sum of the rates.
fn direct_weights() -> Vec<f32> {
    let of_input = |input| if input < HEADS { RATE_WEIGHT } else { 0.0 };
    (0..INPUTS).map(of_input).collect()
}

/// Computes the logits `[b, 1]` of one network of `width` hidden units.
fn member_logits(
    tokens: &TokenTensors,
    weights: &Weights,
    member: usize,
    width: usize,
) -> Result<Tensor> {
    let get = |name: &str| weights.get(&member_name(member, name));
    let by_head = (tokens.codes.dim(0)?, TOKENS, HEADS);

    let [low, high] = LOG_WEIGHTS;
    let log_weights = tokens
        .tokens
        .matmul(get("heads.weight")?)?
        .broadcast_add(get("heads.bias")?)?;
    let token_weights = log_weights.clamp(low, high)?.exp()?.reshape(by_head)?;
    let token_weights = token_weights.broadcast_mul(&tokens.mask)?;
    let values = tokens.states.matmul(&get("values.weight")?.tanh()?)?;
    let values = values.reshape(by_head)?;

    let sums = token_weights.sum(1)?;
    let weighted = (token_weights * values)?.sum(1)?;
    let prior = ((get("prior")?.exp()? + 1.0)?.log()? + f64::from(MIN_PRIOR))?;
    let rates = weighted.div(&sums.broadcast_add(&prior)?)?;
    let log_sums = (sums + 1.0)?.log()?;
    let code = get("code.weight")?.index_select(&tokens.codes, 0)?;
    let words = tokens.words.matmul(get("words.weight")?)?;
    let inputs = Tensor::cat(&[&rates, &log_sums, &tokens.question, &code, &words], 1)?;

    let hidden = inputs
        .matmul(get("hidden.weight")?)?
        .broadcast_add(get("hidden.bias")?)?
        .gelu()?;
    let hidden = match &tokens.kept {
        Some(kept) => (hidden * kept.narrow(D::Minus1, member * width, width)?)?,
        None => hidden,
    };
    let output = hidden.matmul(&get("output.weight")?.unsqueeze(1)?)?;
    let direct = inputs.matmul(&get("direct.weight")?.unsqueeze(1)?)?;
    Ok((output + direct)?.broadcast_add(get("output.bias")?)?)
}
