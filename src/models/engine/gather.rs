//! Inputs of the first layer: sums of its weight rows instead of a product with one-hot vectors,
//! and the backward pass.
//!
//! Two panels share one pass through the deltas where possible, because following the deltas costs
//! as much as the sums.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::code_deltas::CodeDeltas;
use crate::simd::{is_wide, multiply_add, vectors, vectors_mut};

/// Maximum number of panels per kernel.
pub(super) const MAX_PANELS: usize = 2;

/// Kernel that writes bias and code inputs of some frames to the gates of one or two panels.
pub(super) struct GatherRows<'a> {
    pub(super) deltas: &'a CodeDeltas,
    /// Frames to compute. Sums must restart at the first of them.
    pub(super) frames: Range<usize>,
    /// Number of samples.
    pub(super) rows: usize,
    /// Weight rows, `[panels][e*j, PANEL]`.
    pub(super) table: &'a [f32],
    /// Biases, `[panels][PANEL]`.
    pub(super) bias: &'a [f32],
    /// Output, `[panels][kept frames, rows, PANEL]`.
    pub(super) gates: &'a mut [f32],
}

impl WithSimd for GatherRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if is_wide::<S>() {
            self.gather::<S, 2>(simd);
        } else {
            self.gather::<S, 4>(simd);
        }
    }
}

impl GatherRows<'_> {
    /// Sums the rows. A row of a panel has `V` vectors.
    #[inline(always)]
    fn gather<S: Simd, const V: usize>(self, simd: S) {
        let bias: &[[S::f32s; V]] = vectors::<S>(self.bias).as_chunks().0;
        match *bias {
            [one, two] => self.sum_panels::<S, V, 2>(simd, [one, two]),
            [one] => self.sum_panels::<S, V, 1>(simd, [one]),
            _ => unreachable!("one or two panels"),
        }
    }

    #[inline(always)]
    fn sum_panels<S: Simd, const V: usize, const P: usize>(self, simd: S, bias: [[S::f32s; V]; P]) {
        let table = split_panels::<S, V, P>(self.table);
        let gates: &mut [[S::f32s; V]] = vectors_mut::<S>(self.gates).as_chunks_mut().0;
        let panel = gates.len() / P;

        for sample in 0..self.rows {
            let mut sums = bias;
            for (slot, frame) in self.frames.clone().enumerate() {
                let delta = self.deltas.get(sample, frame);
                if delta.is_fresh {
                    sums = bias;
                }
                for signed in delta.rows {
                    let sign = simd.splat_f32s(signed.sign);
                    for (sum, table) in sums.iter_mut().zip(table) {
                        let row = &table[signed.row as usize];
                        *sum = std::array::from_fn(|v| multiply_add(simd, sign, row[v], sum[v]));
                    }
                }
                for (p, sum) in sums.iter().enumerate() {
                    gates[p * panel + slot * self.rows + sample] = *sum;
                }
            }
        }
    }
}

/// Kernel that adds the gradient of the sums of all frames to the gradient of the weights of one or
/// two panels.
///
/// A row that is added at one frame and subtracted at a later one is part of the sums in between.
/// The gradient of a row is therefore, for each of its deltas, the sum of the gradients from that
/// frame to the next restart of the sum.
pub(super) struct ScatterRows<'a> {
    pub(super) deltas: &'a CodeDeltas,
    /// Number of samples.
    pub(super) rows: usize,
    /// Gradient of the gate sums, `[panels][frames, rows, PANEL]`.
    pub(super) d_gates: &'a [f32],
    /// Gradient of the weight rows, `[panels][e*j, PANEL]`.
    pub(super) d_table: &'a mut [f32],
    pub(super) panels: usize,
}

impl WithSimd for ScatterRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if is_wide::<S>() {
            self.scatter::<S, 2>(simd);
        } else {
            self.scatter::<S, 4>(simd);
        }
    }
}

