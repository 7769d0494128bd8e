//! Forward pass of a chunk of samples through the whole network.
//!
//! Matrices of units are `[rows, width]`, one per frame in sequence. The first of them is the state
//! before frame 0. Gates are `[panels][frames][rows][PANEL]`. The sums of a panel over many frames
//! are contiguous. Everything that does not depend on the previous frame is therefore one product
//! over all of them.

use std::ops::Range;

use super::code_deltas::{CodeDeltas, FRAMES_TO_RESUM};
use super::gates::{ActivateSums, AdvanceCells, OutputStates, SquashCells};
use super::gather::{self, GatherRows, ScatterRows};
use super::layout::{FlatLayout, PANEL};
use super::product::{PanelProduct, ProductStart, StridedRows};
use crate::labelled_chunk::{SCORED_ROWS, TRAINED_ROWS};
use crate::simd::{LANES, run_kernel, run_wide_kernel};
use crate::{AlignedFloats, SampleBatch};

/// Frames whose inputs are multiplied in one pass. They are few enough that their gates are still
/// in a near cache when they are read again.
pub(super) const FRAMES_AHEAD: usize = 8;

/// Gates, cells and states of a layer at each frame.
#[derive(Debug)]
pub(super) struct LayerTrace {
    /// Gates, `[panels][frames][rows][PANEL]`. The backward pass replaces them by the gradient of
    /// their sums.
    pub(super) gates: AlignedFloats,
    /// Cells, `[1 + frames][rows][width]`.
    pub(super) cells: AlignedFloats,
    /// States, `[1 + frames][rows][width]`.
    pub(super) states: AlignedFloats,
}

/// Results of the forward pass for the samples of a chunk.
#[derive(Debug)]
pub(super) struct ChunkActivations {
    pub(super) rows: usize,
    /// Number of frames kept in memory.
    frames: usize,
    deltas: CodeDeltas,
    pub(super) layers: Vec<LayerTrace>,
    /// Logits, `[rows]`.
    pub(super) logits: Vec<f32>,
}

impl ChunkActivations {
    /// Creates a workspace that keeps all frames, for the backward pass.
    pub(super) fn for_training(layout: &FlatLayout) -> ChunkActivations {
        ChunkActivations::with_frames(layout, TRAINED_ROWS, layout.shape.m)
    }

    /// Creates a workspace that keeps only the frames of one pass.
    pub(super) fn for_scoring(layout: &FlatLayout) -> ChunkActivations {
        ChunkActivations::with_frames(layout, SCORED_ROWS, layout.shape.m.min(FRAMES_TO_RESUM))
    }

    fn with_frames(layout: &FlatLayout, rows: usize, frames: usize) -> ChunkActivations {
        let units = rows * layout.width;
        let layers = (0..layout.shape.lstm_layers)
            .map(|_| LayerTrace {
                gates: AlignedFloats::zeros(frames * 4 * units),
                cells: AlignedFloats::zeros((frames + 1) * units),
                states: AlignedFloats::zeros((frames + 1) * units),
            })
            .collect();
        ChunkActivations {
            rows: 0,
            frames,
            deltas: CodeDeltas::default(),
            layers,
            logits: Vec::new(),
        }
    }

    /// Computes the logits of the samples of `batch` with the parameters `flat`. The batch must fit
    /// into the workspace.
    pub(super) fn forward(&mut self, layout: &FlatLayout, flat: &[f32], batch: &SampleBatch<'_>) {
        self.rows = batch.b;
        self.deltas.find(&layout.shape, batch);
        let units = self.rows * layout.width;
        for trace in &mut self.layers {
            trace.cells[..units].fill(0.0);
            trace.states[..units].fill(0.0);
        }

        // All layers process one pass of kept frames before the next pass overwrites them.
        let m = layout.shape.m;
        for start in (0..m).step_by(self.frames) {
            let frames = self.frames.min(m - start);
            for layer in 0..self.layers.len() {
                self.layer_forward(layout, flat, layer, start..start + frames);
            }
            if start + frames < m {
                self.carry_last_frame(frames, units);
            }
        }

        // The last pass may have fewer frames than the others.
        let kept = (m - 1) % self.frames + 1;
        self.compute_logits(layout, flat, batch, kept);
    }

