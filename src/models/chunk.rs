//! A few samples through the whole network, and back.
//!
//! Matrices of units are `[rows, width]`, one for each frame after another, the first of them being the state before
//! frame 0. Gates are `[panels][frames][rows][PANEL]`: a panel's sums over many frames stand together, so that what does
//! not wait for the frame before is one product over all of them.

use std::ops::Range;

use super::Batch;
use super::changes::{Changes, RESUMMED};
use super::floats::Floats;
use super::gates::{Activate, Deactivate};
use super::gather::{self, Gather, Scatter};
use super::layout::{Layout, PANEL};
use super::product::{Outer, Product, Rows, Start};
use super::simd::{LANES, run};

/// Samples of a chunk on the way there and back. More use each load of a weight more often; fewer leave more chunks to work
/// on in parallel. Part of the result, as sums are taken chunk by chunk.
pub(super) const TRAINED_ROWS: usize = 16;

/// Samples of a chunk that only goes forward, of which there are many anyway.
pub(super) const SCORED_ROWS: usize = 32;

/// Frames whose inputs are multiplied in one go: few enough that their gates are still in a near cache when they are
/// read again.
const AHEAD: usize = 8;

/// What a layer computed at each frame.
#[derive(Debug)]
struct Trace {
    /// `[panels][frames][rows][PANEL]`; on the way back the gradient of their sums takes their place.
    gates: Floats,
    /// `[1 + frames][rows][width]`.
    cells: Floats,
    /// `[1 + frames][rows][width]`.
    states: Floats,
}

/// The samples of a chunk and what the network made of them.
#[derive(Debug)]
pub(super) struct Chunk {
    rows: usize,
    /// Frames that are kept.
    frames: usize,
    changes: Changes,
    layers: Vec<Trace>,
    /// `[rows]`.
    pub(super) logits: Vec<f32>,
}

impl Chunk {
    /// A chunk that keeps all frames, for the way back.
    pub(super) fn for_training(layout: &Layout) -> Chunk {
        Chunk::keeping(layout, TRAINED_ROWS, layout.shape.m)
    }

    /// A chunk that keeps only as many frames as it works on.
    pub(super) fn for_scoring(layout: &Layout) -> Chunk {
        Chunk::keeping(layout, SCORED_ROWS, layout.shape.m.min(RESUMMED))
    }

    fn keeping(layout: &Layout, rows: usize, frames: usize) -> Chunk {
        let units = rows * layout.width;
        let trace = || Trace {
            gates: Floats::zeros(frames * 4 * units),
            cells: Floats::zeros((frames + 1) * units),
            states: Floats::zeros((frames + 1) * units),
        };
        let layers = (0..layout.shape.lstm_layers).map(|_| trace()).collect();
        Chunk {
            rows: 0,
            frames,
            changes: Changes::default(),
            layers,
            logits: Vec::new(),
        }
    }

    /// Leaves the logits of the samples of `batch`, no more than the chunk was made for, by the parameters `flat`.
    pub(super) fn forward(&mut self, layout: &Layout, flat: &[f32], batch: &Batch<'_>) {
        self.rows = batch.b;
        self.changes.find(&layout.shape, batch);
        let units = self.rows * layout.width;
        for trace in &mut self.layers {
            trace.cells[..units].fill(0.0);
            trace.states[..units].fill(0.0);
        }
        let m = layout.shape.m;
        for start in (0..m).step_by(self.frames) {
            let frames = self.frames.min(m - start);
            for layer in 0..self.layers.len() {
                self.layer_forward(layout, flat, layer, start..start + frames);
            }
            if start + frames < m {
                for trace in &mut self.layers {
                    trace
                        .cells
                        .copy_within(frames * units..(frames + 1) * units, 0);
                    trace
                        .states
                        .copy_within(frames * units..(frames + 1) * units, 0);
                }
            }
        }
        let kept = (m - 1) % self.frames + 1;
        self.head(layout, flat, batch, kept);
    }

