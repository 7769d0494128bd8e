//! Truncated singular value decomposition: columns → the directions in which the rows differ most
//! from zero.
//!
//! Random directions and power iterations find the range of the matrix (Halko, Martinsson and
//! Tropp, "Finding structure with randomness", SIAM Review 53(2), 2011), as in scikit-learn's
//! `TruncatedSVD(algorithm="randomized")`. For a matrix with few rows or columns, the result is
//! exact.

use anyhow::{Context as _, Result};
use candle_core::{Device, Tensor};
use rand::Rng as _;

use super::matrix::{ColumnMatrix, add_scaled, dot_product};
use super::stop::StopSignal;

/// Number of random directions beyond the requested ones: scikit-learn's `n_oversamples`, by
/// default 10.
const OVERSAMPLES: usize = 10;
/// Number of power iterations: scikit-learn's `n_iter`, by default 5.
const POWER_ITERATIONS: usize = 7;
/// Largest cosine, by absolute value, of two rows that count as orthogonal.
const ORTHOGONAL_COSINE: f64 = 1e-14;
/// Maximum number of sweeps over all pairs of rows. About ten are enough for any matrix.
const MAX_SWEEPS: usize = 60;
/// Relative length of a remainder, up to which a row counts as dependent on the previous rows.
const DEPENDENCE_TOLERANCE: f64 = 1e-13;

/// Returns the first `k` right singular vectors of `x`, `[k, f]`, the largest singular value first.
/// There are fewer if `x` has fewer rows or columns. In each vector, the entry with the largest
/// absolute value is positive.
pub(crate) fn singular_vectors(
    x: &ColumnMatrix,
    k: usize,
    seed: u64,
    stop: StopSignal<'_>,
) -> Result<Vec<Vec<f64>>> {
    let wanted = k.min(x.n).min(x.f);
    let directions = (wanted + OVERSAMPLES).min(x.n).min(x.f);
    let columns = Tensor::from_slice(&x.values, (x.f, x.n), &Device::Cpu)?;
    let basis = range_basis(&columns, directions, seed, stop)?;
    stop.check()?;

    // In this basis the matrix is small, directions by columns. After its rows have been rotated
    // until they are orthogonal, they are its right singular vectors times its singular values.
    let mut rows = basis.matmul(&columns.t()?)?.to_vec2::<f64>()?;
    orthogonalise_rows(&mut rows, stop)?;
    rows.sort_by(|a, b| dot_product(b, b).total_cmp(&dot_product(a, a)));
    rows.truncate(wanted);
    Ok(rows.iter().map(|row| normalised(row)).collect())
}

/// Rotates pairs of rows until each row is orthogonal to all others: Hestenes' one-sided Jacobi
/// method (Golub and Van Loan, "Matrix computations", 4th edition, 8.6.3).
fn orthogonalise_rows(rows: &mut [Vec<f64>], stop: StopSignal<'_>) -> Result<()> {
    for _ in 0..MAX_SWEEPS {
        stop.check()?;
        let mut has_turned = false;
        for second in 1..rows.len() {
            let (before, rest) = rows.split_at_mut(second);
            for first in before {
                has_turned |= rotate_pair(first, &mut rest[0]);
            }
        }
        if !has_turned {
            break;
        }
    }
    Ok(())
}

