//! PyTorch's parameters ↔ one flat vector in the order in which the engine reads it.
//!
//! The `4*h` columns of a layer's gates are cut into *panels* of [`PANEL`]: the input, forget, cell and output gates of
//! eight units, so that one panel of sums becomes eight states without another look at memory. A weight matrix
//! `[4*h, K]` is kept as `[panels][K][PANEL]`, where row `k` of a panel is what input `k` adds to it. The width `h` is
//! padded with units whose weights are zero and stay zero, as their gradient is.

use std::ops::Range;

use super::Shape;
use super::lstm::LSTM;
use super::recurrent::Part;
use super::simd::LANES;

/// Gates in a panel: four of each of [`LANES`] units.
pub(super) const PANEL: usize = 4 * LANES;

/// Where the parameters of a layer are in the flat vector.
#[derive(Debug, Clone)]
pub(super) struct LayerPlace {
    /// `[panels][PANEL]`.
    pub(super) bias_hh: Range<usize>,
    /// `[panels][PANEL]`.
    pub(super) bias_ih: Range<usize>,
    /// `[panels][width][PANEL]`.
    pub(super) weight_hh: Range<usize>,
    /// `[panels][e*j][PANEL]` in the first layer, `[panels][width][PANEL]` in the others.
    pub(super) weight_ih: Range<usize>,
}

/// Where everything is in the flat vector.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    /// The parameters, sorted by name.
    parts: Vec<Part>,
    /// `hidden_size`, padded to whole vectors.
    pub(super) width: usize,
    /// Panels of a layer's gates.
    pub(super) panels: usize,
    pub(super) layers: Vec<LayerPlace>,
    /// `[width]`.
    pub(super) linear_state: Range<usize>,
    /// `[s]`.
    pub(super) linear_statics: Range<usize>,
    /// One number.
    pub(super) linear_bias: usize,
    /// The first number of the first layer's `weight_ih`, which comes last and is by far the largest.
    pub(super) dense: usize,
    /// Numbers in all.
    pub(super) len: usize,
}

/// Hands out ranges one after the other, each from a cache line on.
struct Allocator(usize);

impl Allocator {
    fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.0.next_multiple_of(2 * LANES);
        self.0 = start + len;
        start..self.0
    }
}

impl Layout {
    pub(super) fn new(shape: Shape) -> Layout {
        let width = shape.hidden_size.next_multiple_of(LANES);
        let panels = width / LANES;
        let mut free = Allocator(0);
        let linear_state = free.take(width);
        let linear_statics = free.take(shape.s);
        let linear_bias = free.take(1).start;
        let mut layers: Vec<LayerPlace> = (0..shape.lstm_layers)
            .map(|layer| LayerPlace {
                bias_hh: free.take(4 * width),
                bias_ih: free.take(4 * width),
                weight_hh: free.take(4 * width * width),
                weight_ih: if layer == 0 {
                    0..0
                } else {
                    free.take(4 * width * width)
                },
            })
            .collect();
        layers[0].weight_ih = free.take(4 * width * shape.e * shape.j);
        let (dense, len) = (layers[0].weight_ih.start, layers[0].weight_ih.end);
        let parts = LSTM.parts(&shape);
        Layout {
            shape,
            parts,
            width,
            panels,
            layers,
            linear_state,
            linear_statics,
            linear_bias,
            dense,
            len,
        }
    }

    /// The inputs of the first layer: the one-hot codes.
    pub(super) fn inputs(&self) -> usize {
        self.shape.e * self.shape.j
    }

    /// Where each element of a parameter is, in its row-major order.
    pub(super) fn places(&self, parameter: usize) -> impl Iterator<Item = usize> {
        let (h, width) = (self.shape.hidden_size, self.width);
        let panel_and_lane = move |gate: usize| {
            let (kind, unit) = (gate / h, gate % h);
            (unit / LANES, kind * LANES + unit % LANES)
        };
        let part = self.parts[parameter];
        // A bias is a matrix with one column.
        let (start, rows, columns, rows_in_panel) = match part {
            Part::LinearBias => (self.linear_bias, 1, 1, 1),
            Part::LinearWeight => (self.linear_state.start, h + self.shape.s, 1, 1),
            Part::BiasHh(l) => (self.layers[l].bias_hh.start, 4 * h, 1, 1),
            Part::BiasIh(l) => (self.layers[l].bias_ih.start, 4 * h, 1, 1),
            Part::WeightHh(l) => (self.layers[l].weight_hh.start, 4 * h, h, width),
            Part::WeightIh(0) => (
                self.layers[0].weight_ih.start,
                4 * h,
                self.inputs(),
                self.inputs(),
            ),
            Part::WeightIh(l) => (self.layers[l].weight_ih.start, 4 * h, h, width),
        };
        let statics = self.linear_statics.start;
        (0..rows * columns).map(move |at| match part {
            Part::LinearBias => start,
            Part::LinearWeight if at < h => start + at,
            Part::LinearWeight => statics + at - h,
            _ => {
                let (panel, lane) = panel_and_lane(at / columns);
                start + (panel * rows_in_panel + at % columns) * PANEL + lane
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Architecture as _;

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for hidden_size in [1, 7, 8, 13] {
            let layout = Layout::new(Shape {
                e: 5,
                m: 2,
                j: 3,
                s: 2,
                hidden_size,
                lstm_layers: 3,
            });
            let parameters = LSTM.parameters(&layout.shape);
            let mut taken = vec![false; layout.len];
            for (index, parameter) in parameters.iter().enumerate() {
                let places: Vec<usize> = layout.places(index).collect();
                assert_eq!(places.len(), parameter.len(), "{}", parameter.name);
                places
                    .into_iter()
                    .for_each(|place| assert!(!std::mem::replace(&mut taken[place], true)));
            }
        }
    }
}
