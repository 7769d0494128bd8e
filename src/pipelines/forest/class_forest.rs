//! Classification forests: the trees vote with the shares of the classes in their leaves.
//!
//! Two classes need one forest. More classes need one forest each, and their votes are scaled to
//! sum to one.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::grown_forest::{ForestKind, ForestRows, ForestSettings, grow_forest, shares_of_sum};
use crate::classifier::{Classifier, FitRun, TrainingSet};
use crate::importances::ColumnImportances;
use crate::solvers::labels::{output_classes, output_count};
use crate::solvers::matrix::{ColumnMatrix, add_scaled};
use crate::trees::bins::bin_columns;
use crate::trees::sampled_rows::DerivativeUnits;
use crate::trees::tree::DecisionTree;
use poolcast_base::output::counted;

/// Unit of derivatives, relative to the largest weight of a row. A row that is drawn 2,048 times
/// would not fit, but the draws stay far below that.
const WEIGHT_UNIT: f64 = 1.0 / (1 << 20) as f64;

/// A classification forest for each of `o` outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClassForest {
    /// Trees of each output, `[o][trees]`.
    forests: Vec<Vec<DecisionTree>>,
    /// Sum over the trees of each column's share of the split gain, `[f]`.
    gains: Vec<f64>,
}

impl ClassForest {
    /// Fits a forest for each output.
    pub(crate) fn fit(
        kind: ForestKind,
        settings: ForestSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<ClassForest> {
        let TrainingSet { x, labels } = training;
        let mut forest = ClassForest {
            forests: Vec::new(),
            gains: vec![0.0; x.f],
        };
        let columns = bin_columns(x);
        for class in output_classes(labels.class_count) {
            let numbers: Vec<f64> = labels.y.iter().map(|y| f64::from(*y == class)).collect();
            let rows = ForestRows {
                columns: &columns,
                numbers: &numbers,
                weights: labels.weights,
                units: DerivativeUnits::same(WEIGHT_UNIT * labels.largest_weight()),
                forest: i64::from(class),
            };
            let mut trees = Vec::with_capacity(settings.n_estimators);
            for grown in grow_forest(kind, settings, rows, run)? {
                add_scaled(&mut forest.gains, 1.0, &shares_of_sum(grown.gains));
                trees.push(grown.tree);
            }
            forest.forests.push(trees);
        }
        Ok(forest)
    }

    /// Computes the probability of each class for one row, `[classes]`.
    fn row_probabilities(&self, row: &[f64]) -> Vec<f64> {
        let votes: Vec<f64> = self
            .forests
            .iter()
            .map(|trees| mean_vote(trees, row))
            .collect();
        if let [p] = votes[..] {
            return vec![1.0 - p, p];
        }

        let sum: f64 = votes.iter().sum();
        if sum > 0.0 {
            votes.iter().map(|vote| vote / sum).collect()
        } else {
            // If no tree gives any class a share, all classes are equally likely.
            vec![1.0 / votes.len() as f64; votes.len()]
        }
    }
}

fn mean_vote(trees: &[DecisionTree], row: &[f64]) -> f64 {
    let sum: f64 = trees
        .iter()
        .map(|tree| tree.score_row(|column| row[column]))
        .sum();
    (sum / trees.len() as f64).clamp(0.0, 1.0)
}

/// Returns the importance of each column, `[f]`, in a random forest of `trees` trees with
/// scikit-learn's defaults: its `feature_importances_`, which sum to one.
pub(crate) fn forest_importances(
    trees: usize,
    training: TrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<Vec<f64>> {
    let settings = ForestSettings::with_defaults(trees);
    let forest = ClassForest::fit(ForestKind::Random, settings, training, run)?;
    Ok(shares_of_sum(forest.gains))
}

impl Classifier for ClassForest {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        x.to_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row_probabilities(row))
            .collect()
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            counted(self.gains.len(), "gain"),
            counted(f, "column")
        );
        ensure!(
            self.forests.len() == output_count(k),
            "{} for {k} classes",
            counted(self.forests.len(), "forest")
        );
        ensure!(
            self.forests.iter().all(|trees| !trees.is_empty()),
            "a forest has no trees"
        );
        self.forests
            .iter()
            .flatten()
            .try_for_each(|tree| tree.check(f))
    }
}
