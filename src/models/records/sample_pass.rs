//! Forward pass of one sample through one network, and the numbers that the backward pass needs.

use super::member_weights::{HeadWeights, MemberLayout};
use super::vector_math::{HeadRow, ROW, add_scaled_slice, dot, exp_row, gelu, sum_of_rows};
use pulp::Simd;

use crate::architectures::outcomes::{EMBEDDED, HEADS, INPUTS, LOG_WEIGHTS};
use crate::simd::is_wide;
use crate::token_batch::{
    FIRST_STATE, QUESTION_FEATURES, REASON_WORDS, TOKEN_FEATURES, TOKEN_STATES, TOKENS, TokenBatch,
};

/// Index of the first input after the inputs of the heads.
pub(super) const FIRST_QUESTION: usize = 2 * HEADS;
/// Index of the first input of the code.
pub(super) const FIRST_CODE: usize = FIRST_QUESTION + QUESTION_FEATURES;
/// Index of the first input of the words.
pub(super) const FIRST_WORD: usize = FIRST_CODE + EMBEDDED;

/// A token as its numbers other than 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct SparseToken {
    indexes: [u8; TOKEN_FEATURES],
    numbers: [f32; TOKEN_FEATURES],
    count: usize,
    pub(super) state: usize,
}

impl SparseToken {
    /// Its numbers other than 0, with their indices.
    #[inline(always)]
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, f32)> {
        let indexes = self.indexes[..self.count].iter();
        let numbers = &self.numbers[..self.count];
        indexes
            .zip(numbers)
            .map(|(&index, &number)| (usize::from(index), number))
    }
}

/// A sample, read once for all networks.
#[derive(Debug)]
pub(super) struct SampleTokens<'a> {
    pub(super) tokens: Vec<SparseToken>,
    pub(super) question: &'a [f32],
    pub(super) code: usize,
    pub(super) words: &'a [f32],
    /// Factors of the hidden units of all networks; empty without dropout.
    pub(super) kept: &'a [f32],
}

impl<'a> SampleTokens<'a> {
    /// Reads sample `row` of `batch`, which has `b` samples. Reuses the memory of `tokens`.
    pub(super) fn read(
        batch: &TokenBatch<'a>,
        b: usize,
        row: usize,
        mut tokens: Vec<SparseToken>,
    ) -> SampleTokens<'a> {
        tokens.clear();
        let mask = &batch.mask[row * TOKENS..][..TOKENS];
        let numbers = &batch.tokens[row * TOKENS * TOKEN_FEATURES..][..TOKENS * TOKEN_FEATURES];
        for (numbers, _) in numbers
            .chunks_exact(TOKEN_FEATURES)
            .zip(mask)
            .filter(|(_, is_token)| **is_token > 0.0)
        {
            tokens.push(sparse_token(numbers));
        }
        let units = batch.kept.len() / b;
        SampleTokens {
            tokens,
            question: &batch.question[row * QUESTION_FEATURES..][..QUESTION_FEATURES],
            code: usize::from(batch.codes[row]),
            words: &batch.words[row * REASON_WORDS..][..REASON_WORDS],
            kept: &batch.kept[row * units..][..units],
        }
    }

    /// The factors of the hidden units of network `member`; empty without dropout.
    #[inline(always)]
    pub(super) fn kept_by(&self, member: usize, width: usize) -> &[f32] {
        if self.kept.is_empty() {
            &[]
        } else {
            &self.kept[member * width..][..width]
        }
    }
}

fn sparse_token(numbers: &[f32]) -> SparseToken {
    let mut token = SparseToken {
        indexes: [0; TOKEN_FEATURES],
        numbers: [0.0; TOKEN_FEATURES],
        count: 0,
        state: 0,
    };
    for (index, &number) in numbers.iter().enumerate() {
        if number != 0.0 {
            token.indexes[token.count] = index as u8;
            token.numbers[token.count] = number;
            token.count += 1;
            if (FIRST_STATE..FIRST_STATE + TOKEN_STATES).contains(&index) {
                token.state = index - FIRST_STATE;
            }
        }
    }
    token
}