    /// Moves the cells and states after the last of `frames` to the slot before the first frame.
    fn carry_last_frame(&mut self, frames: usize, units: usize) {
        let last = frames * units..(frames + 1) * units;
        for trace in &mut self.layers {
            trace.cells.copy_within(last.clone(), 0);
            trace.states.copy_within(last.clone(), 0);
        }
    }

    /// Computes the states of `layer` at some frames of the samples.
    fn layer_forward(
        &mut self,
        layout: &FlatLayout,
        flat: &[f32],
        layer: usize,
        frames: Range<usize>,
    ) {
        let ranges = &layout.layers[layer];
        let bias_hh = &flat[ranges.bias_hh.clone()];
        let bias_ih = &flat[ranges.bias_ih.clone()];
        let bias: Vec<f32> = bias_hh.iter().zip(bias_ih).map(|(a, b)| a + b).collect();
        let weight_hh = &flat[ranges.weight_hh.clone()];
        let weight_ih = &flat[ranges.weight_ih.clone()];

        if layer == 0 {
            self.gather_inputs(layout, weight_ih, &bias, frames.clone());
        }
        for slot in 0..frames.len() {
            if layer > 0 && slot % FRAMES_AHEAD == 0 {
                let slots = slot..frames.len().min(slot + FRAMES_AHEAD);
                self.multiply_inputs(layout, layer, weight_ih, &bias, slots);
            }
            let is_first = frames.start + slot == 0;
            self.advance_frame(layout, layer, weight_hh, slot, is_first);
        }
    }

    /// Initialises the gates of the first layer at some frames with the bias and the inputs from
    /// the codes.
    fn gather_inputs(
        &mut self,
        layout: &FlatLayout,
        table: &[f32],
        bias: &[f32],
        frames: Range<usize>,
    ) {
        let rows = self.rows;
        let deltas = &self.deltas;
        let gates = &mut self.layers[0].gates[..layout.panels * self.frames * rows * PANEL];
        let gates = gates.chunks_mut(gather::MAX_PANELS * self.frames * rows * PANEL);
        let tables = table.chunks(gather::MAX_PANELS * layout.table_rows() * PANEL);
        let biases = bias.chunks(gather::MAX_PANELS * PANEL);

        for ((gates, table), bias) in gates.zip(tables).zip(biases) {
            run_wide_kernel(GatherRows {
                deltas,
                frames: frames.clone(),
                rows,
                table,
                bias,
                gates,
            });
        }
    }

    /// Initialises the gates of a layer at some frames with the bias and the inputs from the layer
    /// below.
    fn multiply_inputs(
        &mut self,
        layout: &FlatLayout,
        layer: usize,
        weights: &[f32],
        bias: &[f32],
        slots: Range<usize>,
    ) {
        let rows = self.rows;
        let width = layout.width;
        let (below, above) = self.layers.split_at_mut(layer);
        let states = &below[layer - 1].states[(slots.start + 1) * rows * width..];
        let gates = above[0].gates.chunks_exact_mut(self.frames * rows * PANEL);
        let panels = weights
            .chunks_exact(width * PANEL)
            .zip(bias.chunks_exact(PANEL));

        for (gates, (panel, bias)) in gates.zip(panels) {
            PanelProduct {
                out: &mut gates[slots.start * rows * PANEL..],
                out_row: PANEL,
                start: ProductStart::Row(bias),
                rows: slots.len() * rows,
                a: StridedRows::matrix(states, width),
                panel,
                width: PANEL,
            }
            .run();
        }
    }