    /// The states of `layer` at some frames of the samples.
    fn layer_forward(&mut self, layout: &Layout, flat: &[f32], layer: usize, frames: Range<usize>) {
        let place = &layout.layers[layer];
        let (bias_hh, bias_ih) = (&flat[place.bias_hh.clone()], &flat[place.bias_ih.clone()]);
        let bias: Vec<f32> = bias_hh.iter().zip(bias_ih).map(|(a, b)| a + b).collect();
        let weight_ih = &flat[place.weight_ih.clone()];
        if layer == 0 {
            self.gather(layout, weight_ih, &bias, frames.clone());
        }
        for slot in 0..frames.len() {
            if layer > 0 && slot % AHEAD == 0 {
                let slots = slot..frames.len().min(slot + AHEAD);
                self.inputs(layout, layer, weight_ih, &bias, slots);
            }
            let is_first = frames.start + slot == 0;
            self.step(
                layout,
                layer,
                &flat[place.weight_hh.clone()],
                slot,
                is_first,
            );
        }
    }

    fn gather(&mut self, layout: &Layout, table: &[f32], bias: &[f32], frames: Range<usize>) {
        let (rows, changes) = (self.rows, &self.changes);
        let gates = &mut self.layers[0].gates[..layout.panels * self.frames * rows * PANEL];
        let gates = gates.chunks_mut(gather::PANELS * self.frames * rows * PANEL);
        let tables = table.chunks(gather::PANELS * layout.inputs() * PANEL);
        for ((gates, table), bias) in gates.zip(tables).zip(bias.chunks(gather::PANELS * PANEL)) {
            run(Gather {
                changes,
                frames: frames.clone(),
                rows,
                table,
                bias,
                gates,
            });
        }
    }

    /// What the states of the layer below add to the gates of some frames, and the bias.
    fn inputs(
        &mut self,
        layout: &Layout,
        layer: usize,
        weights: &[f32],
        bias: &[f32],
        slots: Range<usize>,
    ) {
        let (rows, width) = (self.rows, layout.width);
        let (below, above) = self.layers.split_at_mut(layer);
        let states = &below[layer - 1].states[(slots.start + 1) * rows * width..];
        let gates = above[0].gates.chunks_exact_mut(self.frames * rows * PANEL);
        let panels = weights
            .chunks_exact(width * PANEL)
            .zip(bias.chunks_exact(PANEL));
        for (gates, (panel, bias)) in gates.zip(panels) {
            run(Product {
                out: &mut gates[slots.start * rows * PANEL..],
                out_row: PANEL,
                start: Start::Row(bias),
                rows: slots.len() * rows,
                a: Rows::matrix(states, width),
                panel,
                width: PANEL,
            });
        }
    }

    /// The states of one frame, whose gates hold what the inputs add to them.
    fn step(
        &mut self,
        layout: &Layout,
        layer: usize,
        weights: &[f32],
        slot: usize,
        is_first: bool,
    ) {
        let (rows, width) = (self.rows, layout.width);
        let Trace {
            gates,
            cells,
            states,
        } = &mut self.layers[layer];
        let (states_before, states) = frame_and_next(states, slot, rows * width);
        let (cells_before, cells) = frame_and_next(cells, slot, rows * width);
        let gates = gates.chunks_exact_mut(self.frames * rows * PANEL);
        for (panel, (gates, weights)) in gates.zip(weights.chunks_exact(width * PANEL)).enumerate()
        {
            let gates = &mut gates[slot * rows * PANEL..][..rows * PANEL];
            // The state before frame 0 is zero.
            if !is_first {
                run(Product {
                    out: gates,
                    out_row: PANEL,
                    start: Start::There,
                    rows,
                    a: Rows::matrix(states_before, width),
                    panel: weights,
                    width: PANEL,
                });
            }
            run(Activate {
                gates,
                cells_before,
                cells,
                states,
                panel,
                row: width / LANES,
            });
        }
    }

