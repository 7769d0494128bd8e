//! Matrix products of operands that are already stored in panels, so that nothing needs packing.
//!
//! Both kernels hold three rows of four vectors of sums in registers. Together with the three
//! factors of a panel vector, and that vector, these fill sixteen registers. AVX-512 has 32
//! registers of twice the width, where the kernels hold eight rows of two vectors. Sums over one
//! index run in its order. The result for one row therefore depends neither on the other rows nor
//! on the vector width.

use pulp::{Simd, WithSimd};

use super::layout::PANEL;
use crate::simd::{
    WIDE_LANES, is_wide, multiply_add, run_kernel, run_wide_kernel, vectors, vectors_mut,
};

/// Rows of a panel that are multiplied in one pass: 16 KB, half of a first-level cache.
const ROWS_PER_PASS: usize = 128;

/// Strided view of a matrix. Number `k` of row `r` is at `(k / block) * stride + r * row + k %
/// block`.
#[derive(Debug, Clone, Copy)]
pub(super) struct StridedRows<'a> {
    pub(super) numbers: &'a [f32],
    /// Distance between rows.
    pub(super) row: usize,
    /// Distance between blocks.
    pub(super) stride: usize,
    /// Contiguous numbers of a row. At most [`ROWS_PER_PASS`], and divides it.
    pub(super) block: usize,
}

impl<'a> StridedRows<'a> {
    /// A view of a row-major matrix `[.., width]`.
    pub(super) fn matrix(numbers: &'a [f32], width: usize) -> StridedRows<'a> {
        StridedRows {
            numbers,
            row: width,
            stride: ROWS_PER_PASS,
            block: ROWS_PER_PASS,
        }
    }

    /// A view of the gates `[panels][.., PANEL]`, with `stride` numbers from one panel to the next.
    pub(super) fn panels(numbers: &'a [f32], stride: usize) -> StridedRows<'a> {
        StridedRows {
            numbers,
            row: PANEL,
            stride,
            block: PANEL,
        }
    }

    #[inline(always)]
    fn block_of_row(&self, block: usize, row: usize, len: usize) -> &'a [f32] {
        &self.numbers[block * self.stride + row * self.row..][..len]
    }
}

/// Initial value of a product's sums.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProductStart<'a> {
    /// The numbers in the output, to which the product is added.
    Existing,
    /// The same row of numbers for every row.
    Row(&'a [f32]),
}

/// Kernel for `out[r] = start[r] + Σ_k a[r][k] * panel[k]`.
pub(super) struct PanelProduct<'a> {
    /// Output `[rows, ..]` with `out_row` numbers per row. The first `width` of each are the
    /// result.
    pub(super) out: &'a mut [f32],
    pub(super) out_row: usize,
    pub(super) start: ProductStart<'a>,
    pub(super) rows: usize,
    pub(super) a: StridedRows<'a>,
    /// Weight panel, `[K, width]`.
    pub(super) panel: &'a [f32],
    /// Columns of the panel: whole vectors, at most [`PANEL`] numbers.
    pub(super) width: usize,
}

impl WithSimd for PanelProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.width / S::F32_LANES {
            1 => self.multiply_panel::<S, 1>(simd),
            2 => self.multiply_panel::<S, 2>(simd),
            3 => self.multiply_panel::<S, 3>(simd),
            _ => self.multiply_panel::<S, 4>(simd),
        }
    }
}

