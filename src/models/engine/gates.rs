//! Gate kernels for one panel at one frame: sums → states, and backward from the gradient of the
//! states to the gradient of the sums.

use pulp::{Simd, WithSimd};

use super::layout::PANEL;
use crate::simd::{
    LANES, WIDE_LANES, is_wide, multiply_add, run_kernel, run_wide_kernel, vectors, vectors_mut,
};

/// Computes `tanh` as a quotient of polynomials, with an absolute error below `4e-7`.
///
/// The coefficients come from Eigen's `generic_fast_tanh_float`.
#[inline(always)]
fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const NUMERATOR: [f32; 7] = [
        -2.760_768_5e-16,
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297e-8,
        1.485_722_4e-5,
        6.372_619_3e-4,
        4.893_525e-3,
    ];
    const DENOMINATOR: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];
    /// From this input on, `tanh` is 1 in `f32`.
    const MAX_INPUT: f32 = 7.905_311;

    // This order of operations keeps NaN as NaN.
    let x = simd.min_f32s(
        simd.splat_f32s(MAX_INPUT),
        simd.max_f32s(simd.splat_f32s(-MAX_INPUT), x),
    );
    let square = simd.mul_f32s(x, x);
    let numerator = simd.mul_f32s(x, polynomial(simd, &NUMERATOR, square));
    simd.div_f32s(numerator, polynomial(simd, &DENOMINATOR, square))
}

/// Evaluates the polynomial with these coefficients, highest power first (Horner's scheme).
#[inline(always)]
fn polynomial<S: Simd>(simd: S, coefficients: &[f32], x: S::f32s) -> S::f32s {
    let first = simd.splat_f32s(coefficients[0]);
    coefficients[1..].iter().fold(first, |sum, &c| {
        multiply_add(simd, sum, x, simd.splat_f32s(c))
    })
}

/// Factors and offsets that turn `tanh` into the activation of each number in a panel's row. The
/// input, forget and output gates use `1 / (1 + exp(-x)) = tanh(x / 2) / 2 + 1/2`. The new cells
/// use `tanh(x)` itself, exact to the last bit, because adding -0 leaves every number unchanged.
struct PanelCurves {
    /// Factors of the sums, and of the `tanh` of the scaled sums.
    factors: [f32; PANEL],
    offsets: [f32; PANEL],
}

static PANEL_CURVES: PanelCurves = {
    let mut curves = PanelCurves {
        factors: [0.5; PANEL],
        offsets: [0.5; PANEL],
    };
    let mut at = 2 * LANES;
    while at < 3 * LANES {
        curves.factors[at] = 1.0;
        curves.offsets[at] = -0.0;
        at += 1;
    }
    curves
};

/// Kernel that turns the sums of a panel into gates.
pub(super) struct ActivateSums<'a> {
    /// Sums before, gates after, `[rows, PANEL]`.
    pub(super) gates: &'a mut [f32],
}

impl WithSimd for ActivateSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if is_wide::<S>() {
            self.activate::<S, 2>(simd);
        } else {
            self.activate::<S, 4>(simd);
        }
    }
}

impl ActivateSums<'_> {
    /// Applies the activations. A row of the panel has `V` vectors.
    #[inline(always)]
    fn activate<S: Simd, const V: usize>(self, simd: S) {
        let constants = |numbers: &[f32; PANEL]| {
            let lanes = |v: usize| simd.partial_load_f32s(&numbers[v * S::F32_LANES..]);
            std::array::from_fn::<S::f32s, V, _>(lanes)
        };
        let factors = constants(&PANEL_CURVES.factors);
        let offsets = constants(&PANEL_CURVES.offsets);

        let gates: &mut [[S::f32s; V]] = vectors_mut::<S>(self.gates).as_chunks_mut().0;
        for row in gates {
            for v in 0..V {
                let curve = tanh(simd, simd.mul_f32s(factors[v], row[v]));
                row[v] = multiply_add(simd, factors[v], curve, offsets[v]);
            }
        }
    }
}

