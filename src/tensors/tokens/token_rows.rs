//! Tokens as they are stored, and as a model takes them.

use anyhow::{Result, ensure};
use half::f16;
use half::slice::HalfFloatSliceExt as _;

use poolcast_base::shard::{Shard, ShardColumn};
use poolcast_models::{
    QUESTION_FEATURES, REASON_WORDS, TOKEN_CODES, TOKEN_FEATURES, TOKENS, TokenColumns,
};

const TOKENS_COLUMN: &str = "tokens";
const CODE_COLUMN: &str = "token_code";
const REASON_COLUMN: &str = "token_reason";
const MASK_COLUMN: &str = "token_mask";
const QUESTION_COLUMN: &str = "question";
const QUESTION_CODE_COLUMN: &str = "question_code";
const QUESTION_REASON_COLUMN: &str = "question_reason";
const WORDS_COLUMN: &str = "reason_words";

/// Bytes of the tokens of one question.
pub(crate) const QUESTION_BYTES: usize =
    TOKENS * (2 * TOKEN_FEATURES + 1 + 2 + 1) + 4 * QUESTION_FEATURES + 1 + 2;

/// The tokens of `n` questions, padded at the front.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TokenRows {
    /// `[n, 64, 29]`.
    pub(crate) tokens: Vec<f16>,
    /// Hash of code and subcode of each token, `[n, 64]`; 0 for none.
    pub(crate) codes: Vec<u8>,
    /// Row of the reason of each token, `[n, 64]`.
    pub(crate) reasons: Vec<u16>,
    /// 1 for a token and 0 for padding, `[n, 64]`.
    pub(crate) mask: Vec<u8>,
    /// `[n, 7]`.
    pub(crate) question: Vec<f32>,
    /// `[n]`.
    pub(crate) question_code: Vec<u8>,
    /// `[n]`.
    pub(crate) question_reason: Vec<u16>,
    /// Words of the reasons, `[r, 64]`.
    pub(crate) words: Vec<f32>,
}

/// The tokens of one question of [`TokenRows`], to write.
#[derive(Debug)]
pub(crate) struct QuestionRow<'a> {
    pub(crate) tokens: &'a mut [f16],
    pub(crate) codes: &'a mut [u8],
    pub(crate) reasons: &'a mut [u16],
    pub(crate) mask: &'a mut [u8],
    pub(crate) question: &'a mut [f32],
    pub(crate) question_code: &'a mut u8,
    pub(crate) question_reason: &'a mut u16,
}

impl TokenRows {
    /// Makes room for `n` questions without tokens.
    pub(crate) fn resize(&mut self, n: usize) {
        fn refill<T: Copy + Default>(numbers: &mut Vec<T>, len: usize) {
            numbers.clear();
            numbers.resize(len, T::default());
        }
        refill(&mut self.tokens, n * TOKENS * TOKEN_FEATURES);
        refill(&mut self.codes, n * TOKENS);
        refill(&mut self.reasons, n * TOKENS);
        refill(&mut self.mask, n * TOKENS);
        refill(&mut self.question, n * QUESTION_FEATURES);
        refill(&mut self.question_code, n);
        refill(&mut self.question_reason, n);
    }

