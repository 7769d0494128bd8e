//! The gates of one panel at one frame: sums → states, and the gradient of states → the gradient of
//! sums.

use pulp::{Simd, WithSimd};

use crate::models::simd::{multiply_add, vectors, vectors_mut};

/// `tanh` as a quotient of polynomials, with an absolute error below `4e-7`.
///
/// The coefficients are those of Eigen's `generic_fast_tanh_float`.
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
    /// From here on `tanh` is 1 in `f32`.
    const LARGEST: f32 = 7.905_311;

    // In this order NaN stays NaN.
    let x = simd.min_f32s(
        simd.splat_f32s(LARGEST),
        simd.max_f32s(simd.splat_f32s(-LARGEST), x),
    );
    let square = simd.mul_f32s(x, x);
    let numerator = simd.mul_f32s(x, polynomial(simd, &NUMERATOR, square));
    simd.div_f32s(numerator, polynomial(simd, &DENOMINATOR, square))
}

/// The polynomial with these coefficients, that of the highest power first (Horner's scheme).
#[inline(always)]
fn polynomial<S: Simd>(simd: S, coefficients: &[f32], x: S::f32s) -> S::f32s {
    let first = simd.splat_f32s(coefficients[0]);
    coefficients[1..].iter().fold(first, |sum, &c| {
        multiply_add(simd, sum, x, simd.splat_f32s(c))
    })
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let half = simd.splat_f32s(0.5);
    multiply_add(simd, half, tanh(simd, simd.mul_f32s(half, x)), half)
}

/// Turns the sums of a panel into gates, and these and the cells of the frame before into cells and
/// states.
///
/// Matrices of units are `[rows, width]`, of which this panel has vector `panel`.
pub(super) struct ActivateGates<'a> {
    /// `[rows, PANEL]`.
    pub(super) gates: &'a mut [f32],
    pub(super) cells_before: &'a [f32],
    pub(super) cells: &'a mut [f32],
    pub(super) states: &'a mut [f32],
    pub(super) panel: usize,
    /// Vectors of a row of units.
    pub(super) row: usize,
}

impl WithSimd for ActivateGates<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let gates: &mut [[S::f32s; 4]] = vectors_mut::<S>(self.gates).as_chunks_mut().0;
        let before = vectors::<S>(self.cells_before)[self.panel..]
            .iter()
            .step_by(self.row);
        let cells = vectors_mut::<S>(self.cells);
        let states = vectors_mut::<S>(self.states)[self.panel..]
            .iter_mut()
            .step_by(self.row);

        for ((gates, before), cell) in gates
            .iter_mut()
            .zip(before)
            .zip(cells[self.panel..].iter_mut().step_by(self.row))
        {
            let [input, forget, new, output] = *gates;
            let input = sigmoid(simd, input);
            let forget = sigmoid(simd, forget);
            let new = tanh(simd, new);
            let output = sigmoid(simd, output);
            *gates = [input, forget, new, output];
            *cell = multiply_add(simd, forget, *before, simd.mul_f32s(input, new));
        }

        // A second loop: in a single one, each row would wait for its cell before the processor
        // could look at the next.
        for ((gates, cell), state) in gates
            .iter()
            .zip(cells[self.panel..].iter().step_by(self.row))
            .zip(states)
        {
            *state = simd.mul_f32s(gates[3], tanh(simd, *cell));
        }
    }
}

/// The way back: turns the gates of a panel into the gradient of their sums.
pub(super) struct GateGradients<'a> {
    /// `[rows, PANEL]`, gates before and the gradient of their sums after.
    pub(super) gates: &'a mut [f32],
    pub(super) cells_before: &'a [f32],
    pub(super) cells: &'a [f32],
    /// The gradient of the states.
    pub(super) d_states: &'a [f32],
    /// Before, the gradient of the cells by way of later frames; after, that of the cells of the
    /// frame before.
    pub(super) d_cells: &'a mut [f32],
    /// `[PANEL]`: the gradient of the sums of all rows is added to it.
    pub(super) d_bias: &'a mut [f32],
    pub(super) panel: usize,
    /// Vectors of a row of units.
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
        let cells = vectors::<S>(self.cells)[self.panel..]
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
        // The derivatives of sigmoid and tanh by their values: x * (1 - x) and 1 - x * x.
        let sigmoid_slope = |x| simd.sub_f32s(x, simd.mul_f32s(x, x));
        let tanh_slope = |x| simd.sub_f32s(one, simd.mul_f32s(x, x));

        for ((((gates, &before), &cell), &d_state), d_cell) in gates
            .iter_mut()
            .zip(before)
            .zip(cells)
            .zip(d_states)
            .zip(d_cells)
        {
            let [input, forget, new, output] = *gates;
            let squashed = tanh(simd, cell);
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
    use crate::models::simd::{LANES, run_kernel};

    /// Both functions at each number.
    struct Curves<'a> {
        x: &'a [f32],
        tanh: &'a mut [f32],
        sigmoid: &'a mut [f32],
    }

    impl WithSimd for Curves<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let out = vectors_mut::<S>(self.tanh)
                .iter_mut()
                .zip(vectors_mut::<S>(self.sigmoid));
            for (x, (t, s)) in vectors::<S>(self.x).iter().zip(out) {
                (*t, *s) = (tanh(simd, *x), sigmoid(simd, *x));
            }
        }
    }

    #[test]
    fn curves_are_near_and_pass_on_what_is_no_number() {
        let x: Vec<f32> = (-40_000..40_000).map(|i| i as f32 / 2_000.0).collect();
        let (mut t, mut s) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        run_kernel(Curves {
            x: &x,
            tanh: &mut t,
            sigmoid: &mut s,
        });
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
        let (mut t, mut s) = ([9.0; LANES], [9.0; LANES]);
        run_kernel(Curves {
            x: &x,
            tanh: &mut t,
            sigmoid: &mut s,
        });
        assert!(t[0].is_nan() && s[0].is_nan(), "{t:?} {s:?}");
        assert_eq!((t[3], s[3]), (0.0, 0.5));
        assert!(
            (t[1] - 1.0).abs() < 4e-7 && (t[2] + 1.0).abs() < 4e-7 && (t[1], t[2]) == (t[4], t[5])
        );
    }
}
