//! Columns and a number for each row → what each column does for a random forest that predicts the
//! number, and how much of the numbers it foretells on rows that its trees have not seen.

use super::grown_forest::{ForestKind, ForestSettings, MaxFeatures, draw_counts, shares_of_sum};
use super::number_forest::grow_on_numbers;
use crate::classifier::FitRun;
use crate::regressor::NumberTrainingSet;
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::{ColumnMatrix, add_scaled};
use crate::solvers::stop::StopSignal;
use crate::trees::grow::GrownTree;
use poolcast_tables::NumberLoss;

/// The forest: as in scikit-learn, a split chooses from all columns.
const FOREST: ForestSettings = ForestSettings {
    n_estimators: 100,
    max_depth: None,
    min_samples_leaf: 3,
    max_features: MaxFeatures::Share(1.0),
};

/// What a forest makes of its columns.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionImportances {
    /// The share of each column in what all splits gained, `[f]`; all 0 where no split gained
    /// anything.
    pub shares: Vec<f64>,
    /// R² on rows out of the bag: 1 is all, 0 is no better than the mean. `None` where the numbers do
    /// not differ, or where no row was left out.
    pub r2: Option<f64>,
}

/// Grows a forest over `columns` `[f][n]`, where NaN is missing, that predicts `numbers` `[n]`, which
/// are finite.
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
        // Growing fails only where it is stopped, which nobody asks for here.
        Err(_) => nothing,
    }
}

/// The share of each column in what the splits of all trees gained; each tree counts the same.
fn split_shares(trees: &[GrownTree], f: usize) -> Vec<f64> {
    let mut shares = vec![0.0; f];
    for tree in trees {
        add_scaled(&mut shares, 1.0, &shares_of_sum(tree.gains.clone()));
    }
    shares_of_sum(shares)
}

/// R² of the mean of those trees that have not seen a row.
fn out_of_bag_r2(
    trees: &[GrownTree],
    x: &ColumnMatrix,
    labels: NumberLabels<'_>,
    seed: u64,
) -> Option<f64> {
    // Of each row, the sum of what trees say that have not seen it, and how many these are.
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

    /// Columns of noise but for the first, `[f][n]`.
    fn columns(n: usize) -> Vec<Vec<f64>> {
        let mut generator = poolcast_base::seed::generator(7, "test", &[]);
        let mut column = || (0..n).map(|_| generator.random::<f64>()).collect();
        vec![column(), column(), column()]
    }

    #[test]
    fn the_column_that_decides_is_found_among_noise() {
        let columns = columns(200);
        let numbers: Vec<f64> = columns[0].iter().map(|x| 5.0 * x * x).collect();
        let found = regression_importances(&columns, &numbers, 1);
        assert!(found.shares[0] > 0.9, "{found:?}");
        assert!((found.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(found.r2.expect("known") > 0.8, "{found:?}");
        assert_eq!(found, regression_importances(&columns, &numbers, 1));
    }

    #[test]
    fn of_noise_nothing_is_foretold() {
        let mut columns = columns(100);
        let numbers = columns.pop().expect("a column");
        let found = regression_importances(&columns, &numbers, 1);
        assert!(found.r2.expect("known") < 0.2, "{found:?}");
    }

    #[test]
    fn without_a_difference_nothing_is_important() {
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