/// Rotates two rows in their plane until they are orthogonal; returns false if they already are.
fn rotate_pair(first: &mut [f64], second: &mut [f64]) -> bool {
    let (squares_first, squares_second) = (dot_product(first, first), dot_product(second, second));
    let product = dot_product(first, second);
    if product.abs() <= ORTHOGONAL_COSINE * (squares_first * squares_second).sqrt() {
        return false;
    }

    // The smaller of the two angles that make the rows orthogonal.
    let cotangent_of_double = (squares_second - squares_first) / (2.0 * product);
    let size = cotangent_of_double.abs();
    let tangent = cotangent_of_double.signum() / (size + size.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = cosine * tangent;
    for (first, second) in first.iter_mut().zip(second) {
        let turned = cosine * *first - sine * *second;
        *second = sine * *first + cosine * *second;
        *first = turned;
    }
    true
}

/// Returns an orthonormal basis `[directions, n]` of approximately the space that the columns
/// `[f, n]` span: the paper's algorithm 4.4, which makes the basis orthonormal after every product.
fn range_basis(
    columns: &Tensor,
    directions: usize,
    seed: u64,
    stop: StopSignal<'_>,
) -> Result<Tensor> {
    let f = columns.dim(0)?;
    let mut generator = poolcast_base::seed::generator(seed, "singular vectors", &[]);
    let random: Vec<f64> = (0..directions * f)
        .map(|_| generator.random_range(-1.0..1.0))
        .collect();
    let mut over_columns = Tensor::from_vec(random, (directions, f), &Device::Cpu)?;

    for _ in 0..POWER_ITERATIONS {
        stop.check()?;
        let over_rows = orthonormal_rows(&over_columns.matmul(columns)?)?;
        over_columns = orthonormal_rows(&over_rows.matmul(&columns.t()?)?)?;
    }
    orthonormal_rows(&over_columns.matmul(columns)?)
}

/// Scales the vector to length one, and makes its entry with the largest absolute value positive.
/// This fixes the sign, which a singular vector leaves open. A vector of length 0 stays as it is.
fn normalised(vector: &[f64]) -> Vec<f64> {
    let length = dot_product(vector, vector).sqrt();
    let largest = vector.iter().fold(
        0.0,
        |most: f64, next| if next.abs() > most.abs() { *next } else { most },
    );
    let factor = if length > 0.0 {
        largest.signum() / length
    } else {
        0.0
    };
    vector.iter().map(|value| factor * value).collect()
}

/// Returns orthonormal rows that span the same space, by the modified Gram-Schmidt process. Each
/// row is processed twice, because one pass leaves rounding errors ("twice is enough": Giraud,
/// Langou and Rozložník, 2005). A row that adds nothing becomes 0.
fn orthonormal_rows(rows: &Tensor) -> Result<Tensor> {
    let shape = rows.dims2()?;
    let mut done: Vec<Vec<f64>> = Vec::with_capacity(shape.0);
    for mut row in rows.to_vec2::<f64>()? {
        let length_before = dot_product(&row, &row).sqrt();
        for _ in 0..2 {
            for other in &done {
                let share = dot_product(&row, other);
                add_scaled(&mut row, -share, other);
            }
        }

        let length = dot_product(&row, &row).sqrt();
        let factor = if length > DEPENDENCE_TOLERANCE * length_before {
            1.0 / length
        } else {
            0.0
        };
        row.iter_mut().for_each(|value| *value *= factor);
        done.push(row);
    }
    Tensor::from_vec(done.concat(), shape, &Device::Cpu).context("rows of one length")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a matrix `[f, n]` of `rank` directions with the sizes 100, 50, 25 ..., and the
    /// directions over the columns.
    fn known(n: usize, f: usize, rank: usize) -> (ColumnMatrix, Vec<Vec<f64>>) {
        let mut generator = poolcast_base::seed::generator(3, "known", &[]);
        let mut random = |rows: usize, of: usize| {
            let values: Vec<f64> = (0..rows * of)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect();
            let rows = Tensor::from_vec(values, (rows, of), &Device::Cpu).expect("a tensor");
            orthonormal_rows(&rows)
                .expect("orthonormal")
                .to_vec2::<f64>()
                .expect("rows")
        };
        let (left, right) = (random(rank, n), random(rank, f));
        let mut x = vec![0.0; f * n];
        for at in 0..rank {
            let size = 100.0 / f64::from(1 << at);
            for (column, loading) in x.chunks_exact_mut(n).zip(&right[at]) {
                add_scaled(column, size * loading, &left[at]);
            }
        }
        (ColumnMatrix { n, f, values: x }, right)
    }

    #[test]
    fn known_directions_are_recovered() {
        for (n, f) in [(40, 9), (9, 40), (60, 80)] {
            let (x, right) = known(n, f, 5);
            let found = singular_vectors(&x, 4, 1, StopSignal::new(&|| false)).expect("found");
            assert_eq!(found.len(), 4);
            for (found, known) in found.iter().zip(&right) {
                assert!(
                    (dot_product(found, known).abs() - 1.0).abs() < 1e-9,
                    "{n} x {f}: {}",
                    dot_product(found, known)
                );
                assert!(
                    found
                        .iter()
                        .fold(0.0, |most: f64, v| if v.abs() > most.abs() {
                            *v
                        } else {
                            most
                        })
                        > 0.0
                );
            }
        }
    }

    #[test]
    fn vector_count_is_limited_by_rows_and_columns() {
        let (x, _) = known(6, 4, 2);
        let found = singular_vectors(&x, 100, 1, StopSignal::new(&|| false)).expect("found");
        assert_eq!(found.len(), 4);
        assert!(found.iter().flatten().all(|value| value.is_finite()));
    }
}