/// Kernel that computes the cells of a panel from its gates and the cells of the previous frame.
///
/// Matrices of units are `[rows, width]`. This panel has vector `panel` of each row.
pub(super) struct AdvanceCells<'a> {
    /// Gates, `[rows, PANEL]`.
    pub(super) gates: &'a [f32],
    pub(super) cells_before: &'a [f32],
    pub(super) cells: &'a mut [f32],
    pub(super) panel: usize,
    /// Vectors per row of units.
    pub(super) row: usize,
}

impl WithSimd for AdvanceCells<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let gates: &[[S::f32s; 4]] = vectors::<S>(self.gates).as_chunks().0;
        let before = vectors::<S>(self.cells_before)[self.panel..]
            .iter()
            .step_by(self.row);
        let cells = vectors_mut::<S>(self.cells)[self.panel..]
            .iter_mut()
            .step_by(self.row);
        for (([input, forget, new, _], before), cell) in gates.iter().zip(before).zip(cells) {
            *cell = multiply_add(simd, *forget, *before, simd.mul_f32s(*input, *new));
        }
    }
}

/// Kernel that computes `tanh` of all cells of a frame.
pub(super) struct SquashCells<'a> {
    /// Cells, `[rows, width]`.
    pub(super) cells: &'a [f32],
    /// Output, `[rows, width]`.
    pub(super) squashed: &'a mut [f32],
}

impl WithSimd for SquashCells<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let squashed = vectors_mut::<S>(self.squashed);
        for (cell, squashed) in vectors::<S>(self.cells).iter().zip(squashed) {
            *squashed = tanh(simd, *cell);
        }
    }
}

impl SquashCells<'_> {
    /// Runs the kernel with the widest vectors that divide the number of cells.
    pub(super) fn run(self) {
        if self.cells.len().is_multiple_of(WIDE_LANES) {
            run_wide_kernel(self);
        } else {
            run_kernel(self);
        }
    }
}

/// Kernel that computes the states of a panel. Before, the states hold the output of
/// [`SquashCells`].
pub(super) struct OutputStates<'a> {
    /// Gates, `[rows, PANEL]`.
    pub(super) gates: &'a [f32],
    pub(super) states: &'a mut [f32],
    pub(super) panel: usize,
    /// Vectors per row of units.
    pub(super) row: usize,
}

impl WithSimd for OutputStates<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let gates: &[[S::f32s; 4]] = vectors::<S>(self.gates).as_chunks().0;
        let states = vectors_mut::<S>(self.states)[self.panel..]
            .iter_mut()
            .step_by(self.row);
        for ([.., output], state) in gates.iter().zip(states) {
            *state = simd.mul_f32s(*output, *state);
        }
    }
}

/// Backward kernel that turns the gates of a panel into the gradient of their sums.
pub(super) struct GateGradients<'a> {
    /// Gates before, gradient of their sums after, `[rows, PANEL]`.
    pub(super) gates: &'a mut [f32],
    pub(super) cells_before: &'a [f32],
    /// Output of [`SquashCells`] for the cells.
    pub(super) squashed: &'a [f32],
    /// Gradient of the states.
    pub(super) d_states: &'a [f32],
    /// Before, the gradient of the cells through later frames. After, the gradient of the cells of
    /// the previous frame.
    pub(super) d_cells: &'a mut [f32],
    /// Bias gradient, `[PANEL]`. The gradient of the sums of all rows is added to it.
    pub(super) d_bias: &'a mut [f32],
    pub(super) panel: usize,
    /// Vectors per row of units.
    pub(super) row: usize,
}