    /// Iterates over the questions, to write.
    pub(crate) fn questions_mut(&mut self) -> impl Iterator<Item = QuestionRow<'_>> {
        let tokens = self.tokens.chunks_exact_mut(TOKENS * TOKEN_FEATURES);
        let codes = self.codes.chunks_exact_mut(TOKENS);
        let reasons = self.reasons.chunks_exact_mut(TOKENS);
        let mask = self.mask.chunks_exact_mut(TOKENS);
        let question = self.question.chunks_exact_mut(QUESTION_FEATURES);
        let of_questions = self.question_code.iter_mut().zip(&mut self.question_reason);
        let of_tokens = tokens.zip(codes).zip(reasons).zip(mask);
        of_tokens.zip(question).zip(of_questions).map(
            |(((((tokens, codes), reasons), mask), question), (question_code, question_reason))| {
                QuestionRow {
                    tokens,
                    codes,
                    reasons,
                    mask,
                    question,
                    question_code,
                    question_reason,
                }
            },
        )
    }

    /// Returns the tokens of question `index`.
    ///
    /// # Panics
    /// Panics if the question does not exist.
    pub fn question(&self, index: usize) -> StoredTokens<'_> {
        StoredTokens {
            tokens: &self.tokens[index * TOKENS * TOKEN_FEATURES..][..TOKENS * TOKEN_FEATURES],
            codes: &self.codes[index * TOKENS..][..TOKENS],
            mask: &self.mask[index * TOKENS..][..TOKENS],
            question: &self.question[index * QUESTION_FEATURES..][..QUESTION_FEATURES],
            question_code: self.question_code[index],
            words: words_of(&self.words, self.question_reason[index]),
        }
    }

    /// Returns the tokens of all questions as a model takes them.
    pub fn columns(&self) -> TokenColumns {
        let mut columns = TokenColumns::default();
        for index in 0..self.question_code.len() {
            self.question(index).add_to(&mut columns);
        }
        columns
    }

    /// The columns of a shard.
    pub(crate) fn named(&self) -> Vec<(String, ShardColumn<'_>)> {
        let n = self.question_code.len();
        let columns = [
            (
                TOKENS_COLUMN,
                ShardColumn::new(&self.tokens, &[n, TOKENS, TOKEN_FEATURES]),
            ),
            (CODE_COLUMN, ShardColumn::new(&self.codes, &[n, TOKENS])),
            (REASON_COLUMN, ShardColumn::new(&self.reasons, &[n, TOKENS])),
            (MASK_COLUMN, ShardColumn::new(&self.mask, &[n, TOKENS])),
            (
                QUESTION_COLUMN,
                ShardColumn::new(&self.question, &[n, QUESTION_FEATURES]),
            ),
            (
                QUESTION_CODE_COLUMN,
                ShardColumn::vector(&self.question_code),
            ),
            (
                QUESTION_REASON_COLUMN,
                ShardColumn::vector(&self.question_reason),
            ),
            (
                WORDS_COLUMN,
                ShardColumn::new(
                    &self.words,
                    &[self.words.len() / REASON_WORDS, REASON_WORDS],
                ),
            ),
        ];
        columns
            .map(|(name, column)| (name.to_owned(), column))
            .into()
    }
}

/// The words of row `reason` of `table`.
fn words_of(table: &[f32], reason: u16) -> &[f32] {
    &table[usize::from(reason) * REASON_WORDS..][..REASON_WORDS]
}

/// The tokens of one question, to read.
#[derive(Debug, Clone, Copy)]
pub struct StoredTokens<'a> {
    /// `[64, 29]`.
    tokens: &'a [f16],
    /// Hash of code and subcode of each token, `[64]`.
    codes: &'a [u8],
    /// `[64]`.
    mask: &'a [u8],
    /// `[7]`.
    question: &'a [f32],
    question_code: u8,
    /// Words of the reason of the question, `[64]`.
    words: &'a [f32],
}

