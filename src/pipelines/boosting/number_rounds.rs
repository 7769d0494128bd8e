//! Columns and numbers → rounds of boosting on the squared or the pinball loss.
//!
//! They are xgboost's `reg:squarederror` and `reg:quantileerror`. The gradient of a pinball loss says
//! only on which side of the number a row is, so that a leaf of it does not follow from gradients:
//! once a tree has grown, each leaf becomes the quantile of what its rows still lack.

use anyhow::Result;
use rayon::prelude::*;

use super::boosted_trees::{BoostedTrees, add_scores};
use super::rounds::{BoostingSettings, DERIVATIVE_UNIT, RoundGrower, RoundSample, RowDerivatives};
use crate::classifier::FitRun;
use crate::regressor::NumberTrainingSet;
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::ColumnMatrix;
use crate::statistics::{WeightedNumber, weighted_quantile};
use crate::trees::histogram::DerivativeUnits;
use crate::trees::tree::DecisionTree;
use poolcast_tables::NumberLoss;

/// Fits round after round, each on the gradient that the rounds before it leave. What is missing is
/// NaN.
pub(in crate) fn fit_numbers(
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

        if let NumberLoss::Pinball { quantile } = labels.loss {
            let lacking = LackingRows::new(&grown.tree, x, labels, &sample, &scores);
            lacking.refit_leaves(&mut grown.tree, quantile, settings.learning_rate);
        }
        add_scores(&mut scores, &grown.tree, x, 0, 1);
        boosted.push(grown);
    }
    Ok(boosted)
}

/// The one number that has the least loss.
pub(in crate) fn base_number(labels: NumberLabels<'_>) -> f64 {
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

/// The derivatives of the loss of a row whose score is `score`. The second one of a pinball loss is
/// 0, and xgboost takes the row's weight in its place.
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

/// What the derivatives of a round are multiples of, so that the largest of each fits.
fn derivative_units(
    labels: NumberLabels<'_>,
    sample: &RoundSample,
    derivatives_of: impl Fn(usize) -> RowDerivatives,
) -> DerivativeUnits {
    let gradients = sample.rows.iter().map(|row| derivatives_of(*row).gradient);
    let largest = gradients.fold(0.0, |most: f64, gradient| most.max(gradient.abs()));
    DerivativeUnits {
        // Where nothing is left to learn, any unit does.
        gradient: DERIVATIVE_UNIT * if largest > 0.0 { largest } else { 1.0 },
        hessian: DERIVATIVE_UNIT * labels.largest_weight(),
    }
}

/// What the rows of a round lack to their numbers, leaf by leaf.
struct LackingRows {
    /// The leaf of each row of the round, and what the row lacks; leaves ascend.
    rows: Vec<(usize, WeightedNumber)>,
}

impl LackingRows {
    fn new(
        tree: &DecisionTree,
        x: &ColumnMatrix,
        labels: NumberLabels<'_>,
        sample: &RoundSample,
        scores: &[f64],
    ) -> LackingRows {
        let of_row = |row: &usize| {
            let leaf = tree.leaf_of_row(|column| x.values[column * x.n + row]);
            let lacking = WeightedNumber {
                value: labels.y[*row] - scores[*row],
                weight: labels.weights[*row],
            };
            (leaf, lacking)
        };
        let mut rows: Vec<(usize, WeightedNumber)> = sample.rows.par_iter().map(of_row).collect();
        rows.sort_by_key(|(leaf, _)| *leaf);
        LackingRows { rows }
    }

    /// Makes each leaf the quantile of what its rows lack, times the learning rate.
    fn refit_leaves(self, tree: &mut DecisionTree, quantile: f64, learning_rate: f64) {
        let mut values = vec![0.0; tree.node_count()];
        for of_leaf in self.rows.chunk_by(|a, b| a.0 == b.0) {
            let mut lacking: Vec<WeightedNumber> = of_leaf.iter().map(|(_, row)| *row).collect();
            values[of_leaf[0].0] = learning_rate * weighted_quantile(&mut lacking, quantile);
        }
        tree.change_leaves(|place, _| values[place]);
    }
}
