//! Regression forests: predict the mean over the trees' leaves, or a quantile of the numbers in
//! them.
//!
//! The trees learn with squared loss in both cases.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::grown_forest::{ForestKind, ForestRows, ForestSettings, grow_forest, shares_of_sum};
use super::quantile_leaves::QuantileLeaves;
use crate::classifier::FitRun;
use crate::importances::ColumnImportances;
use crate::regressor::{NumberTrainingSet, Regressor};
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::{ColumnMatrix, add_scaled};
use crate::trees::bins::bin_columns;
use crate::trees::grow::GrownTree;
use crate::trees::sampled_rows::DerivativeUnits;
use crate::trees::tree::DecisionTree;
use poolcast_base::output::counted;
use poolcast_base::parallel::map_numbers;
use poolcast_tables::NumberLoss;

/// Unit of derivatives, relative to the largest derivative of a row. A row that is drawn 32 times
/// would not fit; the probability of that is below 1e-35.
const DERIVATIVE_UNIT: f64 = 1.0 / (1 << 26) as f64;

/// A forest that predicts a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberForest {
    trees: Vec<DecisionTree>,
    /// Sum over the trees of each column's share of the split gain, `[f]`.
    gains: Vec<f64>,
    /// Training rows by leaf, to predict a quantile; `None` if the mean is predicted.
    quantile_leaves: Option<QuantileLeaves>,
}

impl NumberForest {
    /// Fits the trees. To predict a quantile, it also keeps the rows in their leaves.
    pub(crate) fn fit(
        kind: ForestKind,
        settings: ForestSettings,
        training: NumberTrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<NumberForest> {
        let mut forest = NumberForest {
            trees: Vec::with_capacity(settings.n_estimators),
            gains: vec![0.0; training.x.f],
            quantile_leaves: None,
        };
        for grown in grow_on_numbers(kind, settings, training, run)? {
            add_scaled(&mut forest.gains, 1.0, &shares_of_sum(grown.gains));
            forest.trees.push(grown.tree);
        }

        if let NumberLoss::Pinball { quantile } = training.labels.loss {
            let NumberTrainingSet { x, labels } = training;
            let leaves = QuantileLeaves::new(&forest.trees, x, labels, quantile);
            forest.quantile_leaves = Some(leaves);
        }
        Ok(forest)
    }

    fn predict_row(&self, row: &[f64]) -> f64 {
        let value_in = |column: usize| row[column];
        match &self.quantile_leaves {
            Some(leaves) => {
                leaves.predict(self.trees.iter().map(|tree| tree.leaf_of_row(value_in)))
            }
            None => {
                let said = self.trees.iter().map(|tree| tree.score_row(value_in));
                said.sum::<f64>() / self.trees.len() as f64
            }
        }
    }
}

/// Grows trees whose leaves are the means of the numbers of their rows.
pub(super) fn grow_on_numbers(
    kind: ForestKind,
    settings: ForestSettings,
    training: NumberTrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<Vec<GrownTree>> {
    let NumberTrainingSet { x, labels } = training;
    // Derivatives are stored as multiples of a unit, so small ones lose precision. The unit depends
    // on the largest derivative, which is smallest for numbers centred on their mean.
    let mean = labels.mean();
    let centred: Vec<f64> = labels.y.iter().map(|number| number - mean).collect();
    let rows = ForestRows {
        columns: &bin_columns(x),
        numbers: &centred,
        weights: labels.weights,
        units: derivative_units(labels, &centred),
        forest: 0,
    };

    let mut trees = grow_forest(kind, settings, rows, run)?;
    for grown in &mut trees {
        grown.tree.change_leaves(|_, value| mean + value);
    }
    Ok(trees)
}

fn derivative_units(labels: NumberLabels<'_>, centred: &[f64]) -> DerivativeUnits {
    let gradients = centred.iter().zip(labels.weights);
    let largest = gradients.fold(0.0, |most: f64, (number, weight)| {
        most.max((number * weight).abs())
    });
    DerivativeUnits {
        // If all numbers are equal, any unit works.
        gradient: DERIVATIVE_UNIT * if largest > 0.0 { largest } else { 1.0 },
        hessian: DERIVATIVE_UNIT * labels.largest_weight(),
    }
}

/// Like [`super::forest_importances`], but for numbers.
pub(crate) fn number_forest_importances(
    trees: usize,
    training: NumberTrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<Vec<f64>> {
    let settings = ForestSettings::with_defaults(trees);
    let mut gains = vec![0.0; training.x.f];
    for grown in grow_on_numbers(ForestKind::Random, settings, training, run)? {
        add_scaled(&mut gains, 1.0, &shares_of_sum(grown.gains));
    }
    Ok(shares_of_sum(gains))
}

impl Regressor for NumberForest {
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64> {
        let rows = x.to_rows();
        map_numbers(x.n, |row| self.predict_row(&rows[row * x.f..][..x.f]))
    }

    fn importances(&self) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize) -> Result<()> {
        ensure!(!self.trees.is_empty(), "a forest has no trees");
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            counted(self.gains.len(), "gain"),
            counted(f, "column")
        );
        self.trees.iter().try_for_each(|tree| tree.check(f))?;
        match &self.quantile_leaves {
            Some(leaves) => leaves.check(&self.trees),
            None => Ok(()),
        }
    }
}