impl PanelProduct<'_> {
    /// Runs the product with the widest vectors that divide the panel's width.
    pub(super) fn run(self) {
        if self.width.is_multiple_of(WIDE_LANES) {
            run_wide_kernel(self);
        } else {
            run_kernel(self);
        }
    }

    #[inline(always)]
    fn multiply_panel<S: Simd, const V: usize>(mut self, simd: S) {
        let panel: &[[S::f32s; V]] = vectors::<S>(self.panel).as_chunks().0;
        for (index, part) in panel.chunks(ROWS_PER_PASS).enumerate() {
            let first_block = index * (ROWS_PER_PASS / self.a.block);
            let mut row = 0;
            while row < self.rows {
                row += match (self.rows - row, is_wide::<S>()) {
                    (1, _) => self.multiply_rows::<S, 1, V>(simd, row, first_block, part),
                    // Two pairs are faster than three rows and a single one.
                    (2, _) | (4, false) | (3, true) => {
                        self.multiply_rows::<S, 2, V>(simd, row, first_block, part)
                    }
                    (_, false) => self.multiply_rows::<S, 3, V>(simd, row, first_block, part),
                    (4..8, true) => self.multiply_rows::<S, 4, V>(simd, row, first_block, part),
                    (_, true) => self.multiply_rows::<S, 8, V>(simd, row, first_block, part),
                };
            }
            // Add the next part of the panel to the result of this one.
            self.start = ProductStart::Existing;
        }
    }

    /// Multiplies `R` rows, starting at `row`, with a part of the panel. Returns `R`.
    #[inline(always)]
    fn multiply_rows<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        first_block: usize,
        panel: &[[S::f32s; V]],
    ) -> usize {
        // The sums stay in registers over all numbers of the panel part.
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for (r, sums) in sums.iter_mut().enumerate() {
            let start = match self.start {
                ProductStart::Existing => &self.out[(row + r) * self.out_row..][..V * S::F32_LANES],
                ProductStart::Row(numbers) => numbers,
            };
            *sums = vectors::<S>(start).as_chunks().0[0];
        }

        for (block, panel) in panel.chunks(self.a.block).enumerate() {
            let rows: [&[f32]; R] = std::array::from_fn(|r| {
                self.a
                    .block_of_row(first_block + block, row + r, panel.len())
            });
            for (k, vectors) in panel.iter().enumerate() {
                let factors: [S::f32s; R] = std::array::from_fn(|r| simd.splat_f32s(rows[r][k]));
                for v in 0..V {
                    for r in 0..R {
                        sums[r][v] = multiply_add(simd, factors[r], vectors[v], sums[r][v]);
                    }
                }
            }
        }

        for (r, sums) in sums.iter().enumerate() {
            let out = &mut self.out[(row + r) * self.out_row..][..V * S::F32_LANES];
            vectors_mut::<S>(out).as_chunks_mut().0[0] = *sums;
        }
        R
    }
}

/// Kernel for `out[k] += Σ_r x[r][k] * d[r]`, the gradient of a weight panel.
pub(super) struct OuterProduct<'a> {
    /// Panel gradient, `[width, PANEL]`.
    pub(super) out: &'a mut [f32],
    /// Inputs, `[rows, width]`.
    pub(super) x: &'a [f32],
    pub(super) width: usize,
    /// Gradient of the gate sums, `[rows, PANEL]`.
    pub(super) d: &'a [f32],
}

impl WithSimd for OuterProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if is_wide::<S>() {
            self.add_panel::<S, 2, 8>(simd);
        } else {
            self.add_panel::<S, 4, 3>(simd);
        }
    }
}

impl OuterProduct<'_> {
    /// Adds to the whole panel, `K` rows at a time. Each row has `V` vectors.
    #[inline(always)]
    fn add_panel<S: Simd, const V: usize, const K: usize>(self, simd: S) {
        let out: &mut [[S::f32s; V]] = vectors_mut::<S>(self.out).as_chunks_mut().0;
        let d: &[[S::f32s; V]] = vectors::<S>(self.d).as_chunks().0;
        // Limits the rows per pass, so that half of a first-level cache is left for the sums.
        let rows = (ROWS_PER_PASS * PANEL / self.width).max(1);
        for (x, d) in self.x.chunks(rows * self.width).zip(d.chunks(rows)) {
            let mut groups = out.chunks_exact_mut(K);
            let mut first = 0;
            for group in groups.by_ref() {
                add_outer_rows::<S, V, K>(simd, group, &x[first..], self.width, d);
                first += K;
            }
            let mut pairs = groups.into_remainder().chunks_exact_mut(2);
            for pair in pairs.by_ref() {
                add_outer_rows::<S, V, 2>(simd, pair, &x[first..], self.width, d);
                first += 2;
            }
            if let single @ [_] = pairs.into_remainder() {
                add_outer_rows::<S, V, 1>(simd, single, &x[first..], self.width, d);
            }
        }
    }
}

