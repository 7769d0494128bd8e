//! Solves symmetric linear systems by a Cholesky factorisation.

use super::matrix::{add_scaled, dot_product};

/// Remainder of a diagonal entry, relative to the entry, up to which its row depends on the rows before it.
const DEPENDENCE_TOLERANCE: f64 = 1e-12;

/// The Cholesky factor of a symmetric, positive semidefinite matrix.
pub(super) struct CholeskyFactor {
    /// The factor in the lower triangle, `[n, n]`. The row of the factor is 0 for a row of the matrix that depends on
    /// the rows before it.
    factor: Vec<f64>,
    n: usize,
}

impl CholeskyFactor {
    /// Factorises `matrix` `[n, n]`; only its lower triangle is read. The method is the row by row form of Golub and
    /// Van Loan, "Matrix computations", 4th edition, 4.2.
    pub(super) fn new(mut matrix: Vec<f64>, n: usize) -> CholeskyFactor {
        for row in 0..n {
            let (above, own) = matrix.split_at_mut(row * n);
            let own = &mut own[..=row];
            for column in 0..row {
                let other = &above[column * n..][..=column];
                own[column] = if other[column] == 0.0 {
                    0.0
                } else {
                    let sum = dot_product(&own[..column], &other[..column]);
                    (own[column] - sum) / other[column]
                };
            }

            let rest = own[row] - dot_product(&own[..row], &own[..row]);
            if rest > DEPENDENCE_TOLERANCE * own[row] {
                own[row] = rest.sqrt();
            } else {
                own.fill(0.0);
            }
        }
        CholeskyFactor { factor: matrix, n }
    }

    /// Returns the `x` `[n]` for which the matrix times `x` is `target` `[n]`. The entry of a dependent row is 0.
    pub(super) fn solve(&self, target: &[f64]) -> Vec<f64> {
        // Forwards with the lower triangle.
        let mut x = target.to_vec();
        for row in 0..self.n {
            let (factors, pivot) = self.row(row);
            x[row] = if pivot == 0.0 {
                0.0
            } else {
                (x[row] - dot_product(factors, &x[..row])) / pivot
            };
        }

        // Backwards with its transpose.
        for row in (0..self.n).rev() {
            let (factors, pivot) = self.row(row);
            if pivot != 0.0 {
                x[row] /= pivot;
                let solved = x[row];
                add_scaled(&mut x[..row], -solved, factors);
            }
        }
        x
    }

    /// Returns a row of the factor before its diagonal, and its diagonal.
    fn row(&self, row: usize) -> (&[f64], f64) {
        let values = &self.factor[row * self.n..][..=row];
        (&values[..row], values[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    /// Returns the products of all pairs of `rows`, `[n, n]`.
    fn products(rows: &[Vec<f64>]) -> Vec<f64> {
        let pairs = rows
            .iter()
            .flat_map(|a| rows.iter().map(move |b| dot_product(a, b)));
        pairs.collect()
    }

    #[test]
    fn dependent_rows_get_0() {
        // The third row is the sum of the others.
        let rows = [
            vec![1.0, 2.0, 0.0],
            vec![0.0, 1.0, 1.0],
            vec![1.0, 3.0, 1.0],
        ];
        let matrix = products(&rows);
        let target = [5.0, 2.0, 7.0];
        let x = CholeskyFactor::new(matrix.clone(), target.len()).solve(&target);
        assert_eq!(x[2], 0.0);
        for (row, target) in matrix.chunks_exact(3).zip(target) {
            assert!((dot_product(row, &x) - target).abs() < 1e-9, "{x:?}");
        }
        assert_eq!(CholeskyFactor::new(vec![0.0], 1).solve(&[1.0]), [0.0]);
    }

    #[test]
    fn product_with_the_solution_is_the_target() {
        let mut generator = poolcast_base::seed::generator(1, "cholesky", &[]);
        let mut random = |count: usize| -> Vec<f64> {
            (0..count)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect()
        };
        for n in 1..20 {
            let rows: Vec<Vec<f64>> = (0..n).map(|_| random(n + 1)).collect();
            let mut matrix = products(&rows);
            (0..n).for_each(|at| matrix[at * n + at] += 0.1);
            let target = random(n);
            let x = CholeskyFactor::new(matrix.clone(), target.len()).solve(&target);
            for (row, target) in matrix.chunks_exact(n).zip(&target) {
                assert!((dot_product(row, &x) - target).abs() < 1e-9, "{n} rows");
            }
        }
    }
}
