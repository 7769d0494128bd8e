//! Columns of numbers, and the sums over them that the solvers share.

/// A matrix of `f` columns and `n` rows, stored one column after another.
#[derive(Debug, Clone)]
pub(crate) struct ColumnMatrix {
    /// How many rows there are.
    pub(crate) n: usize,
    /// How many columns there are.
    pub(crate) f: usize,
    /// The numbers, `[f, n]`.
    pub(crate) values: Vec<f64>,
}

impl ColumnMatrix {
    /// One column, `[n]`.
    pub(crate) fn column(&self, place: usize) -> &[f64] {
        &self.values[place * self.n..][..self.n]
    }

    /// The same numbers row by row, `[n, f]`.
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

/// The dot product, in eight partial sums that a processor adds side by side. The order of the
/// additions is fixed, so the result has the same bits everywhere.
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

/// Adds `factor` times `x` to `sum`: BLAS calls it `axpy`.
pub(crate) fn add_scaled(sum: &mut [f64], factor: f64, x: &[f64]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += factor * x;
    }
}
