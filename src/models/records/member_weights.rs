//! The weights of one network, unpacked from the flat vector.

use super::vector_math::{HeadRow, ROW};
use crate::architectures::members::member_name;
use crate::architectures::outcomes::{HEADS, MIN_PRIOR};
use crate::parameter::IndexedParameter;
use crate::token_batch::{TOKEN_FEATURES, TOKEN_STATES};

/// Where the parameters of one network begin in the flat vector.
#[derive(Debug)]
pub(super) struct MemberLayout {
    heads: usize,
    head_biases: usize,
    values: usize,
    prior: usize,
    pub(super) code: Slice,
    pub(super) words: Slice,
    pub(super) hidden: Slice,
    pub(super) hidden_bias: Slice,
    pub(super) output: Slice,
    pub(super) output_bias: usize,
    pub(super) direct: Slice,
}

/// A part of the flat vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Slice {
    #[inline(always)]
    pub(super) fn of(self, flat: &[f32]) -> &[f32] {
        &flat[self.start..self.start + self.len]
    }

    #[inline(always)]
    pub(super) fn of_mut(self, flat: &mut [f32]) -> &mut [f32] {
        &mut flat[self.start..self.start + self.len]
    }
}

/// The weights of the heads, in padded rows.
#[derive(Debug, Clone)]
pub(super) struct HeadWeights {
    /// A row for each number of a token, `[29, h]`.
    pub(super) heads: [HeadRow; TOKEN_FEATURES],
    pub(super) biases: HeadRow,
    /// A row for each state, `[12, h]`. In weights these are the values after `tanh`.
    pub(super) values: [HeadRow; TOKEN_STATES],
    /// In weights: the weight of the value 0.
    pub(super) prior: HeadRow,
}

impl HeadWeights {
    pub(super) const ZEROS: HeadWeights = HeadWeights {
        heads: [[0.0; ROW]; TOKEN_FEATURES],
        biases: [0.0; ROW],
        values: [[0.0; ROW]; TOKEN_STATES],
        prior: [0.0; ROW],
    };
}

impl MemberLayout {
    /// Finds the parameters of network `member` among `parameters`.
    pub(super) fn new(parameters: &[IndexedParameter], member: usize) -> MemberLayout {
        let find = |name: &str| {
            let name = member_name(member, name);
            let known = parameters.iter().find(|known| known.spec.name == name);
            known.map_or(Slice { start: 0, len: 0 }, |known| Slice {
                start: known.start,
                len: known.spec.len(),
            })
        };
        MemberLayout {
            heads: find("heads.weight").start,
            head_biases: find("heads.bias").start,
            values: find("values.weight").start,
            prior: find("prior").start,
            code: find("code.weight"),
            words: find("words.weight"),
            hidden: find("hidden.weight"),
            hidden_bias: find("hidden.bias"),
            output: find("output.weight"),
            output_bias: find("output.bias").start,
            direct: find("direct.weight"),
        }
    }

    /// Unpacks the weights of the heads.
    pub(super) fn head_weights(&self, flat: &[f32]) -> HeadWeights {
        let row = |start: usize, map: fn(f32) -> f32| {
            let mut row = [0.0; ROW];
            for (padded, &weight) in row.iter_mut().zip(&flat[start..start + HEADS]) {
                *padded = map(weight);
            }
            row
        };
        HeadWeights {
            heads: std::array::from_fn(|at| row(self.heads + at * HEADS, |weight| weight)),
            biases: row(self.head_biases, |weight| weight),
            values: std::array::from_fn(|at| row(self.values + at * HEADS, f32::tanh)),
            prior: {
                let mut prior = row(self.prior, |weight| weight.exp().ln_1p() + MIN_PRIOR);
                prior[HEADS..].fill(1.0);
                prior
            },
        }
    }

    /// Adds the gradient of the heads, which is with respect to the unpacked `weights`, to
    /// `gradient`.
    pub(super) fn add_head_gradient(
        &self,
        flat: &[f32],
        weights: &HeadWeights,
        d: &HeadWeights,
        gradient: &mut [f32],
    ) {
        let mut add = |start: usize, row: &HeadRow| {
            let sums = &mut gradient[start..start + HEADS];
            for (sum, d) in sums.iter_mut().zip(row) {
                *sum += d;
            }
        };
        for (at, row) in d.heads.iter().enumerate() {
            add(self.heads + at * HEADS, row);
        }
        add(self.head_biases, &d.biases);
        for (at, (row, values)) in d.values.iter().zip(&weights.values).enumerate() {
            let slope = |head: usize| row[head] * (1.0 - values[head] * values[head]);
            add(self.values + at * HEADS, &std::array::from_fn(slope));
        }
        let prior = &flat[self.prior..self.prior + HEADS];
        let sigmoid = |head: usize| prior.get(head).map_or(0.0, |x| 1.0 / (1.0 + (-x).exp()));
        add(
            self.prior,
            &std::array::from_fn(|head| d.prior[head] * sigmoid(head)),
        );
    }
}
