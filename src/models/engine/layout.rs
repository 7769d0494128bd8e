//! Layout of the parameters: maps PyTorch's parameters to one flat vector in the engine's reading
//! order.
//!
//! The `4*h` columns of a layer's gates are cut into *panels* of [`PANEL`] columns: the input,
//! forget, cell and output gates of eight units. One panel of sums thus becomes eight states
//! without another memory access. A weight matrix `[4*h, K]` is stored as `[panels][K][PANEL]`. Row
//! `k` of a panel is the contribution of input `k`. The width `h` is padded with units whose
//! weights are zero. They stay zero, because their gradient is zero.

use std::ops::Range;

use crate::ModelShape;
use crate::architectures::lstm::LSTM;
use crate::architectures::recurrent::RecurrentParameter;
use crate::simd::LANES;

/// Gates per panel: four for each of [`LANES`] units.
pub(super) const PANEL: usize = 4 * LANES;

/// Ranges of a layer's parameters in the flat vector.
#[derive(Debug, Clone)]
pub(super) struct LayerRanges {
    /// Recurrent bias, `[panels][PANEL]`.
    pub(super) bias_hh: Range<usize>,
    /// Input bias, `[panels][PANEL]`.
    pub(super) bias_ih: Range<usize>,
    /// Recurrent weights, `[panels][width][PANEL]`.
    pub(super) weight_hh: Range<usize>,
    /// Input weights, `[panels][frame inputs][PANEL]` in the first layer, `[panels][width][PANEL]` in the
    /// others.
    pub(super) weight_ih: Range<usize>,
}

/// Ranges of all parameters in the flat vector.
#[derive(Debug, Clone)]
pub(super) struct FlatLayout {
    pub(super) shape: ModelShape,
    /// Parameters, sorted by name.
    parameters: Vec<RecurrentParameter>,
    /// `hidden_size`, padded to whole vectors.
    pub(super) width: usize,
    /// Panels of a layer's gates.
    pub(super) panels: usize,
    pub(super) layers: Vec<LayerRanges>,
    /// Linear weights of the last state, `[width]`.
    pub(super) linear_state: Range<usize>,
    /// Linear weights of the static features, `[s]`.
    pub(super) linear_statics: Range<usize>,
    /// Index of the linear bias.
    pub(super) linear_bias: usize,
    /// Start of the first layer's `weight_ih`. It is the last parameter and by far the largest.
    pub(super) table_start: usize,
    /// Length of the flat vector.
    pub(super) len: usize,
}

/// Allocates consecutive ranges, each aligned to a cache line.
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
                    0..0 // Placeholder: its range is allocated after all others.
                } else {
                    ranges.allocate(4 * width * width)
                },
            });
        }
        let table = ranges.allocate(4 * width * shape.frame_inputs());
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

    /// The number of rows of the first layer's `weight_ih`: the inputs of a frame.
    pub(super) fn table_rows(&self) -> usize {
        self.shape.frame_inputs()
    }

    /// Indices in the flat vector of a parameter's elements, in row-major order of the parameter.
    pub(super) fn element_positions(&self, parameter: usize) -> impl Iterator<Item = usize> {
        use RecurrentParameter::*;

        let h = self.shape.hidden_size;
        let gate_matrix = match self.parameters[parameter] {
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
        let head_positions = match self.parameters[parameter] {
            LinearBias => self.linear_bias..self.linear_bias + 1,
            LinearWeight => self.linear_state.start..self.linear_state.start + h,
            _ => 0..0,
        };
        let static_positions = match self.parameters[parameter] {
            LinearWeight => self.linear_statics.clone(),
            _ => 0..0,
        };

        head_positions.chain(static_positions).chain(
            gate_matrix
                .into_iter()
                .flat_map(GateMatrix::element_positions),
        )
    }
}

/// A matrix `[4*h, columns]` of a layer, stored in panels.
struct GateMatrix {
    h: usize,
    /// Start in the flat vector.
    start: usize,
    columns: usize,
    /// Rows per panel: the columns of the matrix, with padding.
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

    /// Indices in the flat vector of the matrix's elements, in row-major order of the matrix.
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
    fn elements_do_not_overlap() {
        for hidden_size in [1, 7, 8, 13] {
            let layout = FlatLayout::new(ModelShape {
                e: 5,
                m: 2,
                j: 3,
                s: 2,
                shared_bits: 0,
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
