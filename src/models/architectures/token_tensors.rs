//! The outcome tokens of a batch as tensors on a device.

use anyhow::Result;
use candle_core::Tensor;

use crate::ModelInput;
use crate::token_batch::{
    FIRST_STATE, QUESTION_FEATURES, REASON_WORDS, TOKEN_FEATURES, TOKEN_STATES, TOKENS,
};

/// The tokens of a batch as tensors.
pub(super) struct TokenTensors {
    /// `[b * 64, 29]`.
    pub(super) tokens: Tensor,
    /// `[b * 64, 12]`.
    pub(super) states: Tensor,
    /// Hashed hold codes of the tokens, `[b * 64]`.
    pub(super) token_codes: Tensor,
    /// `[b, 64, 1]`.
    pub(super) mask: Tensor,
    /// `[b, 7]`.
    pub(super) question: Tensor,
    /// Hashed hold codes of the held jobs, `[b]`.
    pub(super) codes: Tensor,
    /// `[b, 64]`.
    pub(super) words: Tensor,
    /// Factors of hidden units, `[b, u]`; `None` without dropout.
    pub(super) kept: Option<Tensor>,
}

impl TokenTensors {
    /// Copies the tokens of `input` to its device.
    ///
    /// # Errors
    /// Fails when the samples have no tokens.
    pub(super) fn new(input: &ModelInput<'_>) -> Result<TokenTensors> {
        let b = input.len();
        let batch = input.tokens()?;
        let tensor =
            |numbers: &[f32], dims: &[usize]| Tensor::from_slice(numbers, dims, input.device);
        let indexes = |codes: &[u8]| {
            let codes: Vec<u32> = codes.iter().map(|&code| u32::from(code)).collect();
            let count = codes.len();
            Tensor::from_vec(codes, count, input.device)
        };
        let tokens = tensor(batch.tokens, &[b * TOKENS, TOKEN_FEATURES])?;
        let kept = match batch.kept.len() {
            0 => None,
            count => Some(tensor(batch.kept, &[b, count / b])?),
        };
        Ok(TokenTensors {
            states: tokens.narrow(1, FIRST_STATE, TOKEN_STATES)?.contiguous()?,
            tokens,
            token_codes: indexes(batch.token_codes)?,
            mask: tensor(batch.mask, &[b, TOKENS, 1])?,
            question: tensor(batch.question, &[b, QUESTION_FEATURES])?,
            codes: indexes(batch.codes)?,
            words: tensor(batch.words, &[b, REASON_WORDS])?,
            kept,
        })
    }
}
