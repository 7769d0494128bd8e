//! Columns → the directions in which the rows differ most from zero: a truncated singular value decomposition.
//!
//! The range of the matrix is found by random directions and power iterations (Halko, Martinsson and Tropp, SIAM Review 53(2),
//! 2011), as scikit-learn's `TruncatedSVD(algorithm="randomized")`; where it has few rows or columns it is exact.

use anyhow::{Context as _, Result};
use candle_core::{Device, Tensor};
use rand::Rng as _;
use smartcore::linalg::basic::arrays::Array as _;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::linalg::traits::evd::EVDDecomposable as _;

use super::matrix::{Matrix, add, dot};
use super::stop::{Stop, ask};

/// Random directions beyond those that are asked for, and iterations: more than scikit-learn's defaults, 10 and 5.
const SPARE: usize = 10;
const ITERATIONS: usize = 7;

/// The first `k` right singular vectors of `x`, the largest singular value first, `[k, f]`; fewer where `x` has fewer rows
/// or columns. Of each the entry of largest size is above 0.
pub(super) fn components(x: &Matrix, k: usize, seed: u64, stop: Stop<'_>) -> Result<Vec<Vec<f64>>> {
    let (n, f) = (x.n, x.f);
    let wanted = k.min(n).min(f);
    let directions = (wanted + SPARE).min(n).min(f);
    let columns = Tensor::from_slice(&x.x, (f, n), &Device::Cpu)?;
    let mut generator = crate::seed::generator(seed, "singular vectors", &[]);
    let random: Vec<f64> = (0..directions * f)
        .map(|_| generator.random_range(-1.0..1.0))
        .collect();
    let mut rows = Tensor::from_vec(random, (directions, f), &Device::Cpu)?;
    for _ in 0..ITERATIONS {
        ask(stop)?;
        let over_rows = orthonormal(&rows.matmul(&columns)?)?;
        rows = orthonormal(&over_rows.matmul(&columns.t()?)?)?;
    }
    let over_rows = orthonormal(&rows.matmul(&columns)?)?;
    ask(stop)?;

    // What is left is small: directions by columns.
    let small = over_rows.matmul(&columns.t()?)?;
    let squares = small.matmul(&small.t()?)?.to_vec2::<f64>()?;
    let found = DenseMatrix::from_2d_vec(&squares)?.evd(true)?;
    let mut order: Vec<usize> = (0..directions).collect();
    order.sort_by(|a, b| found.d[*b].total_cmp(&found.d[*a]));
    let small = small.to_vec2::<f64>()?;
    let component = |at: &usize| {
        let mut component = vec![0.0; f];
        small
            .iter()
            .enumerate()
            .for_each(|(row, values)| add(&mut component, *found.V.get((row, *at)), values));
        directed(&component)
    };
    Ok(order.iter().take(wanted).map(component).collect())
}

/// Of length one, its entry of largest size above 0; one without length stays as it is.
fn directed(vector: &[f64]) -> Vec<f64> {
    let length = dot(vector, vector).sqrt();
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

/// The same space by rows of length one that stand at right angles: by Gram and Schmidt, twice, as once leaves what rounding
/// did. A row that adds nothing becomes 0.
fn orthonormal(rows: &Tensor) -> Result<Tensor> {
    let shape = rows.dims2()?;
    let mut done: Vec<Vec<f64>> = Vec::with_capacity(shape.0);
    for mut row in rows.to_vec2::<f64>()? {
        let before = dot(&row, &row).sqrt();
        for _ in 0..2 {
            done.iter().for_each(|other| {
                let share = dot(&row, other);
                add(&mut row, -share, other);
            });
        }
        let length = dot(&row, &row).sqrt();
        let factor = if length > 1e-13 * before {
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

    /// `rank` directions of sizes 100, 50, 25 ... `[f, n]`, and the directions over the columns.
    fn known(n: usize, f: usize, rank: usize) -> (Matrix, Vec<Vec<f64>>) {
        let mut generator = crate::seed::generator(3, "known", &[]);
        let mut random = |rows: usize, of: usize| {
            let values: Vec<f64> = (0..rows * of)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect();
            let rows = Tensor::from_vec(values, (rows, of), &Device::Cpu).expect("a tensor");
            orthonormal(&rows)
                .expect("orthonormal")
                .to_vec2::<f64>()
                .expect("rows")
        };
        let (left, right) = (random(rank, n), random(rank, f));
        let mut x = vec![0.0; f * n];
        for at in 0..rank {
            let size = 100.0 / f64::from(1 << at);
            for (column, loading) in x.chunks_exact_mut(n).zip(&right[at]) {
                add(column, size * loading, &left[at]);
            }
        }
        (Matrix { n, f, x }, right)
    }

    #[test]
    fn the_directions_that_made_the_columns_are_found() {
        for (n, f) in [(40, 9), (9, 40), (60, 80)] {
            let (x, right) = known(n, f, 5);
            let found = components(&x, 4, 1, &|| false).expect("found");
            assert_eq!(found.len(), 4);
            for (found, known) in found.iter().zip(&right) {
                assert!(
                    (dot(found, known).abs() - 1.0).abs() < 1e-9,
                    "{n} x {f}: {}",
                    dot(found, known)
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
    fn there_are_no_more_than_rows_or_columns() {
        let (x, _) = known(6, 4, 2);
        let found = components(&x, 100, 1, &|| false).expect("found");
        assert_eq!(found.len(), 4);
        assert!(found.iter().flatten().all(|value| value.is_finite()));
    }
}
