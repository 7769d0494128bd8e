//! Backward pass of a chunk of samples through the network: its loss, and its part of the gradient.

use std::ops::Range;

use super::chunk::{ChunkActivations, FRAMES_AHEAD, LayerTrace, last_states};
use super::gates::{GateGradients, SquashCells};
use super::layout::{FlatLayout, PANEL};
use super::product::{OuterProduct, PanelProduct, ProductStart, StridedRows};
use super::transposed_weights::TransposedWeights;
use crate::AlignedFloats;
use crate::cross_entropy::cross_entropy;
use crate::labelled_chunk::{LabelledChunk, TRAINED_ROWS};
use crate::simd::{LANES, run_kernel, run_wide_kernel};

/// The loss of one chunk, and its part of the gradient.
#[derive(Debug)]
pub(super) struct ChunkGradient {
    /// Sum of the cross-entropies of the samples.
    pub(super) loss: f64,
    /// Gradient of all parameters except the first layer's `weight_ih`. For that, see
    /// [`ChunkActivations::scatter_gradient`].
    pub(super) dense: AlignedFloats,
    /// Gradient of the states of the current layer, `[frames][rows][width]`.
    d_states: AlignedFloats,
    /// Gradient of the states of the layer below, `[frames][rows][width]`.
    d_below: AlignedFloats,
    /// Gradient of the cells, `[rows][width]`.
    d_cells: AlignedFloats,
    /// `tanh` of the cells of the current frame, `[rows][width]`.
    squashed: AlignedFloats,
}

impl ChunkGradient {
    pub(super) fn new(layout: &FlatLayout) -> ChunkGradient {
        let units = TRAINED_ROWS * layout.width;
        ChunkGradient {
            loss: 0.0,
            dense: AlignedFloats::zeros(layout.table_start),
            d_states: AlignedFloats::zeros(layout.shape.m * units),
            d_below: AlignedFloats::zeros(layout.shape.m * units),
            d_cells: AlignedFloats::zeros(units),
            squashed: AlignedFloats::zeros(units),
        }
    }

    /// Computes the loss and the gradient of `chunk`. `activations` holds its forward pass.
    pub(super) fn backward(
        &mut self,
        layout: &FlatLayout,
        flat: &[f32],
        transposed: &TransposedWeights,
        activations: &mut ChunkActivations,
        chunk: &LabelledChunk<'_>,
    ) {
        self.dense.fill(0.0);
        self.head_backward(layout, flat, activations, chunk);
        for layer in (0..layout.layers.len()).rev() {
            self.layer_backward(layout, transposed, activations, layer);
            std::mem::swap(&mut self.d_states, &mut self.d_below);
        }
    }

    /// Computes the loss, and the gradient of the last linear layer and of its input states.
    fn head_backward(
        &mut self,
        layout: &FlatLayout,
        flat: &[f32],
        activations: &ChunkActivations,
        chunk: &LabelledChunk<'_>,
    ) {
        let m = layout.shape.m;
        let s = layout.shape.s;
        let rows = activations.rows;
        let width = layout.width;
        let last = last_states(&activations.layers, m, rows, width);
        let weights = &flat[layout.linear_state.clone()];

        self.loss = 0.0;
        self.d_states[..m * rows * width].fill(0.0);
        let d_last = self.d_states[(m - 1) * rows * width..].chunks_exact_mut(width);
        for (row, (state, d_state)) in last.chunks_exact(width).zip(d_last).enumerate() {
            let logit = activations.logits[row];
            let sample = cross_entropy(logit, chunk.labels[row], chunk.weights[row]);
            self.loss += sample.loss;

            let d = sample.slope * chunk.scale;
            for (out, weight) in d_state.iter_mut().zip(weights) {
                *out = d * weight;
            }
            let statics = &chunk.batch.statics[row * s..][..s];
            add_scaled(&mut self.dense[layout.linear_state.clone()], d, state);
            add_scaled(&mut self.dense[layout.linear_statics.clone()], d, statics);
            self.dense[layout.linear_bias] += d;
        }
    }

    /// Computes the gradient of the parameters of `layer`, and of the states of the layer below.
    fn layer_backward(
        &mut self,
        layout: &FlatLayout,
        transposed: &TransposedWeights,
        activations: &mut ChunkActivations,
        layer: usize,
    ) {
        self.d_cells.fill(0.0);

        // Process a few frames at a time, as in the forward pass. Their gates are then still in a
        // near cache when the products over all of them read the gates again.
        let mut end = layout.shape.m;
        while end > 0 {
            let frames = (end - 1) / FRAMES_AHEAD * FRAMES_AHEAD..end;
            for frame in frames.clone().rev() {
                self.frame_backward(layout, &transposed.hh[layer], activations, layer, frame);
            }
            if layer > 0 {
                let weights = &transposed.ih[layer];
                self.inputs_backward(layout, weights, activations, layer, frames.clone());
            }
            self.add_weight_gradient(layout, activations, layer, frames.clone());
            end = frames.start;
        }

        // Both biases are added to the same sums, so their gradients are equal.
        let ranges = &layout.layers[layer];
        self.dense
            .copy_within(ranges.bias_hh.clone(), ranges.bias_ih.start);
    }