    /// The logits by the states of the last layer after `kept` of the kept frames, and the static features.
    fn head(&mut self, layout: &Layout, flat: &[f32], batch: &Batch<'_>, kept: usize) {
        let s = layout.shape.s;
        let last = last_states(&self.layers, kept, self.rows, layout.width);
        let (weights, bias) = (&flat[layout.linear_state.clone()], flat[layout.linear_bias]);
        let of_statics = &flat[layout.linear_statics.clone()];
        let logits = last
            .chunks_exact(layout.width)
            .enumerate()
            .map(|(row, state)| {
                let statics = &batch.statics[row * s..][..s];
                dot(state, weights) + dot(statics, of_statics) + bias
            });
        self.logits.clear();
        self.logits.extend(logits);
    }

    /// Adds this chunk's part of the gradient of one or two panels of the first layer's weights from `first` on,
    /// `[panels][e*j, PANEL]`.
    pub(super) fn scatter(&self, first: usize, panels: usize, d_table: &mut [f32]) {
        let len = self.frames * self.rows * PANEL;
        let d_gates = &self.layers[0].gates[first * len..][..panels * len];
        run(Scatter {
            changes: &self.changes,
            rows: self.rows,
            d_gates,
            d_table,
            panels,
        });
    }
}

/// The states of the last layer after `kept` frames, `[rows, width]`.
fn last_states(layers: &[Trace], kept: usize, rows: usize, width: usize) -> &[f32] {
    &layers[layers.len() - 1].states[kept * rows * width..][..rows * width]
}

/// The matrices `slot` and `slot + 1` of those in `all`, each of `len` numbers.
fn frame_and_next(all: &mut [f32], slot: usize, len: usize) -> (&[f32], &mut [f32]) {
    let (before, next) = all[slot * len..][..2 * len].split_at_mut(len);
    (before, next)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The recurrent and input weights of each layer, turned for the way back: `[pieces][4*width][at most PANEL]`, a piece
/// for each [`PANEL`] inputs.
#[derive(Debug, Default)]
pub(super) struct Turned {
    hh: Vec<Floats>,
    ih: Vec<Floats>,
}

impl Turned {
    /// Turns the weights in `flat`, in place of those turned before. The first layer's inputs need no way back.
    pub(super) fn turn(&mut self, layout: &Layout, flat: &[f32]) {
        let count = layout.layers.len();
        let size = 4 * layout.width * layout.width;
        self.hh.resize_with(count, || Floats::zeros(size));
        self.ih.resize_with(count, || Floats::zeros(size));
        for (layer, place) in layout.layers.iter().enumerate() {
            turn(
                &flat[place.weight_hh.clone()],
                layout.width,
                &mut self.hh[layer],
            );
            if layer > 0 {
                turn(
                    &flat[place.weight_ih.clone()],
                    layout.width,
                    &mut self.ih[layer],
                );
            }
        }
    }
}

/// `[panels][width][PANEL]` → `[pieces][4*width][at most PANEL]`.
fn turn(weights: &[f32], width: usize, turned: &mut [f32]) {
    for (index, piece) in turned.chunks_mut(4 * width * PANEL).enumerate() {
        let columns = piece.len() / (4 * width);
        for (gate, row) in piece.chunks_exact_mut(columns).enumerate() {
            let panel = &weights[gate / PANEL * width * PANEL..];
            let of_gate = panel[index * PANEL * PANEL + gate % PANEL..]
                .iter()
                .step_by(PANEL);
            row.iter_mut()
                .zip(of_gate)
                .for_each(|(out, weight)| *out = *weight);
        }
    }
}

/// Samples to learn from.
#[derive(Debug)]
pub(super) struct Lesson<'a> {
    pub(super) batch: Batch<'a>,
    /// `[rows]`, each 0 or 1.
    pub(super) targets: &'a [f32],
    /// What one sample counts in the gradient.
    pub(super) scale: f32,
    /// What one with the target 1 counts more than one with the target 0.
    pub(super) pos_weight: f32,
}

/// The way back of one chunk: its loss and its part of the gradient.
#[derive(Debug)]
pub(super) struct Backward {
    /// Sum of the cross-entropy of the samples.
    pub(super) loss: f64,
    /// The gradient of all parameters but the first layer's `weight_ih`, for which see [`Chunk::scatter`].
    pub(super) gradient: Floats,
    /// `[frames][rows][width]`: the gradient of the states of the layer at work.
    d_states: Floats,
    /// The same of the layer below.
    d_below: Floats,
    /// `[rows][width]`.
    d_cells: Floats,
}

