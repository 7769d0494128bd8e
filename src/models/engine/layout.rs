//! PyTorch's parameters ↔ one flat vector in the order in which the engine reads it.
//!
//! The `4*h` columns of a layer's gates are cut into *panels* of [`PANEL`]: the input, forget, cell
//! and output gates of eight units, so that one panel of sums becomes eight states without another
//! look at memory. A weight matrix `[4*h, K]` is kept as `[panels][K][PANEL]`, where row `k` of a
//! panel is what input `k` adds to it. The width `h` is padded with units whose weights are zero.
//! These stay zero, as their gradient is zero.

use std::ops::Range;

use crate::ModelShape;
use crate::architectures::lstm::LSTM;
use crate::architectures::recurrent::RecurrentParameter;
use crate::simd::LANES;

/// Gates in a panel: four of each of [`LANES`] units.
pub(super) const PANEL: usize = 4 * LANES;

/// Where the parameters of a layer are in the flat vector.
#[derive(Debug, Clone)]
pub(super) struct LayerRanges {
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
pub(super) struct FlatLayout {
    pub(super) shape: ModelShape,
    /// The parameters, sorted by name.
    parameters: Vec<RecurrentParameter>,
    /// `hidden_size`, padded to whole vectors.
    pub(super) width: usize,
    /// Panels of a layer's gates.
    pub(super) panels: usize,
    pub(super) layers: Vec<LayerRanges>,
    /// `[width]`.
    pub(super) linear_state: Range<usize>,
    /// `[s]`.
    pub(super) linear_statics: Range<usize>,
    /// One number.
    pub(super) linear_bias: usize,
    /// The first number of the first layer's `weight_ih`, which comes last and is by far the
    /// largest.
    pub(super) table_start: usize,
    /// Numbers in all.
    pub(super) len: usize,
}

/// Hands out ranges one after the other, each from a cache line on.
#[derive(Default)]
struct RangeAllocator {
    end: usize,
}

impl RangeAllocator {
    fn allocate(&mut self, len: usize) -> Range<usize> {
        let start = self.end.next_multiple_of(2 * LANES);
        self.end = start + len;
        start..self.end
    }
}

impl FlatLayout {
    pub(super) fn new(shape: ModelShape) -> FlatLayout {
        let width = shape.hidden_size.next_multiple_of(LANES);
        let mut ranges = RangeAllocator::default();

        let linear_state = ranges.allocate(width);
        let linear_statics = ranges.allocate(shape.s);
        let linear_bias = ranges.allocate(1).start;

        let mut layers = Vec::with_capacity(shape.lstm_layers);
        for layer in 0..shape.lstm_layers {
            layers.push(LayerRanges {
                bias_hh: ranges.allocate(4 * width),
                bias_ih: ranges.allocate(4 * width),
                weight_hh: ranges.allocate(4 * width * width),
                weight_ih: if layer == 0 {
                    0..0 // Until it is known where it begins: after all others.
                } else {
                    ranges.allocate(4 * width * width)
                },
            });
        }
        let table = ranges.allocate(4 * width * shape.e * shape.j);
        layers[0].weight_ih = table.clone();

        FlatLayout {
            shape,
            parameters: LSTM.sorted_parameters(&shape),
            width,
            panels: width / LANES,
            layers,
            linear_state,
            linear_statics,
            linear_bias,
            table_start: table.start,
            len: table.end,
        }
    }

    /// The rows of the first layer's `weight_ih`: its inputs, which are the one-hot codes.
    pub(super) fn table_rows(&self) -> usize {
        self.shape.e * self.shape.j
    }

    /// Where each element of a parameter is, in its row-major order.
    pub(super) fn element_positions(&self, parameter: usize) -> impl Iterator<Item = usize> {
        use RecurrentParameter::*;

        let h = self.shape.hidden_size;
        let in_gates = match self.parameters[parameter] {
            LinearBias | LinearWeight => None,
            // A bias is a matrix with one column.
            BiasHh(l) => Some(GateMatrix::new(h, &self.layers[l].bias_hh, 1, 1)),
            BiasIh(l) => Some(GateMatrix::new(h, &self.layers[l].bias_ih, 1, 1)),
            WeightHh(l) => Some(GateMatrix::new(h, &self.layers[l].weight_hh, h, self.width)),
            WeightIh(0) => {
                let rows = self.table_rows();
                Some(GateMatrix::new(h, &self.layers[0].weight_ih, rows, rows))
            }
            WeightIh(l) => Some(GateMatrix::new(h, &self.layers[l].weight_ih, h, self.width)),
        };
        let in_head = match self.parameters[parameter] {
            LinearBias => self.linear_bias..self.linear_bias + 1,
            LinearWeight => self.linear_state.start..self.linear_state.start + h,
            _ => 0..0,
        };
        let in_statics = match self.parameters[parameter] {
            LinearWeight => self.linear_statics.clone(),
            _ => 0..0,
        };

        in_head
            .chain(in_statics)
            .chain(in_gates.into_iter().flat_map(GateMatrix::element_positions))
    }
}

/// A matrix `[4*h, columns]` of a layer, in panels.
struct GateMatrix {
    h: usize,
    /// Where it begins in the flat vector.
    start: usize,
    columns: usize,
    /// Columns and padding: the rows of each of its panels.
    panel_rows: usize,
}

impl GateMatrix {
    fn new(h: usize, range: &Range<usize>, columns: usize, panel_rows: usize) -> GateMatrix {
        GateMatrix {
            h,
            start: range.start,
            columns,
            panel_rows,
        }
    }

    /// Where each of its elements is in the flat vector, in its row-major order.
    fn element_positions(self) -> impl Iterator<Item = usize> {
        (0..4 * self.h * self.columns).map(move |element| {
            let gate = element / self.columns;
            let column = element % self.columns;
            // PyTorch has all input gates first, then all forget gates and so on.
            let kind = gate / self.h;
            let unit = gate % self.h;

            let panel = unit / LANES;
            let lane = kind * LANES + unit % LANES;
            self.start + (panel * self.panel_rows + column) * PANEL + lane
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Architecture as _;

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for hidden_size in [1, 7, 8, 13] {
            let layout = FlatLayout::new(ModelShape {
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
                let positions: Vec<usize> = layout.element_positions(index).collect();
                assert_eq!(positions.len(), parameter.len(), "{}", parameter.name);
                for position in positions {
                    assert!(!std::mem::replace(&mut taken[position], true));
                }
            }
        }
    }
}