    /// Computes the states of one frame, whose gates already hold bias and inputs.
    fn advance_frame(
        &mut self,
        layout: &FlatLayout,
        layer: usize,
        weights: &[f32],
        slot: usize,
        is_first: bool,
    ) {
        let rows = self.rows;
        let width = layout.width;
        let LayerTrace {
            gates,
            cells,
            states,
        } = &mut self.layers[layer];
        let (states_before, states) = frame_and_next(states, slot, rows * width);
        let (cells_before, cells) = frame_and_next(cells, slot, rows * width);
        let row = width / LANES;
        let panel_gates = slot * rows * PANEL..(slot + 1) * rows * PANEL;
        let all_gates = gates.chunks_exact_mut(self.frames * rows * PANEL);
        let panels = all_gates.zip(weights.chunks_exact(width * PANEL));

        for (panel, (gates, weights)) in panels.enumerate() {
            let gates = &mut gates[panel_gates.clone()];
            // The state before frame 0 is zero and adds nothing.
            if !is_first {
                add_recurrent_inputs(gates, StridedRows::matrix(states_before, width), weights);
            }
            run_wide_kernel(ActivateSums { gates });
            run_kernel(AdvanceCells {
                gates,
                cells_before,
                cells,
                panel,
                row,
            });
        }

        SquashCells {
            cells,
            squashed: states,
        }
        .run();
        let all_gates = gates.chunks_exact(self.frames * rows * PANEL);
        for (panel, gates) in all_gates.take(layout.panels).enumerate() {
            run_kernel(OutputStates {
                gates: &gates[panel_gates.clone()],
                states,
                panel,
                row,
            });
        }
    }

    /// Computes the logits from the static features and from the last layer's states after `kept`
    /// frames in memory.
    fn compute_logits(
        &mut self,
        layout: &FlatLayout,
        flat: &[f32],
        batch: &SampleBatch<'_>,
        kept: usize,
    ) {
        let s = layout.shape.s;
        let last = last_states(&self.layers, kept, self.rows, layout.width);
        let state_weights = &flat[layout.linear_state.clone()];
        let static_weights = &flat[layout.linear_statics.clone()];
        let bias = flat[layout.linear_bias];

        self.logits.clear();
        for (row, state) in last.chunks_exact(layout.width).enumerate() {
            let statics = &batch.statics[row * s..][..s];
            let logit =
                dot_product(state, state_weights) + dot_product(statics, static_weights) + bias;
            self.logits.push(logit);
        }
    }

    /// Adds this chunk's gradient of the first layer's weights, for `panels` panels from
    /// `first_panel` on, to `d_table` `[panels][e*j, PANEL]`.
    pub(super) fn scatter_gradient(&self, first_panel: usize, panels: usize, d_table: &mut [f32]) {
        let len = self.frames * self.rows * PANEL;
        let d_gates = &self.layers[0].gates[first_panel * len..][..panels * len];
        run_wide_kernel(ScatterRows {
            deltas: &self.deltas,
            rows: self.rows,
            d_gates,
            d_table,
            panels,
        });
    }
}

/// The states of the last layer after `kept` frames, `[rows, width]`.
pub(super) fn last_states(layers: &[LayerTrace], kept: usize, rows: usize, width: usize) -> &[f32] {
    &layers[layers.len() - 1].states[kept * rows * width..][..rows * width]
}

/// Adds to the `gates` of one panel, `[rows, PANEL]`, the products of the `states` before and its
/// recurrent `weights`.
fn add_recurrent_inputs(gates: &mut [f32], states: StridedRows<'_>, weights: &[f32]) {
    PanelProduct {
        rows: gates.len() / PANEL,
        out: gates,
        out_row: PANEL,
        start: ProductStart::Existing,
        a: states,
        panel: weights,
        width: PANEL,
    }
    .run();
}

/// Returns the matrices `slot` and `slot + 1` of `all`, each of `len` numbers.
fn frame_and_next(all: &mut [f32], slot: usize, len: usize) -> (&[f32], &mut [f32]) {
    let (before, next) = all[slot * len..][..2 * len].split_at_mut(len);
    (before, next)
}

fn dot_product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
