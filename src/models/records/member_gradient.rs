//! Backward pass of one sample through one network.

use super::member_weights::{HeadWeights, MemberLayout};
use super::sample_pass::{FIRST_CODE, FIRST_WORD, SamplePass, SampleTokens};
use super::vector_math::{ROW, add_scaled, add_scaled_slice, dot};
use pulp::Simd;

use crate::architectures::outcomes::{EMBEDDED, HEADS, INPUTS};

/// Adds the gradient of the loss of a sample, whose derivative by the logit is `slope`. That of the
/// heads goes to `d_heads`, and the one of the other parameters to `gradient`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "weights, sample and gradient")]
pub(super) fn backward<S: Simd>(
    simd: S,
    layout: &MemberLayout,
    heads: &HeadWeights,
    flat: &[f32],
    sample: &SampleTokens<'_>,
    pass: &SamplePass,
    slope: f32,
    d_heads: &mut HeadWeights,
    gradient: &mut [f32],
) {
    gradient[layout.output_bias] += slope;
    add_scaled_slice(layout.output.of_mut(gradient), slope, &pass.hidden);
    add_scaled_slice(layout.direct.of_mut(gradient), slope, &pass.inputs);

    let width = pass.hidden.len();
    let output = layout.output.of(flat);
    let d_sums = &mut [0.0; MAX_STACK_WIDTH][..width.min(MAX_STACK_WIDTH)];
    let mut d_sums_heap = Vec::new();
    let d_sums = if width > MAX_STACK_WIDTH {
        d_sums_heap.resize(width, 0.0);
        &mut d_sums_heap[..]
    } else {
        d_sums
    };
    for ((d, weight), unit_slope) in d_sums.iter_mut().zip(output).zip(&pass.hidden_slopes) {
        *d = slope * weight * unit_slope;
    }
    add_scaled_slice(layout.hidden_bias.of_mut(gradient), 1.0, d_sums);

    let mut d_inputs = [0.0; INPUTS];
    let direct = layout.direct.of(flat);
    let rows = layout.hidden.of(flat).chunks_exact(width);
    let d_rows = layout.hidden.of_mut(gradient).chunks_exact_mut(width);
    for (at, (row, d_row)) in rows.zip(d_rows).enumerate() {
        d_inputs[at] = slope * direct[at] + dot(row, d_sums);
        add_scaled_slice(d_row, pass.inputs[at], d_sums);
    }

    let d_code = &mut layout.code.of_mut(gradient)[sample.code * EMBEDDED..][..EMBEDDED];
    add_scaled_slice(d_code, 1.0, &d_inputs[FIRST_CODE..FIRST_WORD]);
    let d_words = layout.words.of_mut(gradient).chunks_exact_mut(EMBEDDED);
    for (&count, d_row) in sample.words.iter().zip(d_words) {
        if count != 0.0 {
            add_scaled_slice(d_row, count, &d_inputs[FIRST_WORD..]);
        }
    }
    add_token_gradient(simd, heads, sample, pass, &d_inputs, d_heads);
}

/// Width up to which the gradient of the hidden units is on the stack.
const MAX_STACK_WIDTH: usize = 64;

/// Adds the gradient of the heads, given the gradient of their rates and sums.
#[inline(always)]
fn add_token_gradient<S: Simd>(
    simd: S,
    heads: &HeadWeights,
    sample: &SampleTokens<'_>,
    pass: &SamplePass,
    d_inputs: &[f32; INPUTS],
    d_heads: &mut HeadWeights,
) {
    let mut d_weighted = [0.0; ROW];
    let mut d_sum = [0.0; ROW];
    for head in 0..HEADS {
        let total = pass.sums[head] + heads.prior[head];
        d_weighted[head] = d_inputs[head] / total;
        let d_total = -d_weighted[head] * pass.rates[head];
        d_heads.prior[head] += d_total;
        d_sum[head] = d_total + d_inputs[HEADS + head] / (1.0 + pass.sums[head]);
    }

    let passed = pass.weights.iter().zip(&pass.are_inside);
    for (token, (weights, are_inside)) in sample.tokens.iter().zip(passed) {
        let values = &heads.values[token.state];
        let d_values = &mut d_heads.values[token.state];
        let mut d_logs = [0.0; ROW];
        for head in 0..ROW {
            let d_weight = d_sum[head] + d_weighted[head] * values[head];
            d_logs[head] = d_weight * weights[head] * are_inside[head];
            d_values[head] += d_weighted[head] * weights[head];
        }
        add_scaled(simd, &mut d_heads.biases, 1.0, &d_logs);
        for (index, number) in token.entries() {
            add_scaled(simd, &mut d_heads.heads[index], number, &d_logs);
        }
    }
}
