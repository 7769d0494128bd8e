//! Columns and a number for each row → a random forest that predicts the number: what each column
//! does for it, and how much of the numbers it foretells on rows that its trees have not seen
//! (Breiman, Machine Learning 45, 2001).

use rand::Rng as _;
use rayon::prelude::*;

use super::solvers::matrix::ColumnMatrix;
use super::trees::bins::{BinnedColumn, bin_columns};
use super::trees::grow::{GrowSettings, GrownTree, SplitColumns, grow_tree};
use super::trees::histogram::SampledRow;
use super::trees::split::SplitRule;

/// How many trees there are.
const TREES: usize = 100;

/// A leaf has so many rows at least.
const LEAF_ROWS: f64 = 3.0;

/// What derivatives are multiples of. The numbers are scaled to -1..1 first, and no row is drawn so
/// often that this would not fit.
const UNIT: f64 = 1.0 / (1 << 20) as f64;

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
    let n = numbers.len();
    let f = columns.len();
    let nothing = RegressionImportances {
        shares: vec![0.0; f],
        r2: None,
    };
    let mean = numbers.iter().sum::<f64>() / n.max(1) as f64;
    let largest = numbers.iter().map(|number| (number - mean).abs());
    let largest = largest.fold(0.0, f64::max);
    if f == 0 || largest <= 0.0 || !largest.is_finite() {
        return nothing;
    }

    let scaled: Vec<f64> = numbers
        .iter()
        .map(|number| (number - mean) / largest)
        .collect();
    let matrix = ColumnMatrix {
        n,
        f,
        values: columns.concat(),
    };
    let binned = bin_columns(&matrix);
    let trees: Vec<BaggedTree> = (0..TREES)
        .into_par_iter()
        .map(|number| BaggedTree::grow(&binned, &scaled, seed, number as i64))
        .collect();

    RegressionImportances {
        shares: split_shares(&trees, f),
        r2: out_of_bag_r2(&trees, &matrix.to_rows(), f, &scaled),
    }
}

/// A tree, and how often each row was drawn for it, `[n]`.
struct BaggedTree {
    grown: GrownTree,
    draws: Vec<u32>,
}

impl BaggedTree {
    fn grow(columns: &[BinnedColumn], numbers: &[f64], seed: u64, number: i64) -> BaggedTree {
        let n = numbers.len();
        let mut generator = crate::seed::generator(seed, "regression rows", &[number]);
        let mut draws = vec![0_u32; n];
        for _ in 0..n {
            draws[generator.random_range(0..n)] += 1;
        }

        // Squared loss, seen from a prediction of 0: the best leaf is the mean.
        let mut rows = Vec::new();
        for (row, times) in draws.iter().enumerate() {
            if *times > 0 {
                let weight = f64::from(*times);
                rows.push(SampledRow::new(row, -weight * numbers[row], weight, UNIT));
            }
        }

        let settings = GrowSettings {
            max_depth: usize::MAX,
            rule: SplitRule {
                reg_lambda: 0.0,
                reg_alpha: 0.0,
                min_gain: 0.0,
                min_child_weight: LEAF_ROWS,
                unit: UNIT,
            },
            learning_rate: 1.0,
        };
        // As in scikit-learn, a split chooses from all columns.
        let places: Vec<usize> = (0..columns.len()).collect();
        BaggedTree {
            grown: grow_tree(&settings, columns, SplitColumns::Fixed(&places), rows),
            draws,
        }
    }
}

/// The share of each column in what the splits of all trees gained; each tree counts the same.
fn split_shares(trees: &[BaggedTree], f: usize) -> Vec<f64> {
    let mut shares = vec![0.0; f];
    for tree in trees {
        let gained: f64 = tree.grown.gains.iter().sum();
        if gained > 0.0 {
            for (share, gain) in shares.iter_mut().zip(&tree.grown.gains) {
                *share += gain / gained;
            }
        }
    }

    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
    }
    shares
}

/// R² of the mean of those trees that have not seen a row. `rows` is `[n, f]`.
fn out_of_bag_r2(trees: &[BaggedTree], rows: &[f64], f: usize, numbers: &[f64]) -> Option<f64> {
    let mut squares = 0.0;
    let mut errors = 0.0;
    for (at, (row, number)) in rows.chunks_exact(f).zip(numbers).enumerate() {
        let unseen = trees.iter().filter(|tree| tree.draws[at] == 0);
        let said: Vec<f64> = unseen
            .map(|tree| tree.grown.tree.score_row(|column| row[column]))
            .collect();
        if !said.is_empty() {
            let mean = said.iter().sum::<f64>() / said.len() as f64;
            errors += (number - mean) * (number - mean);
            squares += number * number;
        }
    }
    (squares > 0.0).then(|| 1.0 - errors / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of noise but for the first, `[f][n]`.
    fn columns(n: usize) -> Vec<Vec<f64>> {
        let mut generator = crate::seed::generator(7, "test", &[]);
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