impl Backward {
    pub(super) fn new(layout: &Layout) -> Backward {
        let units = TRAINED_ROWS * layout.width;
        let states = || Floats::zeros(layout.shape.m * units);
        Backward {
            loss: 0.0,
            gradient: Floats::zeros(layout.dense),
            d_states: states(),
            d_below: states(),
            d_cells: Floats::zeros(units),
        }
    }

    /// Leaves the loss and the gradient of what `chunk` made of the lesson on its way forward.
    pub(super) fn backward(
        &mut self,
        layout: &Layout,
        flat: &[f32],
        turned: &Turned,
        chunk: &mut Chunk,
        lesson: &Lesson<'_>,
    ) {
        self.gradient.fill(0.0);
        self.head(layout, flat, chunk, lesson);
        for layer in (0..layout.layers.len()).rev() {
            self.layer(layout, turned, chunk, layer);
            std::mem::swap(&mut self.d_states, &mut self.d_below);
        }
    }

    fn head(&mut self, layout: &Layout, flat: &[f32], chunk: &Chunk, lesson: &Lesson<'_>) {
        let (m, s, rows, width) = (layout.shape.m, layout.shape.s, chunk.rows, layout.width);
        let last = last_states(&chunk.layers, m, rows, width);
        self.loss = 0.0;
        self.d_states[..m * rows * width].fill(0.0);
        let d_last = self.d_states[(m - 1) * rows * width..].chunks_exact_mut(width);
        let weights = &flat[layout.linear_state.clone()];
        for (row, (state, d_state)) in last.chunks_exact(width).zip(d_last).enumerate() {
            let (loss, slope) =
                cross_entropy(chunk.logits[row], lesson.targets[row], lesson.pos_weight);
            self.loss += loss;
            let d = slope * lesson.scale;
            d_state
                .iter_mut()
                .zip(weights)
                .for_each(|(out, weight)| *out = d * weight);
            add_scaled(&mut self.gradient[layout.linear_state.clone()], d, state);
            add_scaled(
                &mut self.gradient[layout.linear_statics.clone()],
                d,
                &lesson.batch.statics[row * s..][..s],
            );
            self.gradient[layout.linear_bias] += d;
        }
    }

    /// The gradient of the parameters of `layer`, and of the states of the layer below.
    fn layer(&mut self, layout: &Layout, turned: &Turned, chunk: &mut Chunk, layer: usize) {
        let m = layout.shape.m;
        self.d_cells.fill(0.0);
        let mut end = m;
        while end > 0 {
            let frames = (end - 1) / AHEAD * AHEAD..end;
            for frame in frames.clone().rev() {
                self.step(layout, &turned.hh[layer], chunk, layer, frame);
            }
            if layer > 0 {
                self.inputs(layout, &turned.ih[layer], chunk, layer, frames.clone());
            }
            self.weights(layout, chunk, layer, frames.clone());
            end = frames.start;
        }
        let place = &layout.layers[layer];
        self.gradient
            .copy_within(place.bias_hh.clone(), place.bias_ih.start);
    }

    /// One frame back: its gates become the gradient of their sums, and the states before it get theirs.
    fn step(
        &mut self,
        layout: &Layout,
        turned: &[f32],
        chunk: &mut Chunk,
        layer: usize,
        frame: usize,
    ) {
        let (rows, width, m) = (chunk.rows, layout.width, layout.shape.m);
        let units = rows * width;
        let Trace { gates, cells, .. } = &mut chunk.layers[layer];
        let (cells_before, cells) = cells[frame * units..][..2 * units].split_at(units);
        let d_bias = &mut self.gradient[layout.layers[layer].bias_hh.clone()];
        let panels = gates
            .chunks_exact_mut(m * rows * PANEL)
            .zip(d_bias.chunks_exact_mut(PANEL));
        for (panel, (gates, d_bias)) in panels.enumerate() {
            run(Deactivate {
                gates: &mut gates[frame * rows * PANEL..][..rows * PANEL],
                cells_before,
                cells,
                d_states: &self.d_states[frame * units..][..units],
                d_cells: &mut self.d_cells[..units],
                d_bias,
                panel,
                row: width / LANES,
            });
        }
        if frame > 0 {
            let a = Rows::panels(&gates[frame * rows * PANEL..], m * rows * PANEL);
            let out = &mut self.d_states[(frame - 1) * units..][..units];
            through_weights(out, Start::There, rows, width, a, turned);
        }
    }

