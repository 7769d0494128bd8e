//! PyTorch's parameters ↔ one flat vector in the order in which the engine reads it.
//!
//! The `4*h` columns of a layer's gates are cut into *panels* of [`PANEL`]: the input, forget, cell and output gates of
//! eight units, so that one panel of sums becomes eight states without another look at memory. A weight matrix
//! `[4*h, K]` is kept as `[panels][K][PANEL]`, where row `k` of a panel is what input `k` adds to it. The width `h` is
//! padded with units whose weights are zero and stay zero, as their gradient is.

use std::ops::Range;

use super::simd::LANES;
use super::{Floats, Parameter, Shape};

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
                weight_ih: if layer == 0 { 0..0 } else { free.take(4 * width * width) },
            })
            .collect();
        layers[0].weight_ih = free.take(4 * width * shape.inputs(0));
        let (dense, len) = (layers[0].weight_ih.start, layers[0].weight_ih.end);
        Layout { shape, width, panels, layers, linear_state, linear_statics, linear_bias, dense, len }
    }

    /// Where each element of `parameter` is, in its row-major order.
    fn places(&self, parameter: Parameter) -> impl Iterator<Item = usize> {
        let (h, width) = (self.shape.hidden_size, self.width);
        let panel_and_lane = move |gate: usize| {
            let (kind, unit) = (gate / h, gate % h);
            (unit / LANES, kind * LANES + unit % LANES)
        };
        // A bias is a matrix with one column.
        let (start, columns, rows_in_panel) = match parameter {
            Parameter::LinearBias => (self.linear_bias, 1, 1),
            Parameter::LinearWeight => (self.linear_state.start, 1, 1),
            Parameter::BiasHh(l) => (self.layers[l].bias_hh.start, 1, 1),
            Parameter::BiasIh(l) => (self.layers[l].bias_ih.start, 1, 1),
            Parameter::WeightHh(l) => (self.layers[l].weight_hh.start, h, width),
            Parameter::WeightIh(0) => (self.layers[0].weight_ih.start, self.shape.inputs(0), self.shape.inputs(0)),
            Parameter::WeightIh(l) => (self.layers[l].weight_ih.start, h, width),
        };
        let statics = self.linear_statics.start;
        (0..parameter.len(&self.shape)).map(move |at| match parameter {
            Parameter::LinearBias => start,
            Parameter::LinearWeight if at < h => start + at,
            Parameter::LinearWeight => statics + at - h,
            _ => {
                let (panel, lane) = panel_and_lane(at / columns);
                start + (panel * rows_in_panel + at % columns) * PANEL + lane
            }
        })
    }

    /// The flat vector with the elements that `of` gives for each parameter, in its row-major order.
    pub(super) fn join<E>(&self, mut of: impl FnMut(Parameter) -> Result<Vec<f32>, E>) -> Result<Floats, E> {
        let mut flat = Floats::zeros(self.len);
        for parameter in self.shape.parameters() {
            let values = of(parameter)?;
            debug_assert_eq!(values.len(), parameter.len(&self.shape));
            let numbers: &mut [f32] = &mut flat;
            self.places(parameter).zip(values).for_each(|(place, value)| numbers[place] = value);
        }
        Ok(flat)
    }

    /// The elements of each parameter in `flat`, in the order of [`Shape::parameters`].
    pub(super) fn split(&self, flat: &[f32]) -> Vec<Vec<f32>> {
        let of = |parameter| self.places(parameter).map(|place| flat[place]).collect();
        self.shape.parameters().into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_from_places_of_their_own() {
        for hidden_size in [1, 7, 8, 13] {
            let layout = Layout::new(Shape { e: 5, m: 2, j: 3, s: 2, hidden_size, lstm_layers: 3 });
            let mut next = 0f32;
            let flat = layout.join(|parameter| {
                let values = (0..parameter.len(&layout.shape)).map(|_| {
                    next += 1.0;
                    next
                });
                Ok::<_, ()>(values.collect())
            });
            let parts = layout.split(&flat.expect("joined"));
            assert_eq!(parts.concat(), (1..=next as usize).map(|n| n as f32).collect::<Vec<f32>>());
        }
    }
}