    /// Processes one frame backward: replaces its gates by the gradient of their sums, and adds to
    /// the gradient of the states before it.
    fn frame_backward(
        &mut self,
        layout: &FlatLayout,
        transposed: &[f32],
        activations: &mut ChunkActivations,
        layer: usize,
        frame: usize,
    ) {
        let m = layout.shape.m;
        let rows = activations.rows;
        let width = layout.width;
        let units = rows * width;
        let LayerTrace { gates, cells, .. } = &mut activations.layers[layer];
        let (cells_before, cells) = cells[frame * units..][..2 * units].split_at(units);
        let squashed = &mut self.squashed[..units];
        SquashCells { cells, squashed }.run();
        let d_bias = &mut self.dense[layout.layers[layer].bias_hh.clone()];
        let panels = gates
            .chunks_exact_mut(m * rows * PANEL)
            .zip(d_bias.chunks_exact_mut(PANEL));

        for (panel, (gates, d_bias)) in panels.enumerate() {
            run_kernel(GateGradients {
                gates: &mut gates[frame * rows * PANEL..][..rows * PANEL],
                cells_before,
                squashed,
                d_states: &self.d_states[frame * units..][..units],
                d_cells: &mut self.d_cells[..units],
                d_bias,
                panel,
                row: width / LANES,
            });
        }

        if frame > 0 {
            let a = StridedRows::panels(&gates[frame * rows * PANEL..], m * rows * PANEL);
            let out = &mut self.d_states[(frame - 1) * units..][..units];
            multiply_transposed(out, ProductStart::Existing, rows, width, a, transposed);
        }
    }

    /// Computes the gradient of the states of the layer below at some frames.
    fn inputs_backward(
        &mut self,
        layout: &FlatLayout,
        transposed: &[f32],
        activations: &ChunkActivations,
        layer: usize,
        frames: Range<usize>,
    ) {
        let m = layout.shape.m;
        let rows = activations.rows;
        let width = layout.width;
        let d_gates = &activations.layers[layer].gates[frames.start * rows * PANEL..];
        let a = StridedRows::panels(d_gates, m * rows * PANEL);
        let out = &mut self.d_below[frames.start * rows * width..frames.end * rows * width];
        let start = ProductStart::Row(&[0.0; PANEL]);
        multiply_transposed(out, start, frames.len() * rows, width, a, transposed);
    }

    /// Adds the contribution of some frames to the gradient of the weights of `layer`.
    fn add_weight_gradient(
        &mut self,
        layout: &FlatLayout,
        activations: &ChunkActivations,
        layer: usize,
        frames: Range<usize>,
    ) {
        let m = layout.shape.m;
        let rows = activations.rows;
        let width = layout.width;
        let units = rows * width;
        let own = &activations.layers[layer];
        let ranges = &layout.layers[layer];
        let states_before = &own.states[frames.start * units..frames.end * units];

        for panel in 0..layout.panels {
            let d = &own.gates[(panel * m + frames.start) * rows * PANEL..]
                [..frames.len() * rows * PANEL];
            let panel_offset = panel * width * PANEL;
            run_wide_kernel(OuterProduct {
                out: &mut self.dense[ranges.weight_hh.start + panel_offset..][..width * PANEL],
                x: states_before,
                width,
                d,
            });

            // `ScatterRows` computes the gradient of the first layer's input weights instead.
            if layer > 0 {
                let inputs = &activations.layers[layer - 1].states
                    [(frames.start + 1) * units..(frames.end + 1) * units];
                run_wide_kernel(OuterProduct {
                    out: &mut self.dense[ranges.weight_ih.start + panel_offset..][..width * PANEL],
                    x: inputs,
                    width,
                    d,
                });
            }
        }
    }
}

/// Computes `out[rows, width] = start + a[rows, 4*width] · transposed weights`.
fn multiply_transposed(
    out: &mut [f32],
    start: ProductStart<'_>,
    rows: usize,
    width: usize,
    a: StridedRows<'_>,
    transposed: &[f32],
) {
    for (index, panel) in transposed.chunks(4 * width * PANEL).enumerate() {
        let columns = panel.len() / (4 * width);
        let start = match start {
            ProductStart::Row(row) => ProductStart::Row(&row[..columns]),
            ProductStart::Existing => ProductStart::Existing,
        };
        PanelProduct {
            out: &mut out[index * PANEL..],
            out_row: width,
            start,
            rows,
            a,
            panel,
            width: columns,
        }
        .run();
    }
}

fn add_scaled(out: &mut [f32], factor: f32, numbers: &[f32]) {
    for (out, number) in out.iter_mut().zip(numbers) {
        *out += factor * number;
    }
}