impl WithSimd for GateGradients<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let gates: &mut [[S::f32s; 4]] = vectors_mut::<S>(self.gates).as_chunks_mut().0;
        let before = vectors::<S>(self.cells_before)[self.panel..]
            .iter()
            .step_by(self.row);
        let squashed = vectors::<S>(self.squashed)[self.panel..]
            .iter()
            .step_by(self.row);
        let d_states = vectors::<S>(self.d_states)[self.panel..]
            .iter()
            .step_by(self.row);
        let d_cells = vectors_mut::<S>(self.d_cells)[self.panel..]
            .iter_mut()
            .step_by(self.row);
        let d_bias: &mut [S::f32s; 4] = &mut vectors_mut::<S>(self.d_bias).as_chunks_mut().0[0];
        let mut total = *d_bias;
        let one = simd.splat_f32s(1.0);
        // The derivatives of sigmoid and tanh, expressed by their values: x * (1 - x) and 1 - x *
        // x.
        let sigmoid_slope = |x| simd.sub_f32s(x, simd.mul_f32s(x, x));
        let tanh_slope = |x| simd.sub_f32s(one, simd.mul_f32s(x, x));

        for ((((gates, &before), &squashed), &d_state), d_cell) in gates
            .iter_mut()
            .zip(before)
            .zip(squashed)
            .zip(d_states)
            .zip(d_cells)
        {
            let [input, forget, new, output] = *gates;
            // The cell receives gradient from the state of this frame and from later frames.
            let through_state = simd.mul_f32s(d_state, output);
            let d = multiply_add(simd, through_state, tanh_slope(squashed), *d_cell);
            *d_cell = simd.mul_f32s(d, forget);

            *gates = [
                simd.mul_f32s(simd.mul_f32s(d, new), sigmoid_slope(input)),
                simd.mul_f32s(simd.mul_f32s(d, before), sigmoid_slope(forget)),
                simd.mul_f32s(simd.mul_f32s(d, input), tanh_slope(new)),
                simd.mul_f32s(simd.mul_f32s(d_state, squashed), sigmoid_slope(output)),
            ];
            for (total, d) in total.iter_mut().zip(gates) {
                *total = simd.add_f32s(*total, *d);
            }
        }

        *d_bias = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::run_at_width;

    /// Computes both activations of each number in `x`: `tanh`, and `1 / (1 + exp(-x))`. The length
    /// of `x` must be a multiple of eight.
    fn curves(x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let mut gates: Vec<f32> = x.chunks(LANES).flat_map(|x| [x; 4].concat()).collect();
        run_wide_kernel(ActivateSums { gates: &mut gates });
        let gate = |number: usize| {
            let rows = gates.chunks(PANEL);
            rows.flat_map(|row| row[number * LANES..][..LANES].to_vec())
                .collect::<Vec<f32>>()
        };
        for sigmoid in [1, 3] {
            assert_eq!(bits(&gate(sigmoid)), bits(&gate(0)));
        }
        (gate(2), gate(0))
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|number| number.to_bits()).collect()
    }

    #[test]
    fn gates_do_not_depend_on_vector_width() {
        let sums: Vec<f32> = (0..33 * PANEL)
            .map(|at| (at * 7919 % 1000) as f32 / 60.0 - 8.0)
            .chain([0.0, -0.0, f32::INFINITY, -1e-30].repeat(LANES))
            .collect();
        let gates = |is_wide| {
            let mut gates = sums.clone();
            let kernel = ActivateSums { gates: &mut gates };
            run_at_width(kernel, is_wide).map(|()| bits(&gates))
        };
        assert_eq!(gates(true), gates(false));
        let squash = |is_wide| {
            let mut squashed = vec![0.0; sums.len()];
            let kernel = SquashCells {
                cells: &sums,
                squashed: &mut squashed,
            };
            run_at_width(kernel, is_wide).map(|()| bits(&squashed))
        };
        assert_eq!(squash(true), squash(false));
    }

    #[test]
    fn curves_are_accurate_and_propagate_nan() {
        let x: Vec<f32> = (-40_000..40_000).map(|i| i as f32 / 2_000.0).collect();
        let (t, s) = curves(&x);
        for ((x, t), s) in x.iter().map(|&x| f64::from(x)).zip(t).zip(s) {
            assert!((f64::from(t) - x.tanh()).abs() < 4e-7, "tanh({x}) = {t}");
            assert!(
                (f64::from(s) - 1.0 / (1.0 + (-x).exp())).abs() < 2e-7,
                "sigmoid({x}) = {s}"
            );
        }
        let x = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            1e30,
            -1e30,
            -0.0,
            f32::MIN_POSITIVE,
        ];
        let (t, s) = curves(&x);
        assert!(t[0].is_nan() && s[0].is_nan(), "{t:?} {s:?}");
        assert_eq!((t[3], s[3]), (0.0, 0.5));
        assert!(t[6].is_sign_negative());
        assert!(
            (t[1] - 1.0).abs() < 4e-7 && (t[2] + 1.0).abs() < 4e-7 && (t[1], t[2]) == (t[4], t[5])
        );
    }
}
