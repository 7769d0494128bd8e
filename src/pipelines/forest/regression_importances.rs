//! Importances of columns for a number, from a random forest, and the forest's R² on rows that its
//! trees did not draw.

use super::grown_forest::{ForestKind, ForestSettings, MaxFeatures, draw_counts, shares_of_sum};
use super::number_forest::grow_on_numbers;
use crate::classifier::FitRun;
use crate::regressor::NumberTrainingSet;
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::{ColumnMatrix, add_scaled};
use crate::solvers::stop::StopSignal;
use crate::trees::grow::GrownTree;
use poolcast_tables::NumberLoss;

/// Settings of the forest. As in scikit-learn, a split chooses from all columns.
const FOREST: ForestSettings = ForestSettings {
    n_estimators: 100,
    max_depth: None,
    min_samples_leaf: 3,
    max_features: MaxFeatures::Share(1.0),
};

/// Importances of the columns in a regression forest, and the quality of its predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionImportances {
    /// Share of each column in the gain of all splits, `[f]`; all 0 if no split gained anything.
    pub shares: Vec<f64>,
    /// R² on out-of-bag rows: 1 is perfect, 0 is no better than the mean. `None` if the numbers do
    /// not differ, or if no row is out of bag.
    pub r2: Option<f64>,
}

/// Grows a forest over `columns` `[f][n]` that predicts the finite `numbers` `[n]`. NaN marks a
/// missing value in a column.
pub fn regression_importances(
    columns: &[Vec<f64>],
    numbers: &[f64],
    seed: u64,
) -> RegressionImportances {
    let f = columns.len();
    let nothing = RegressionImportances {
        shares: vec![0.0; f],
        r2: None,
    };
    let differ = numbers.iter().any(|number| *number != numbers[0]);
    if f == 0 || !differ {
        return nothing;
    }

    let x = ColumnMatrix {
        n: numbers.len(),
        f,
        values: columns.concat(),
    };
    let labels = NumberLabels {
        y: numbers,
        weights: &vec![1.0; numbers.len()],
        loss: NumberLoss::Squared,
    };
    let run = FitRun {
        seed,
        stop: StopSignal::new(&|| false),
    };
    let training = NumberTrainingSet { x: &x, labels };
    match grow_on_numbers(ForestKind::Random, FOREST, training, run) {
        Ok(trees) => RegressionImportances {
            shares: split_shares(&trees, f),
            r2: out_of_bag_r2(&trees, &x, labels, seed),
        },
        // Growing fails only if it is stopped, and this stop signal never stops it.
        Err(_) => nothing,
    }
}

/// Returns the share of each column in the gain of all splits. Each tree has the same weight.
fn split_shares(trees: &[GrownTree], f: usize) -> Vec<f64> {
    let mut shares = vec![0.0; f];
    for tree in trees {
        add_scaled(&mut shares, 1.0, &shares_of_sum(tree.gains.clone()));
    }
    shares_of_sum(shares)
}

/// Computes R² for out-of-bag rows: each row is predicted by the trees that did not draw it.
fn out_of_bag_r2(
    trees: &[GrownTree],
    x: &ColumnMatrix,
    labels: NumberLabels<'_>,
    seed: u64,
) -> Option<f64> {
    // For each row, the sum of the predictions of the trees that did not draw it, and the number of
    // these trees.
    let mut said = vec![0.0; x.n];
    let mut counts = vec![0_u32; x.n];
    let rows = x.to_rows();
    for (number, grown) in trees.iter().enumerate() {
        let draws = draw_counts(x.n, seed, 0, number);
        for (at, row) in rows.chunks_exact(x.f).enumerate() {
            if draws[at] == 0 {
                said[at] += grown.tree.score_row(|column| row[column]);
                counts[at] += 1;
            }
        }
    }

    let mean = labels.mean();
    let mut squares = 0.0;
    let mut errors = 0.0;
    for (at, number) in labels.y.iter().enumerate() {
        if counts[at] > 0 {
            errors += (number - said[at] / f64::from(counts[at])).powi(2);
            squares += (number - mean).powi(2);
        }
    }
    (squares > 0.0).then(|| 1.0 - errors / squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    /// Returns three columns of random values, `[f][n]`.
    fn columns(n: usize) -> Vec<Vec<f64>> {
        let mut generator = poolcast_base::seed::generator(7, "test", &[]);
        let mut column = || (0..n).map(|_| generator.random::<f64>()).collect();
        vec![column(), column(), column()]
    }

    #[test]
    fn deciding_column_is_found_among_noise() {
        let columns = columns(200);
        let numbers: Vec<f64> = columns[0].iter().map(|x| 5.0 * x * x).collect();
        let found = regression_importances(&columns, &numbers, 1);
        assert!(found.shares[0] > 0.9, "{found:?}");
        assert!((found.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(found.r2.expect("known") > 0.8, "{found:?}");
        assert_eq!(found, regression_importances(&columns, &numbers, 1));
    }

    #[test]
    fn noise_predicts_nothing() {
        let mut columns = columns(100);
        let numbers = columns.pop().expect("a column");
        let found = regression_importances(&columns, &numbers, 1);
        assert!(found.r2.expect("known") < 0.2, "{found:?}");
    }

    #[test]
    fn constant_data_has_no_importances() {
        for (columns, numbers) in [
            (vec![vec![1.0, f64::NAN, 3.0]], vec![2.0; 3]),
            (vec![vec![1.0; 3]], vec![1.0, 2.0, 3.0]),
            (Vec::new(), vec![1.0, 2.0]),
            (vec![Vec::new()], Vec::new()),
        ] {
            let found = regression_importances(&columns, &numbers, 1);
            assert_eq!(found.shares, vec![0.0; columns.len()]);
        }
    }
}