impl ScatterRows<'_> {
    /// Adds the gradient. A row of a panel has `V` vectors.
    #[inline(always)]
    fn scatter<S: Simd, const V: usize>(self, simd: S) {
        match self.panels {
            2 => self.add_panels::<S, V, 2>(simd),
            1 => self.add_panels::<S, V, 1>(simd),
            _ => unreachable!("one or two panels"),
        }
    }

    #[inline(always)]
    fn add_panels<S: Simd, const V: usize, const P: usize>(self, simd: S) {
        let d_gates = split_panels::<S, V, P>(self.d_gates);
        let d_table: &mut [[S::f32s; V]] = vectors_mut::<S>(self.d_table).as_chunks_mut().0;
        let panel = d_table.len() / P;
        let frames = d_gates[0].len() / self.rows;
        let zero = [[simd.splat_f32s(0.0); V]; P];

        for sample in 0..self.rows {
            // Sum of the gradients of this frame and later ones, up to the next restart.
            let mut later = zero;
            for frame in (0..frames).rev() {
                for (later, d) in later.iter_mut().zip(d_gates) {
                    let d = &d[frame * self.rows + sample];
                    *later = std::array::from_fn(|v| simd.add_f32s(later[v], d[v]));
                }
                let delta = self.deltas.get(sample, frame);
                for signed in delta.rows {
                    let sign = simd.splat_f32s(signed.sign);
                    for (p, later) in later.iter().enumerate() {
                        let row = &mut d_table[p * panel + signed.row as usize];
                        *row = std::array::from_fn(|v| multiply_add(simd, sign, later[v], row[v]));
                    }
                }
                if delta.is_fresh {
                    later = zero;
                }
            }
        }
    }
}

/// Splits the numbers of `P` panels into rows of `V` vectors.
#[inline(always)]
fn split_panels<S: Simd, const V: usize, const P: usize>(numbers: &[f32]) -> [&[[S::f32s; V]]; P] {
    let rows: &[[S::f32s; V]] = vectors::<S>(numbers).as_chunks().0;
    let panel = rows.len() / P;
    std::array::from_fn(|p| &rows[p * panel..][..panel])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::layout::PANEL;
    use crate::simd::run_at_width;
    use crate::{ModelShape, SampleBatch};

    const SHAPE: ModelShape = ModelShape {
        e: 3,
        m: 40,
        j: 5,
        s: 0,
        shared_bits: 0,
        hidden_size: 16,
        lstm_layers: 1,
    };
    const SAMPLES: usize = 3;

    fn numbers(len: usize) -> Vec<f32> {
        (0..len)
            .map(|at| (at * 7919 % 1000) as f32 / 500.0 - 1.0)
            .collect()
    }

    #[test]
    fn code_sums_and_their_gradient_do_not_depend_on_vector_width() {
        let codes: Vec<u8> = (0..SAMPLES * SHAPE.m * SHAPE.j)
            .map(|at| (at * 2_654_435_761 % 97 % 3) as u8)
            .collect();
        let batch = SampleBatch::new(&SHAPE, &codes, &[]).expect("a batch");
        let mut deltas = CodeDeltas::default();
        deltas.find(&SHAPE, &batch);
        let sums = SAMPLES * SHAPE.m * PANEL;
        let table_len = SHAPE.e * SHAPE.j * PANEL;

        for panels in [1, 2] {
            let table = numbers(panels * table_len);
            let bias = numbers(panels * PANEL);
            let gather = |is_wide| {
                let mut gates = vec![0.0; panels * sums];
                let kernel = GatherRows {
                    deltas: &deltas,
                    frames: 0..SHAPE.m,
                    rows: SAMPLES,
                    table: &table,
                    bias: &bias,
                    gates: &mut gates,
                };
                run_at_width(kernel, is_wide).map(|()| gates)
            };
            assert_eq!(gather(true), gather(false));

            let d_gates = numbers(panels * sums);
            let scatter = |is_wide| {
                let mut d_table = numbers(panels * table_len);
                let kernel = ScatterRows {
                    deltas: &deltas,
                    rows: SAMPLES,
                    d_gates: &d_gates,
                    d_table: &mut d_table,
                    panels,
                };
                run_at_width(kernel, is_wide).map(|()| d_table)
            };
            assert_eq!(scatter(true), scatter(false));
        }
    }
}
