//! Boosting on the squared or the pinball loss: columns and numbers → boosted trees.
//!
//! The losses are xgboost's `reg:squarederror` and `reg:quantileerror`. The gradient of a pinball
//! loss only depends on the sign of a row's error, so it does not determine the value of a leaf.
//! After a tree has grown, each leaf is therefore set to the quantile of its rows' residuals.

use anyhow::Result;

use super::boosted_trees::{BoostedTrees, add_scores};
use super::rounds::{BoostingSettings, DERIVATIVE_UNIT, RoundGrower, RoundSample, RowDerivatives};
use crate::classifier::FitRun;
use crate::regressor::NumberTrainingSet;
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::ColumnMatrix;
use crate::trees::sampled_rows::DerivativeUnits;
use crate::trees::tree::DecisionTree;
use poolcast_base::parallel::map_items;
use poolcast_base::stats::{WeightedNumber, weighted_quantile};
use poolcast_tables::NumberLoss;

/// Fits the rounds in turn, each on the gradient that the previous rounds leave. NaN marks a
/// missing value.
pub(crate) fn fit_numbers(
    settings: &BoostingSettings,
    training: NumberTrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<BoostedTrees> {
    let NumberTrainingSet { x, labels } = training;
    let grower = RoundGrower::new(settings, x);
    let base = base_number(labels);

    let mut scores = vec![base; x.n];
    let mut boosted = BoostedTrees::new(vec![base], x.f);
    for round in 0..settings.n_estimators {
        run.stop.check()?;
        let sample = grower.sample_round(run.seed, round);
        let derivatives = |row: usize| loss_derivatives(labels, row, scores[row]);
        let units = derivative_units(labels, &sample, derivatives);
        let mut grown = grower.grow_tree(&sample, units, derivatives);

        // Gradients of a pinball loss do not determine the leaves, so set these from the residuals.
        if let NumberLoss::Pinball { quantile } = labels.loss {
            let residual = LeafResiduals::new(&grown.tree, x, labels, &sample, &scores);
            residual.refit_leaves(&mut grown.tree, quantile, settings.learning_rate);
        }
        add_scores(&mut scores, &grown.tree, x, 0, 1);
        boosted.push(grown);
    }
    Ok(boosted)
}

/// Returns the constant prediction with the smallest loss.
pub(crate) fn base_number(labels: NumberLabels<'_>) -> f64 {
    match labels.loss {
        NumberLoss::Squared => labels.mean(),
        NumberLoss::Pinball { quantile } => {
            let rows = labels.y.iter().zip(labels.weights);
            let rows = rows.map(|(value, weight)| WeightedNumber {
                value: *value,
                weight: *weight,
            });
            weighted_quantile(&mut rows.collect::<Vec<_>>(), quantile)
        }
    }
}

/// Returns the derivatives of the loss of a row whose score is `score`. The second derivative of a
/// pinball loss is 0. As in xgboost, the row's weight replaces it.
fn loss_derivatives(labels: NumberLabels<'_>, row: usize, score: f64) -> RowDerivatives {
    let weight = labels.weights[row];
    let slope = match labels.loss {
        NumberLoss::Squared => score - labels.y[row],
        NumberLoss::Pinball { quantile } => f64::from(score >= labels.y[row]) - quantile,
    };
    RowDerivatives {
        gradient: weight * slope,
        hessian: weight,
    }
}

/// Returns the units of the derivatives of a round, chosen so that the largest derivatives fit.
fn derivative_units(
    labels: NumberLabels<'_>,
    sample: &RoundSample,
    derivatives_of: impl Fn(usize) -> RowDerivatives,
) -> DerivativeUnits {
    let gradients = sample.rows.iter().map(|row| derivatives_of(*row).gradient);
    let largest = gradients.fold(0.0, |most: f64, gradient| most.max(gradient.abs()));
    DerivativeUnits {
        // If all gradients are 0, any unit works.
        gradient: DERIVATIVE_UNIT * if largest > 0.0 { largest } else { 1.0 },
        hessian: DERIVATIVE_UNIT * labels.largest_weight(),
    }
}

/// Residuals of the rows of a round, grouped by leaf.
struct LeafResiduals {
    /// Leaf and residual of each row of the round, by ascending leaf.
    rows: Vec<(usize, WeightedNumber)>,
}

impl LeafResiduals {
    fn new(
        tree: &DecisionTree,
        x: &ColumnMatrix,
        labels: NumberLabels<'_>,
        sample: &RoundSample,
        scores: &[f64],
    ) -> LeafResiduals {
        let of_row = |row: &usize| {
            let leaf = tree.leaf_of_row(|column| x.values[column * x.n + row]);
            let residual = WeightedNumber {
                value: labels.y[*row] - scores[*row],
                weight: labels.weights[*row],
            };
            (leaf, residual)
        };
        let mut rows: Vec<(usize, WeightedNumber)> = map_items(&sample.rows, of_row);
        rows.sort_by_key(|(leaf, _)| *leaf);
        LeafResiduals { rows }
    }

    /// Sets each leaf to the quantile of its rows' residuals, times the learning rate.
    fn refit_leaves(self, tree: &mut DecisionTree, quantile: f64, learning_rate: f64) {
        let mut values = vec![0.0; tree.node_count()];
        for leaf_rows in self.rows.chunk_by(|a, b| a.0 == b.0) {
            let mut residual: Vec<WeightedNumber> = leaf_rows.iter().map(|(_, row)| *row).collect();
            values[leaf_rows[0].0] = learning_rate * weighted_quantile(&mut residual, quantile);
        }
        tree.change_leaves(|place, _| values[place]);
    }
}
