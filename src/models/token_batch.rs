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
    /// Hashed hold code of each token, `[b, 64]`; 0 for none.
    pub token_codes: &'a [u8],
    /// Words of the hold reason of the held job, `[b, 64]`.
    pub words: &'a [f32],
    /// Factors of hidden units `[b, u]`, for dropout; empty without it.
    pub kept: &'a [f32],
}

impl<'a> TokenBatch<'a> {
    /// Rejects lengths that do not fit `b` samples.
    pub(super) fn check(&self, b: usize) -> Result<()> {
        let are_whole = self.tokens.len() == b * TOKENS * TOKEN_FEATURES
            && self.mask.len() == b * TOKENS
            && self.question.len() == b * QUESTION_FEATURES
            && self.codes.len() == b
            && self.token_codes.len() == b * TOKENS
            && self.words.len() == b * REASON_WORDS
            && (b == 0 || self.kept.len().is_multiple_of(b));
        ensure!(are_whole, "the tokens are not those of {b} samples");
        ensure!(
            (self.codes.iter())
                .chain(self.token_codes)
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
            token_codes: part(self.token_codes, start, end, b),
            words: part(self.words, start, end, b),
            kept: part(self.kept, start, end, b),
        }
    }
}

/// The columns of a [`TokenBatch`], with the same shapes.
#[derive(Debug, Default)]
pub struct TokenColumns {
    /// Tokens.
    pub tokens: Vec<f32>,
    /// 1 for a token and 0 for padding.
    pub mask: Vec<f32>,
    /// Numbers of the held jobs.
    pub question: Vec<f32>,
    /// Hashed hold codes of the held jobs.
    pub codes: Vec<u8>,
    /// Hashed hold codes of the tokens.
    pub token_codes: Vec<u8>,
    /// Words of the hold reasons of the held jobs.
    pub words: Vec<f32>,
    /// Factors of hidden units; empty without dropout.
    pub kept: Vec<f32>,
}

impl TokenColumns {
    /// Copies `batch`, of `b` samples, and adds samples without tokens up to `rows` samples.
    pub(super) fn padded(batch: &TokenBatch<'_>, b: usize, rows: usize) -> TokenColumns {
        fn padded<T: Copy + Default>(all: &[T], b: usize, rows: usize) -> Vec<T> {
            let mut all = all.to_vec();
            all.resize(all.len() / b * rows, T::default());
            all
        }
        TokenColumns {
            tokens: padded(batch.tokens, b, rows),
            mask: padded(batch.mask, b, rows),
            question: padded(batch.question, b, rows),
            codes: padded(batch.codes, b, rows),
            token_codes: padded(batch.token_codes, b, rows),
            words: padded(batch.words, b, rows),
            kept: padded(batch.kept, b, rows),
        }
    }

    /// Returns the batch.
    pub fn batch(&self) -> TokenBatch<'_> {
        TokenBatch {
            tokens: &self.tokens,
            mask: &self.mask,
            question: &self.question,
            codes: &self.codes,
            token_codes: &self.token_codes,
            words: &self.words,
            kept: &self.kept,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::Rng as _;

    use super::*;

    /// Draws the tokens of `b` samples, and factors for `units` hidden units.
    pub(crate) fn random_tokens(b: usize, units: usize, seed: u64) -> TokenColumns {
        let mut generator = poolcast_base::seed::generator(seed, "tokens", &[]);
        let mut tokens = vec![0.0; b * TOKENS * TOKEN_FEATURES];
        for token in tokens.chunks_exact_mut(TOKEN_FEATURES) {
            for shared in &mut token[..FIRST_STATE] {
                *shared = f32::from(u8::from(generator.random_bool(0.3)));
            }
            token[FIRST_STATE + generator.random_range(0..TOKEN_STATES)] = 1.0;
            for number in &mut token[FIRST_NUMBER..] {
                *number = generator.random_range(-2.0..3.0);
            }
        }
        let mut draw = |count: usize, range: std::ops::Range<f32>| -> Vec<f32> {
            let drawn = (0..count).map(|_| generator.random_range(range.clone()));
            drawn.collect()
        };
        TokenColumns {
            tokens,
            mask: draw(b * TOKENS, 0.0..2.0)
                .iter()
                .map(|x| x.floor())
                .collect(),
            question: draw(b * QUESTION_FEATURES, -2.0..2.0),
            codes: draw(b, 0.0..32.0).iter().map(|code| *code as u8).collect(),
            words: draw(b * REASON_WORDS, -1.0..0.3)
                .iter()
                .map(|x| x.max(0.0))
                .collect(),
            kept: draw(b * units, 0.0..2.0)
                .iter()
                .map(|x| x.floor() * 1.25)
                .collect(),
            token_codes: draw(b * TOKENS, 0.0..32.0)
                .iter()
                .map(|code| *code as u8)
                .collect(),
        }
    }

    #[test]
    fn wrong_lengths_and_codes_are_rejected() {
        let tokens = random_tokens(3, 2, 1);
        let batch = tokens.batch();
        assert!(batch.check(3).is_ok() && batch.check(2).is_err());
        let codes = TokenBatch {
            codes: &[0, 1, 32],
            ..batch
        };
        assert!(codes.check(3).is_err());
        assert_eq!(batch.slice(1, 3, 3).kept, &batch.kept[2..]);
    }
}
