//! Linear regression with an L1, L2 or elastic net penalty: columns and numbers → coefficients.
//!
//! The fit minimises `C / 2 * sum of weighted squared errors + r |b|_1 + (1 - r) / 2 * |b|²`, where `r`
//! is the share of the L1 penalty, without a penalty on the intercept. This is scikit-learn's `Lasso` and
//! `ElasticNet` with `alpha = 1 / (C * n)`, and its `Ridge` with `alpha = 1 / C`. Without an L1 penalty, the
//! normal equations are solved; with one, coordinate descent finds the minimum (Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear
//! models via coordinate descent", Journal of Statistical Software 33(1), 2010).

use anyhow::Result;

use super::cholesky::CholeskyFactor;
use super::labels::NumberLabels;
use super::matrix::{
    ColumnMatrix, MAX_PAIRED_COLUMNS, add_scaled, dot_product, products_of_columns,
};
use super::objective::ElasticNetPenalty;
use super::stop::StopSignal;

/// Maximum number of sweeps over the columns.
const MAX_SWEEPS: usize = 10_000;
/// Gain of a sweep, relative to the first sweep, at which the descent stops.
const GAIN_TOLERANCE: f64 = 1e-10;

/// Returns the coefficients of the columns of `x`, `[f]`.
pub(crate) fn linear_coefficients(
    x: &ColumnMatrix,
    labels: NumberLabels<'_>,
    penalty: ElasticNetPenalty,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let mut descent = LinearDescent::new(x, labels, penalty);
    // With more columns than rows, the descent is faster.
    if penalty.l1_ratio == 0.0 && x.f <= x.n.min(MAX_PAIRED_COLUMNS) {
        return descent.solve();
    }
    let enough = GAIN_TOLERANCE * descent.sweep();
    for _ in 1..MAX_SWEEPS {
        stop.check()?;
        if descent.sweep() <= enough {
            break;
        }
    }
    Ok(descent.coefficients)
}

/// State of the coordinate descent. With centred columns, the intercept is the mean of the numbers,
/// and needs no step.
struct LinearDescent {
    /// Centred columns. Each row is multiplied by the square root of `C` times its weight.
    x: ColumnMatrix,
    /// Sum of squares of each column, `[f]`.
    squares: Vec<f64>,
    /// Residuals of the numbers, centred and multiplied like `x`, `[n]`.
    residuals: Vec<f64>,
    /// Current coefficients, `[f]`.
    coefficients: Vec<f64>,
    /// Factors of `|b|_1` and of `|b|² / 2`.
    l1: f64,
    l2: f64,
}

impl LinearDescent {
    fn new(
        x: &ColumnMatrix,
        labels: NumberLabels<'_>,
        penalty: ElasticNetPenalty,
    ) -> LinearDescent {
        let factors: Vec<f64> = labels
            .weights
            .iter()
            .map(|weight| (penalty.c * weight).sqrt())
            .collect();
        let add_column = |to: &mut Vec<f64>, values: &[f64]| {
            let mean = NumberLabels {
                y: values,
                ..labels
            }
            .mean();
            to.extend(
                values
                    .iter()
                    .zip(&factors)
                    .map(|(value, factor)| (value - mean) * factor),
            );
        };
        let mut scaled = Vec::with_capacity(x.values.len());
        (0..x.f).for_each(|place| add_column(&mut scaled, x.column(place)));
        let mut residuals = Vec::with_capacity(x.n);
        add_column(&mut residuals, labels.y);
        let x = ColumnMatrix {
            n: x.n,
            f: x.f,
            values: scaled,
        };
        let columns = (0..x.f).map(|place| x.column(place));
        LinearDescent {
            squares: columns.map(|column| dot_product(column, column)).collect(),
            residuals,
            coefficients: vec![0.0; x.f],
            l1: penalty.l1_ratio,
            l2: 1.0 - penalty.l1_ratio,
            x,
        }
    }

    /// Solves for the coefficients with an L2 penalty alone, `[f]`.
    fn solve(&self) -> Result<Vec<f64>> {
        let mut products = products_of_columns(&self.x, None)?;
        for place in 0..self.x.f {
            products[place * self.x.f + place] += self.l2;
        }
        let columns = (0..self.x.f).map(|place| self.x.column(place));
        let target: Vec<f64> = columns
            .map(|column| dot_product(column, &self.residuals))
            .collect();
        Ok(CholeskyFactor::new(products, self.x.f).solve(&target))
    }

    /// Minimises along each coefficient in turn; returns twice the largest gain.
    fn sweep(&mut self) -> f64 {
        let places = 0..self.x.f;
        places
            .map(|place| self.minimise_coefficient(place))
            .fold(0.0, f64::max)
    }

    /// Moves one coefficient to its minimum; returns twice the gain.
    fn minimise_coefficient(&mut self, place: usize) -> f64 {
        let square = self.squares[place];
        // The objective does not depend on the coefficient of a constant column.
        if square <= f64::MIN_POSITIVE {
            return 0.0;
        }

        // Soft thresholding, because of the L1 penalty.
        let column = self.x.column(place);
        let before = self.coefficients[place];
        let target = square * before + dot_product(column, &self.residuals);
        let curvature = square + self.l2;
        let after = target.signum() * (target.abs() - self.l1).max(0.0) / curvature;
        if after != before {
            add_scaled(&mut self.residuals, before - after, column);
            self.coefficients[place] = after;
        }
        curvature * (after - before).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_tables::NumberLoss;

    /// Expected values: scikit-learn 1.9.1's `Lasso(alpha=1 / (5 * 6), tol=1e-14)`, `ElasticNet` with the same and
    /// `l1_ratio=0.25`, and `Ridge(alpha=1 / 5)`, on the same numbers.
    #[test]
    fn coefficients_match_scikit_learn() {
        let columns = [
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            [2.0, 1.0, 4.0, 3.0, 6.0, 5.0],
            [0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
            [3.0; 6],
        ];
        let x = ColumnMatrix {
            n: 6,
            f: 4,
            values: columns.concat(),
        };
        let labels = NumberLabels {
            y: &[1.5, 3.0, 2.5, 5.5, 4.0, 7.0],
            weights: &[1.0; 6],
            loss: NumberLoss::Squared,
        };
        let stop = StopSignal::new(&|| false);
        for (l1_ratio, expected) in EXPECTED {
            let penalty = ElasticNetPenalty { c: 5.0, l1_ratio };
            let found = linear_coefficients(&x, labels, penalty, stop).expect("fitted");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{found}, and not {expected}"
                );
            }

            let weighted = NumberLabels {
                weights: &[2.0; 6],
                ..labels
            };
            let half = ElasticNetPenalty { c: 2.5, l1_ratio };
            let twice = linear_coefficients(&x, weighted, half, stop).expect("fitted");
            assert_eq!(twice, found, "a weight of two is twice the rows");
        }
    }

    const EXPECTED: [(f64, [f64; 4]); 3] = [
        (1.0, [1.589_583_333_333, -0.777_083_333_333, -0.475, 0.0]),
        (
            0.25,
            [
                1.578_957_762_473,
                -0.770_248_586_734,
                -0.528_089_887_640,
                0.0,
            ],
        ),
        (
            0.0,
            [
                1.575_601_708_075,
                -0.768_148_291_925,
                -0.543_478_260_870,
                0.0,
            ],
        ),
    ];
}