/// Like [`OuterProduct`], but for `K` rows of the result, each of `V` vectors. Row `r` of `x`
/// begins at `r * width`.
#[inline(always)]
fn add_outer_rows<S: Simd, const V: usize, const K: usize>(
    simd: S,
    out: &mut [[S::f32s; V]],
    x: &[f32],
    width: usize,
    d: &[[S::f32s; V]],
) {
    let mut sums: [[S::f32s; V]; K] = std::array::from_fn(|k| out[k]);

    for (x, d) in x.chunks(width).zip(d) {
        let Some(factors) = x.first_chunk::<K>() else {
            break;
        };
        let factors = factors.map(|factor| simd.splat_f32s(factor));
        for v in 0..V {
            for k in 0..K {
                sums[k][v] = multiply_add(simd, factors[k], d[v], sums[k][v]);
            }
        }
    }

    out[..K].copy_from_slice(&sums);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::run_at_width;

    fn numbers(seed: u32, len: usize) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    fn assert_near(found: &[f32], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (f64::from(*found) - expected).abs() < 1e-4,
                "{found} is not {expected}"
            );
        }
    }

    #[test]
    fn products_are_sums_over_k() {
        for rows in 1..9 {
            for (depth, width) in [(1, 8), (7, 16), (40, 24), (200, 32), (300, 32)] {
                let (a, panel) = (numbers(1, rows * depth), numbers(2, depth * width));
                let mut out = numbers(3, rows * 40);
                let expected: Vec<f64> = (0..rows * 40)
                    .map(|at| {
                        let (r, column) = (at / 40, at % 40);
                        let term = |k: usize| {
                            f64::from(a[r * depth + k]) * f64::from(panel[k * width + column])
                        };
                        f64::from(out[at])
                            + if column < width {
                                (0..depth).map(term).sum()
                            } else {
                                0.0
                            }
                    })
                    .collect();
                let a = StridedRows::matrix(&a, depth);
                let product = PanelProduct {
                    out: &mut out,
                    out_row: 40,
                    start: ProductStart::Existing,
                    rows,
                    a,
                    panel: &panel,
                    width,
                };
                product.run();
                assert_near(&out, &expected);
            }
        }
    }

    #[test]
    fn blocked_and_contiguous_rows_give_equal_products() {
        let (rows, blocks) = (5, 6);
        let blocked = numbers(1, blocks * rows * PANEL);
        let (panel, bias) = (numbers(2, blocks * PANEL * 32), numbers(3, 32));
        let whole: Vec<f32> = (0..rows * blocks * PANEL)
            .map(|at| {
                let (r, k) = (at / (blocks * PANEL), at % (blocks * PANEL));
                blocked[(k / PANEL * rows + r) * PANEL + k % PANEL]
            })
            .collect();
        let multiply = |a| {
            let mut out = vec![0.0; rows * 32];
            let product = PanelProduct {
                out: &mut out,
                out_row: 32,
                start: ProductStart::Row(&bias),
                rows,
                a,
                panel: &panel,
                width: 32,
            };
            product.run();
            out
        };
        assert_eq!(
            multiply(StridedRows::panels(&blocked, rows * PANEL)),
            multiply(StridedRows::matrix(&whole, blocks * PANEL))
        );
    }

    #[test]
    fn outer_products_are_sums_over_rows() {
        for (rows, width) in [(1, 8), (5, 16), (300, 32), (40, 136)] {
            let (x, d) = (numbers(1, rows * width), numbers(2, rows * PANEL));
            let mut out = numbers(3, width * PANEL);
            let expected: Vec<f64> = (0..width * PANEL)
                .map(|at| {
                    let term = |r: usize| {
                        f64::from(x[r * width + at / PANEL]) * f64::from(d[r * PANEL + at % PANEL])
                    };
                    f64::from(out[at]) + (0..rows).map(term).sum::<f64>()
                })
                .collect();
            run_wide_kernel(OuterProduct {
                out: &mut out,
                x: &x,
                width,
                d: &d,
            });
            assert_near(&out, &expected);
        }
    }

    #[test]
    fn products_do_not_depend_on_vector_width() {
        for rows in 1..20 {
            for (depth, width) in [(7, 16), (40, 32), (300, 32)] {
                let a = numbers(1, rows * depth);
                let panel = numbers(2, depth * width);
                let multiply = |is_wide| {
                    let mut out = numbers(3, rows * width);
                    let product = PanelProduct {
                        out: &mut out,
                        out_row: width,
                        start: ProductStart::Existing,
                        rows,
                        a: StridedRows::matrix(&a, depth),
                        panel: &panel,
                        width,
                    };
                    run_at_width(product, is_wide).map(|()| out)
                };
                assert_eq!(multiply(true), multiply(false), "{rows} {depth} {width}");
            }
        }
    }

    #[test]
    fn outer_products_do_not_depend_on_vector_width() {
        for (rows, width) in [(1, 8), (5, 16), (16, 24), (300, 32), (40, 136)] {
            let x = numbers(1, rows * width);
            let d = numbers(2, rows * PANEL);
            let multiply = |is_wide| {
                let mut out = numbers(3, width * PANEL);
                let product = OuterProduct {
                    out: &mut out,
                    x: &x,
                    width,
                    d: &d,
                };
                run_at_width(product, is_wide).map(|()| out)
            };
            assert_eq!(multiply(true), multiply(false), "{rows} {width}");
        }
    }
}