/// The numbers of a sample in one network.
#[derive(Debug)]
pub(super) struct SamplePass {
    /// Weight of each token, `[t, h]`.
    pub(super) weights: Vec<HeadRow>,
    /// 1 where a weight is within its range, and 0 where it is at a limit, `[t, h]`.
    pub(super) are_inside: Vec<HeadRow>,
    /// Sum of the weights, `[h]`.
    pub(super) sums: HeadRow,
    /// Weighted mean of the values, `[h]`.
    pub(super) rates: HeadRow,
    /// Inputs of the hidden layer.
    pub(super) inputs: [f32; INPUTS],
    /// Hidden units, with dropout, and the derivatives of both.
    pub(super) hidden: Vec<f32>,
    pub(super) hidden_slopes: Vec<f32>,
    pub(super) logit: f32,
}

impl SamplePass {
    pub(super) fn new(width: usize) -> SamplePass {
        SamplePass {
            weights: Vec::with_capacity(TOKENS),
            are_inside: Vec::with_capacity(TOKENS),
            sums: [0.0; ROW],
            rates: [0.0; ROW],
            inputs: [0.0; INPUTS],
            hidden: vec![0.0; width],
            hidden_slopes: vec![0.0; width],
            logit: 0.0,
        }
    }

    /// Computes the logit of `sample` in a network.
    #[inline(always)]
    pub(super) fn forward<S: Simd>(
        &mut self,
        simd: S,
        layout: &MemberLayout,
        heads: &HeadWeights,
        flat: &[f32],
        sample: &SampleTokens<'_>,
        kept: &[f32],
    ) {
        if is_wide::<S>() {
            self.weigh_tokens::<S, 2>(simd, heads, sample);
        } else {
            self.weigh_tokens::<S, 4>(simd, heads, sample);
        }
        for head in 0..HEADS {
            self.inputs[head] = self.rates[head];
            self.inputs[HEADS + head] = self.sums[head].ln_1p();
        }
        self.inputs[FIRST_QUESTION..FIRST_CODE].copy_from_slice(sample.question);
        let code = &layout.code.of(flat)[sample.code * EMBEDDED..][..EMBEDDED];
        self.inputs[FIRST_CODE..FIRST_WORD].copy_from_slice(code);
        let words = &mut self.inputs[FIRST_WORD..];
        words.fill(0.0);
        for (&count, row) in sample
            .words
            .iter()
            .zip(layout.words.of(flat).chunks_exact(EMBEDDED))
        {
            if count != 0.0 {
                add_scaled_slice(words, count, row);
            }
        }

        let width = self.hidden.len();
        self.hidden.copy_from_slice(layout.hidden_bias.of(flat));
        let rows = layout.hidden.of(flat).chunks_exact(width);
        for (&input, row) in self.inputs.iter().zip(rows) {
            add_scaled_slice(&mut self.hidden, input, row);
        }
        for (unit, slope) in self.hidden.iter_mut().zip(&mut self.hidden_slopes) {
            (*unit, *slope) = gelu(*unit);
        }
        for ((unit, slope), kept) in self
            .hidden
            .iter_mut()
            .zip(&mut self.hidden_slopes)
            .zip(kept)
        {
            *unit *= kept;
            *slope *= kept;
        }
        self.logit = flat[layout.output_bias]
            + dot(&self.hidden, layout.output.of(flat))
            + dot(&self.inputs, layout.direct.of(flat));
    }

    /// Computes the weight of each token and the rate of each head. A row of heads has `V` vectors.
    #[inline(always)]
    fn weigh_tokens<S: Simd, const V: usize>(
        &mut self,
        simd: S,
        heads: &HeadWeights,
        sample: &SampleTokens<'_>,
    ) {
        let [low, high] = LOG_WEIGHTS;
        self.weights.clear();
        self.are_inside.clear();
        let mut sums = [0.0; ROW];
        let mut weighted = [0.0; ROW];
        for token in &sample.tokens {
            let mut logs = sum_of_rows::<S, V>(simd, &heads.biases, token.entries(), &heads.heads);
            let mut are_inside = [0.0; ROW];
            for head in 0..ROW {
                let inside = (logs[head] > low) & (logs[head] < high);
                are_inside[head] = if inside { 1.0 } else { 0.0 };
                logs[head] = logs[head].max(low).min(high);
            }
            let weights = exp_row(&logs);
            let values = &heads.values[token.state];
            for head in 0..ROW {
                sums[head] += weights[head];
                weighted[head] += weights[head] * values[head];
            }
            self.weights.push(weights);
            self.are_inside.push(are_inside);
        }
        for head in 0..ROW {
            self.rates[head] = weighted[head] / (sums[head] + heads.prior[head]);
        }
        self.sums = sums;
    }
}
