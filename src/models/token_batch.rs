//! Outcome tokens of a batch: what happened to other jobs, one token for each thing.

use anyhow::{Result, ensure};

/// Maximum number of tokens of a sample.
pub const TOKENS: usize = 64;

/// Numbers of a token: 11 for what it shares with the held job, 12 for its state as a one-hot
/// vector, and 6 for its count and its times.
pub const TOKEN_FEATURES: usize = 29;

/// Index of the first state among the numbers of a token.
pub const FIRST_STATE: usize = 11;

/// Number of states of a token.
pub const TOKEN_STATES: usize = 12;

/// Index of the first of the other numbers of a token: the logarithm of its count. The logarithm of
/// its age follows.
pub const FIRST_NUMBER: usize = FIRST_STATE + TOKEN_STATES;

/// Numbers of the held job itself.
pub const QUESTION_FEATURES: usize = 7;

/// Number of values of a hashed hold code; 0 stands for none.
pub const TOKEN_CODES: usize = 32;

/// Numbers that represent the words of a hold reason.
pub const REASON_WORDS: usize = 64;

/// Outcome tokens of `b` samples, row-major.
#[derive(Debug, Clone, Copy)]
pub struct TokenBatch<'a> {
    /// Tokens `[b, 64, 29]`, the newest last.
    pub tokens: &'a [f32],
    /// 1 for a token and 0 for padding, `[b, 64]`.
    pub mask: &'a [f32],
    /// Numbers of the held job, `[b, 7]`.
    pub question: &'a [f32],
    /// Hashed hold code of the held job, `[b]`.
    pub codes: &'a [u8],
    /// Words of the hold reason of the held job, `[b, 64]`.
    pub words: &'a [f32],
    /// Factors of hidden units `[b, u]`, for dropout; empty without it.
    pub kept: &'a [f32],
}

impl<'a> TokenBatch<'a> {
    /// Rejects lengths that are not those of `b` samples.
    pub(super) fn check(&self, b: usize) -> Result<()> {
        let are_whole = self.tokens.len() == b * TOKENS * TOKEN_FEATURES
            && self.mask.len() == b * TOKENS
            && self.question.len() == b * QUESTION_FEATURES
            && self.codes.len() == b
            && self.words.len() == b * REASON_WORDS
            && (b == 0 || self.kept.len().is_multiple_of(b));
        ensure!(are_whole, "the tokens are not those of {b} samples");
        ensure!(
            self.codes
                .iter()
                .all(|&code| usize::from(code) < TOKEN_CODES),
            "a hashed hold code is not below {TOKEN_CODES}"
        );
        Ok(())
    }

    /// Returns the samples from `start` to `end` of `b`.
    pub(super) fn slice(&self, start: usize, end: usize, b: usize) -> TokenBatch<'a> {
        fn part<T>(all: &[T], start: usize, end: usize, b: usize) -> &[T] {
            let width = all.len() / b;
            &all[start * width..end * width]
        }
        TokenBatch {
            tokens: part(self.tokens, start, end, b),
            mask: part(self.mask, start, end, b),
            question: part(self.question, start, end, b),
            codes: part(self.codes, start, end, b),
            words: part(self.words, start, end, b),
            kept: part(self.kept, start, end, b),
        }
    }
}
