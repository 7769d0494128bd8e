//! Kernel functions of two rows, and a cache for the rows of a kernel matrix.

use serde::{Deserialize, Serialize};

use super::matrix::dot_product;

/// Maximum size of a [`KernelCache`], in bytes: scikit-learn's default `cache_size`.
const CACHE_BYTES: usize = 200 << 20;

/// A kernel of support vector machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KernelFunction {
    /// Dot product.
    Linear,
    /// Radial basis function `exp(-gamma * |a - b|²)`.
    Rbf {
        /// Inverse width of the kernel, above 0.
        gamma: f64,
    },
}

impl KernelFunction {
    /// Computes the kernel of two rows `[f]`.
    pub(crate) fn evaluate(self, a: &[f64], b: &[f64]) -> f64 {
        self.combine_products(dot_product(a, b), dot_product(a, a), dot_product(b, b))
    }

    /// Like [`KernelFunction::evaluate`], but from the dot products of `a` with `b` and of each
    /// with itself: `|a - b|² = aa + bb - 2ab`.
    fn combine_products(self, ab: f64, aa: f64, bb: f64) -> f64 {
        match self {
            KernelFunction::Linear => ab,
            // Rounding can make the squared distance of two equal rows slightly negative.
            KernelFunction::Rbf { gamma } => (-gamma * (aa + bb - 2.0 * ab).max(0.0)).exp(),
        }
    }
}

/// A cache for rows of the kernel matrix of `n` rows. It computes a row on first use. When the
/// cache is full, it drops the least recently used row, and computes that row again if needed.
pub(crate) struct KernelCache<'a> {
    kernel: KernelFunction,
    /// Rows of the data, `[n, f]`.
    rows: &'a [f64],
    f: usize,
    /// Dot product of each row with itself, `[n]`.
    squares: Vec<f64>,
    /// Rows of the kernel matrix, `[n]` of `[n]`.
    cached: Vec<Option<Box<[f32]>>>,
    /// Value of `clock` at the last use of each row, `[n]`.
    last_used: Vec<u64>,
    clock: u64,
    /// Number of further rows that fit.
    free_rows: usize,
}

impl<'a> KernelCache<'a> {
    /// Creates an empty cache over `rows` `[n, f]`.
    pub(crate) fn new(kernel: KernelFunction, rows: &'a [f64], f: usize) -> KernelCache<'a> {
        let n = rows.len() / f;
        let squares = rows
            .chunks_exact(f)
            .map(|row| dot_product(row, row))
            .collect();

        KernelCache {
            kernel,
            rows,
            f,
            squares,
            cached: vec![None; n],
            last_used: vec![0; n],
            clock: 0,
            // Each step of SMO uses two rows at once, so two must fit.
            free_rows: (CACHE_BYTES / (4 * n).max(1)).max(2),
        }
    }

    /// Returns the kernel of row `i` with itself: an entry of the kernel matrix's diagonal.
    pub(crate) fn diagonal(&self, i: usize) -> f64 {
        let square = self.squares[i];
        self.kernel.combine_products(square, square, square)
    }

    /// Returns the kernel of row `i` with every row, `[n]`.
    pub(crate) fn row(&mut self, i: usize) -> &[f32] {
        self.clock += 1;
        self.last_used[i] = self.clock;
        if self.cached[i].is_none() {
            self.make_room();
            self.cached[i] = Some(self.compute_row(i));
        }
        self.cached[i].as_deref().unwrap_or_default()
    }

    /// Returns the rows `i` and `j` of the kernel matrix.
    pub(crate) fn two_rows(&mut self, i: usize, j: usize) -> (&[f32], &[f32]) {
        self.row(i);
        self.row(j);
        (
            self.cached[i].as_deref().unwrap_or_default(),
            self.cached[j].as_deref().unwrap_or_default(),
        )
    }

    /// Makes room for one row. If the cache is full, drops the least recently used row.
    fn make_room(&mut self) {
        if self.free_rows > 0 {
            self.free_rows -= 1;
            return;
        }

        let oldest = (0..self.cached.len())
            .filter(|i| self.cached[*i].is_some())
            .min_by_key(|i| self.last_used[*i]);
        if let Some(oldest) = oldest {
            self.cached[oldest] = None;
        }
    }

    fn compute_row(&self, i: usize) -> Box<[f32]> {
        let own = &self.rows[i * self.f..][..self.f];
        self.rows
            .chunks_exact(self.f)
            .zip(&self.squares)
            .map(|(row, square)| {
                let product = dot_product(own, row);
                self.kernel
                    .combine_products(product, self.squares[i], *square) as f32
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_cache_gives_the_same_rows() {
        let rows: Vec<f64> = (0..12).map(|at| f64::from(at * at % 7)).collect();
        for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.1 }] {
            let mut cache = KernelCache::new(kernel, &rows, 2);
            cache.free_rows = 2;
            for (i, j) in [(0, 1), (1, 2), (5, 0), (0, 5), (3, 3), (4, 5), (1, 0)] {
                let (row_i, row_j) = cache.two_rows(i, j);
                let direct = |i: usize, k: usize| {
                    kernel.evaluate(&rows[2 * i..][..2], &rows[2 * k..][..2]) as f32
                };
                assert!(
                    (0..6).all(|k| row_i[k] == direct(i, k) && row_j[k] == direct(j, k)),
                    "{i} {j}"
                );
                assert!(cache.cached.iter().flatten().count() <= 2);
            }
        }
    }
}
