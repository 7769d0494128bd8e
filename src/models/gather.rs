//! The first layer's inputs: sums of rows of its weights, in place of a product with one-hot vectors, and the way back.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::changes::Changes;
use super::simd::{vectors, vectors_mut};

/// Writes what the codes of some frames add to the gates of a panel, and the bias.
pub(super) struct Gather<'a> {
    pub(super) changes: &'a Changes,
    /// From a frame at which sums begin anew.
    pub(super) frames: Range<usize>,
    /// Samples.
    pub(super) rows: usize,
    /// `[e*j, PANEL]`.
    pub(super) table: &'a [f32],
    /// `[PANEL]`.
    pub(super) bias: &'a [f32],
    /// `[frames, rows, PANEL]`.
    pub(super) gates: &'a mut [f32],
}

impl WithSimd for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let table: &[[S::f32s; 4]] = vectors::<S>(self.table).as_chunks().0;
        let gates: &mut [[S::f32s; 4]] = vectors_mut::<S>(self.gates).as_chunks_mut().0;
        let bias: [S::f32s; 4] = vectors::<S>(self.bias).as_chunks().0[0];
        for sample in 0..self.rows {
            let mut sum = bias;
            for (frame, gates) in self.frames.clone().zip(gates[sample..].iter_mut().step_by(self.rows)) {
                let change = self.changes.get(sample, frame);
                if change.is_fresh {
                    sum = bias;
                }
                for &row in change.added {
                    let row = &table[row as usize];
                    sum = std::array::from_fn(|v| simd.add_f32s(sum[v], row[v]));
                }
                for &row in change.removed {
                    let row = &table[row as usize];
                    sum = std::array::from_fn(|v| simd.sub_f32s(sum[v], row[v]));
                }
                *gates = sum;
            }
        }
    }
}

/// Adds the gradient of the sums of all frames to that of the weights of a panel.
///
/// A row that was added at a frame and taken away at a later one was part of the sums between them. So each change is
/// worth the gradients from its frame up to where the sum begins anew.
pub(super) struct Scatter<'a> {
    pub(super) changes: &'a Changes,
    /// Samples.
    pub(super) rows: usize,
    /// `[frames, rows, PANEL]`.
    pub(super) d_gates: &'a [f32],
    /// `[e*j, PANEL]`.
    pub(super) d_table: &'a mut [f32],
}

impl WithSimd for Scatter<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let d_gates: &[[S::f32s; 4]] = vectors::<S>(self.d_gates).as_chunks().0;
        let d_table: &mut [[S::f32s; 4]] = vectors_mut::<S>(self.d_table).as_chunks_mut().0;
        let frames = d_gates.len() / self.rows;
        let zero = [simd.splat_f32s(0.0); 4];
        for sample in 0..self.rows {
            let mut later = zero;
            for frame in (0..frames).rev() {
                let d = &d_gates[frame * self.rows + sample];
                later = std::array::from_fn(|v| simd.add_f32s(later[v], d[v]));
                let change = self.changes.get(sample, frame);
                for &row in change.added {
                    let row = &mut d_table[row as usize];
                    *row = std::array::from_fn(|v| simd.add_f32s(row[v], later[v]));
                }
                for &row in change.removed {
                    let row = &mut d_table[row as usize];
                    *row = std::array::from_fn(|v| simd.sub_f32s(row[v], later[v]));
                }
                if change.is_fresh {
                    later = zero;
                }
            }
        }
    }
}