impl<'a> StoredTokens<'a> {
    /// Returns the tokens of question `index` of a checked shard.
    ///
    /// # Panics
    /// Panics if the question does not exist.
    pub(crate) fn of_sample(shard: &'a Shard, index: usize) -> StoredTokens<'a> {
        const CHECKED: &str = "checked when the shard was opened";
        let tokens: &[f16] = shard.column(TOKENS_COLUMN).expect(CHECKED);
        let mask: &[u8] = shard.column(MASK_COLUMN).expect(CHECKED);
        let question: &[f32] = shard.column(QUESTION_COLUMN).expect(CHECKED);
        let codes: &[u8] = shard.column(CODE_COLUMN).expect(CHECKED);
        let question_codes: &[u8] = shard.column(QUESTION_CODE_COLUMN).expect(CHECKED);
        let reasons: &[u16] = shard.column(QUESTION_REASON_COLUMN).expect(CHECKED);
        let words: &[f32] = shard.column(WORDS_COLUMN).expect(CHECKED);
        StoredTokens {
            tokens: &tokens[index * TOKENS * TOKEN_FEATURES..][..TOKENS * TOKEN_FEATURES],
            codes: &codes[index * TOKENS..][..TOKENS],
            mask: &mask[index * TOKENS..][..TOKENS],
            question: &question[index * QUESTION_FEATURES..][..QUESTION_FEATURES],
            question_code: question_codes[index],
            words: words_of(words, reasons[index]),
        }
    }

    /// Appends these tokens to the `columns` that a model takes.
    pub fn add_to(self, columns: &mut TokenColumns) {
        let begin = columns.tokens.len();
        columns.tokens.resize(begin + self.tokens.len(), 0.0);
        self.tokens
            .convert_to_f32_slice(&mut columns.tokens[begin..]);
        let mask = self.mask.iter().map(|&is_token| f32::from(is_token));
        columns.mask.extend(mask);
        columns.question.extend(self.question);
        columns.codes.push(self.question_code);
        columns.token_codes.extend(self.codes);
        columns.words.extend(self.words);
    }

    /// Checks everything that [`StoredTokens::of_sample`] and models rely on, for a shard of `n`
    /// samples.
    pub(crate) fn check(shard: &Shard, n: usize) -> Result<()> {
        let words = shard.shape(WORDS_COLUMN)?;
        ensure!(
            words.len() == 2 && words[0] > 0 && words[1] == REASON_WORDS,
            "`{WORDS_COLUMN}` has shape {words:?}, expected [r, {REASON_WORDS}]"
        );
        let rows = words[0];
        Self::check_shapes(shard, n)?;
        Self::check_numbers(shard)?;

        let mask: &[u8] = shard.column(MASK_COLUMN)?;
        ensure!(
            mask.iter().all(|&is_token| is_token <= 1),
            "`{MASK_COLUMN}` has a value other than 0 and 1"
        );
        let codes: [&[u8]; 2] = [
            shard.column(CODE_COLUMN)?,
            shard.column(QUESTION_CODE_COLUMN)?,
        ];
        ensure!(
            codes
                .into_iter()
                .flatten()
                .all(|&code| usize::from(code) < TOKEN_CODES),
            "it has a code that is not below {TOKEN_CODES}"
        );
        let reasons: [&[u16]; 2] = [
            shard.column(REASON_COLUMN)?,
            shard.column(QUESTION_REASON_COLUMN)?,
        ];
        ensure!(
            reasons
                .into_iter()
                .flatten()
                .all(|&row| usize::from(row) < rows),
            "it has a reason that is not below {rows}"
        );
        Ok(())
    }

    /// Checks the shapes of all columns but the words, for `n` samples.
    fn check_shapes(shard: &Shard, n: usize) -> Result<()> {
        let shapes: [(&str, &[usize]); 7] = [
            (TOKENS_COLUMN, &[n, TOKENS, TOKEN_FEATURES]),
            (CODE_COLUMN, &[n, TOKENS]),
            (REASON_COLUMN, &[n, TOKENS]),
            (MASK_COLUMN, &[n, TOKENS]),
            (QUESTION_COLUMN, &[n, QUESTION_FEATURES]),
            (QUESTION_CODE_COLUMN, &[n]),
            (QUESTION_REASON_COLUMN, &[n]),
        ];
        for (name, expected) in shapes {
            let shape = shard.shape(name)?;
            ensure!(
                shape == expected,
                "`{name}` has shape {shape:?}, expected {expected:?}"
            );
        }
        Ok(())
    }

    /// Checks that all numbers are finite.
    fn check_numbers(shard: &Shard) -> Result<()> {
        let tokens: &[f16] = shard.column(TOKENS_COLUMN)?;
        let numbers: [&[f32]; 2] = [shard.column(QUESTION_COLUMN)?, shard.column(WORDS_COLUMN)?];
        ensure!(
            tokens.iter().all(|number| number.is_finite())
                && numbers
                    .into_iter()
                    .flatten()
                    .all(|number| number.is_finite()),
            "its tokens have a value that is not a number"
        );
        Ok(())
    }
}
