//! A matrix of columns, and the sums over columns that the solvers share.

use anyhow::Result;
use candle_core::{Device, Tensor};

/// Number of columns up to which the products of all pairs are computed at once: beyond, they take too much memory.
pub(crate) const MAX_PAIRED_COLUMNS: usize = 1_000;

/// A matrix of `f` columns and `n` rows, stored one column after another.
#[derive(Debug, Clone)]
pub(crate) struct ColumnMatrix {
    /// Number of rows.
    pub(crate) n: usize,
    /// Number of columns.
    pub(crate) f: usize,
    /// Values, `[f, n]`.
    pub(crate) values: Vec<f64>,
}

impl ColumnMatrix {
    /// Returns one column, `[n]`.
    pub(crate) fn column(&self, place: usize) -> &[f64] {
        &self.values[place * self.n..][..self.n]
    }

    /// Returns the same values row by row, `[n, f]`.
    pub(crate) fn to_rows(&self) -> Vec<f64> {
        let mut rows = vec![0.0; self.values.len()];
        for (place, column) in self.values.chunks_exact(self.n.max(1)).enumerate() {
            for (row, value) in column.iter().enumerate() {
                rows[row * self.f + place] = *value;
            }
        }
        rows
    }
}

/// Computes the dot product in eight partial sums, which a processor adds in parallel. The order of
/// the additions is fixed, so the result has the same bits everywhere.
pub(crate) fn dot_product(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let a = a.chunks_exact(8);
    let b = b.chunks_exact(8);
    let rest: f64 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();

    for (a, b) in a.zip(b) {
        (0..8).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + rest
}

/// Returns `to` minus `from`.
pub(crate) fn difference(to: &[f64], from: &[f64]) -> Vec<f64> {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}

/// Adds `factor` times `x` to `sum`, like BLAS's `axpy`.
pub(crate) fn add_scaled(sum: &mut [f64], factor: f64, x: &[f64]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

/// Returns the sums over the rows of the products of all pairs of columns, each multiplied by the row's factor, `[f, f]`.
pub(crate) fn products_of_columns(x: &ColumnMatrix, factors: Option<&[f64]>) -> Result<Vec<f64>> {
    let columns = Tensor::from_slice(&x.values, (x.f, x.n), &Device::Cpu)?;
    let scaled = match factors {
        Some(factors) => {
            columns.broadcast_mul(&Tensor::from_slice(factors, (1, x.n), &Device::Cpu)?)?
        }
        None => columns.clone(),
    };
    Ok(columns.matmul(&scaled.t()?)?.flatten_all()?.to_vec1()?)
}