    /// The gradient of the states of the layer below at some frames.
    fn inputs(
        &mut self,
        layout: &Layout,
        turned: &[f32],
        chunk: &Chunk,
        layer: usize,
        frames: Range<usize>,
    ) {
        let (rows, width, m) = (chunk.rows, layout.width, layout.shape.m);
        let a = Rows::panels(
            &chunk.layers[layer].gates[frames.start * rows * PANEL..],
            m * rows * PANEL,
        );
        let out = &mut self.d_below[frames.start * rows * width..frames.end * rows * width];
        through_weights(
            out,
            Start::Row(&[0.0; PANEL]),
            frames.len() * rows,
            width,
            a,
            turned,
        );
    }

    /// What some frames add to the gradient of the weights of `layer`.
    fn weights(&mut self, layout: &Layout, chunk: &Chunk, layer: usize, frames: Range<usize>) {
        let (rows, width, m) = (chunk.rows, layout.width, layout.shape.m);
        let units = rows * width;
        let own = &chunk.layers[layer];
        let place = &layout.layers[layer];
        let before = &own.states[frames.start * units..frames.end * units];
        for panel in 0..layout.panels {
            let d = &own.gates[(panel * m + frames.start) * rows * PANEL..]
                [..frames.len() * rows * PANEL];
            let place_of = |range: &Range<usize>| range.start + panel * width * PANEL..;
            let out = &mut self.gradient[place_of(&place.weight_hh)][..width * PANEL];
            run(Outer {
                out,
                x: before,
                width,
                d,
            });
            if layer > 0 {
                let inputs = &chunk.layers[layer - 1].states
                    [(frames.start + 1) * units..(frames.end + 1) * units];
                let out = &mut self.gradient[place_of(&place.weight_ih)][..width * PANEL];
                run(Outer {
                    out,
                    x: inputs,
                    width,
                    d,
                });
            }
        }
    }
}

/// `out[rows, width] = start + a[rows, 4*width] · turned weights`.
fn through_weights(
    out: &mut [f32],
    start: Start<'_>,
    rows: usize,
    width: usize,
    a: Rows<'_>,
    turned: &[f32],
) {
    for (index, panel) in turned.chunks(4 * width * PANEL).enumerate() {
        let columns = panel.len() / (4 * width);
        let start = match start {
            Start::Row(row) => Start::Row(&row[..columns]),
            Start::There => Start::There,
        };
        let out = &mut out[index * PANEL..];
        run(Product {
            out,
            out_row: width,
            start,
            rows,
            a,
            panel,
            width: columns,
        });
    }
}

/// `max(x, 0) - x*y + ln(1 + exp(-|x|))` and its derivative by `x`, for the logit `x` and the target `y`; `pos_weight` times
/// both for the target 1.
pub(super) fn cross_entropy(logit: f32, target: f32, pos_weight: f32) -> (f64, f32) {
    let (x, y) = (f64::from(logit), f64::from(target));
    let weight = 1.0 + (f64::from(pos_weight) - 1.0) * y;
    let loss = x.max(0.0) - x * y + (-x.abs()).exp().ln_1p();
    (
        weight * loss,
        (weight * (1.0 / (1.0 + (-x).exp()) - y)) as f32,
    )
}

fn add_scaled(out: &mut [f32], factor: f32, numbers: &[f32]) {
    out.iter_mut()
        .zip(numbers)
        .for_each(|(out, number)| *out += factor * number);
}
