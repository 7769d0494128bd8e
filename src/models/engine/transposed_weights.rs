//! Weights of the layers, transposed for the backward pass.

use super::layout::{FlatLayout, PANEL};
use crate::AlignedFloats;

/// Recurrent and input weights of each layer, `[pieces][4*width][at most PANEL]`, with one piece
/// for every [`PANEL`] inputs.
#[derive(Debug, Default)]
pub(super) struct TransposedWeights {
    pub(super) hh: Vec<AlignedFloats>,
    pub(super) ih: Vec<AlignedFloats>,
}

impl TransposedWeights {
    /// Transposes the weights in `flat` and replaces the previous ones. The first layer's input
    /// weights are skipped, because no gradient goes to the codes.
    pub(super) fn transpose(&mut self, layout: &FlatLayout, flat: &[f32]) {
        let layers = layout.layers.len();
        let size = 4 * layout.width * layout.width;
        self.hh.resize_with(layers, || AlignedFloats::zeros(size));
        self.ih.resize_with(layers, || AlignedFloats::zeros(size));

        for (layer, ranges) in layout.layers.iter().enumerate() {
            let weight_hh = &flat[ranges.weight_hh.clone()];
            transpose_panels(weight_hh, layout.width, &mut self.hh[layer]);
            if layer > 0 {
                let weight_ih = &flat[ranges.weight_ih.clone()];
                transpose_panels(weight_ih, layout.width, &mut self.ih[layer]);
            }
        }
    }
}

/// Computes `[panels][width][PANEL]` → `[pieces][4*width][at most PANEL]`.
fn transpose_panels(weights: &[f32], width: usize, transposed: &mut [f32]) {
    for (index, piece) in transposed.chunks_mut(4 * width * PANEL).enumerate() {
        let columns = piece.len() / (4 * width);
        for (gate, row) in piece.chunks_exact_mut(columns).enumerate() {
            let panel = &weights[gate / PANEL * width * PANEL..];
            let inputs_of_gate = panel[index * PANEL * PANEL + gate % PANEL..]
                .iter()
                .step_by(PANEL);
            for (out, weight) in row.iter_mut().zip(inputs_of_gate) {
                *out = *weight;
            }
        }
    }
}
