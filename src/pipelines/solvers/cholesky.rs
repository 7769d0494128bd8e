//! Solves symmetric linear systems by a Cholesky factorisation.

use super::matrix::dot_product;

/// Remainder of a diagonal entry, relative to the entry, up to which its row depends on the rows before it.
const DEPENDENCE_TOLERANCE: f64 = 1e-12;

/// Returns the `x` `[n]` for which `matrix` `[n, n]` times `x` is `target` `[n]`. The matrix must be symmetric and
/// positive semidefinite, and is overwritten. The entry of a row that depends on the rows before it is 0.
///
/// The method is the row by row form of Golub and Van Loan, "Matrix computations", 4th edition, 4.2.
pub(super) fn solve_symmetric(matrix: &mut [f64], target: &[f64]) -> Vec<f64> {
    let n = target.len();
    factorise(matrix, n);
    let is_dependent = |row: usize, matrix: &[f64]| matrix[row * n + row] == 0.0;

    // Forwards with the lower triangle.
    let mut x = target.to_vec();
    for row in 0..n {
        x[row] = if is_dependent(row, matrix) {
            0.0
        } else {
            let factors = &matrix[row * n..][..row];
            (x[row] - dot_product(factors, &x[..row])) / matrix[row * n + row]
        };
    }

    // Backwards with its transpose.
    for row in (0..n).rev() {
        if is_dependent(row, matrix) {
            x[row] = 0.0;
            continue;
        }
        x[row] /= matrix[row * n + row];
        let solved = x[row];
        for (x, factor) in x[..row].iter_mut().zip(&matrix[row * n..]) {
            *x -= solved * factor;
        }
    }
    x
}

/// Overwrites the lower triangle of `matrix` `[n, n]` with its Cholesky factor. The row of the factor is 0 for a row
/// that depends on the rows before it.
fn factorise(matrix: &mut [f64], n: usize) {
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
        let x = solve_symmetric(&mut matrix.clone(), &target);
        assert_eq!(x[2], 0.0);
        for (row, target) in matrix.chunks_exact(3).zip(target) {
            assert!((dot_product(row, &x) - target).abs() < 1e-9, "{x:?}");
        }
        assert_eq!(solve_symmetric(&mut [0.0], &[1.0]), [0.0]);
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
            let x = solve_symmetric(&mut matrix.clone(), &target);
            for (row, target) in matrix.chunks_exact(n).zip(&target) {
                assert!((dot_product(row, &x) - target).abs() < 1e-9, "{n} rows");
            }
        }
    }
}
