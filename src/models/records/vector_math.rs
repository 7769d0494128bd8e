//! Arithmetic on the heads of a network, which compilers turn into vectors. Terms are added in the
//! same order on every processor.

use pulp::Simd;

use crate::architectures::outcomes::HEADS;
use crate::simd::{multiply_add, vectors, vectors_mut};

/// Numbers of a row of heads, padded to whole vectors.
pub(super) const ROW: usize = 32;

const _: () = assert!(HEADS <= ROW);

/// A number for each head. The padding is never read.
pub(super) type HeadRow = [f32; ROW];

/// Adds `factor * row` to `sums`.
#[inline(always)]
pub(super) fn add_scaled<S: Simd>(simd: S, sums: &mut HeadRow, factor: f32, row: &HeadRow) {
    let factor = simd.splat_f32s(factor);
    for (sum, &number) in vectors_mut::<S>(sums).iter_mut().zip(vectors::<S>(row)) {
        *sum = multiply_add(simd, factor, number, *sum);
    }
}

/// Returns `start` plus the sum of `number * rows[index]` over all entries. A row has `V` vectors.
#[inline(always)]
pub(super) fn sum_of_rows<S: Simd, const V: usize>(
    simd: S,
    start: &HeadRow,
    entries: impl Iterator<Item = (usize, f32)>,
    rows: &[HeadRow],
) -> HeadRow {
    let start = vectors::<S>(start);
    let mut sums: [S::f32s; V] = std::array::from_fn(|v| start[v]);
    for (index, number) in entries {
        let factor = simd.splat_f32s(number);
        let row = vectors::<S>(&rows[index]);
        for v in 0..V {
            sums[v] = multiply_add(simd, factor, row[v], sums[v]);
        }
    }
    let mut out = [0.0; ROW];
    vectors_mut::<S>(&mut out).copy_from_slice(&sums);
    out
}

/// Like [`add_scaled`], for slices of equal length.
#[inline(always)]
pub(super) fn add_scaled_slice(sums: &mut [f32], factor: f32, row: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(row) {
        *sum += factor * number;
    }
}

/// Returns the sum of the products of two slices of equal length, in eight partial sums.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Computes `exp` of numbers between -80 and 80, with a relative error below `3e-7`.
///
/// `2^n` times a polynomial, with the coefficients of Cephes' `expf`.
#[inline(always)]
pub(super) fn exp_row(row: &HeadRow) -> HeadRow {
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const COEFFICIENTS: [f32; 6] = [
        1.987_569_1e-4,
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        5e-1,
    ];
    let mut out = [0.0; ROW];
    for head in 0..ROW {
        let x = row[head];
        // The last bits of `whole` are the nearest whole number.
        let whole = x * std::f32::consts::LOG2_E + ROUND;
        let n = whole - ROUND;
        let r = x - n * LN_2_HIGH - n * LN_2_LOW;
        let mut sum = COEFFICIENTS[0];
        for coefficient in &COEFFICIENTS[1..] {
            sum = sum * r + coefficient;
        }
        let mantissa = sum * r * r + r + 1.0;
        let power = f32::from_bits((whole.to_bits() << 23).wrapping_add(127 << 23));
        out[head] = mantissa * power;
    }
    out
}

const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;

/// Returns `gelu(x)` in its form with `tanh`, and its derivative.
pub(super) fn gelu(x: f32) -> (f32, f32) {
    let inner = GELU_SCALE * x * (1.0 + GELU_CUBE * x * x);
    let t = inner.tanh();
    let slope = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * x * x);
    (
        0.5 * x * (1.0 + t),
        0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_exact_to_a_few_units() {
        for step in 0..1000 {
            let x = -8.0 + 0.014 * step as f32;
            let found = f64::from(exp_row(&[x; ROW])[step % ROW]);
            let expected = f64::from(x).exp();
            assert!((found / expected - 1.0).abs() < 3e-7, "{x}: {found}");
        }
    }

    #[test]
    fn gelu_has_its_slope() {
        for x in [-3.0, -0.7, 0.0, 0.4, 2.5] {
            let found = (gelu(x + 1e-2).0 - gelu(x - 1e-2).0) / 2e-2;
            assert!((found - gelu(x).1).abs() < 1e-3, "{x}");
        }
    }
}
