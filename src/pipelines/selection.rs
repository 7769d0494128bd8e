//! Feature selection: columns and classes or numbers → the columns worth keeping.

use anyhow::Result;
use serde::Deserialize;

use super::classifier::{FitRun, TrainingSet};
use super::forest::{forest_importances, number_forest_importances};
use super::logistic::LogisticRegression;
use super::regressor::NumberTrainingSet;
use super::scaler::{ColumnScaling, ScalerKind};
use super::solvers::labels::{NumberLabels, TrainingTargets};
use super::solvers::least_squares;
use super::solvers::matrix::ColumnMatrix;
use super::solvers::objective::ElasticNetPenalty;
use super::solvers::stop::StopSignal;
use super::statistics::MeanSpread;

/// Method of choosing the columns that a model sees.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "selection", rename_all = "lowercase")]
pub(super) enum FeatureSelection {
    /// All columns.
    None,
    /// Columns that are not 0 everywhere, after small values have become 0.
    Threshold {
        /// Threshold. Values with a smaller absolute value become 0.
        #[serde(rename = "selection_threshold")]
        limit: f64,
        #[serde(rename = "selection_mode")]
        mode: ThresholdMode,
    },
    /// Columns with a coefficient in a regression with an L1 penalty: logistic for classes, linear
    /// for numbers.
    Lasso {
        /// Weight of the losses relative to the penalty.
        #[serde(rename = "selection_C")]
        c: f64,
        /// Exclusive lower limit of an absolute coefficient.
        #[serde(rename = "selection_min_coefficient")]
        min_coefficient: f64,
    },
    /// Columns that are important in a random forest.
    Forest {
        /// Number of trees in the forest.
        #[serde(rename = "selection_n_estimators")]
        trees: usize,
        /// Exclusive lower limit of an importance.
        #[serde(rename = "selection_min_importance")]
        min_importance: f64,
    },
    /// All columns, as the components of a truncated singular value decomposition.
    Svd {
        /// Number of components.
        #[serde(rename = "selection_n_components")]
        components: usize,
    },
}

/// Effect of a threshold on the values that are large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ThresholdMode {
    /// Values stay as they are.
    Hard,
    /// Values move towards 0 by the threshold.
    Soft,
}

/// Rows for the selection of columns.
#[derive(Clone, Copy)]
pub(super) struct SelectionRows<'a> {
    /// All columns, without missing values.
    pub(super) x: &'a ColumnMatrix,
    /// Target of each row.
    pub(super) targets: TrainingTargets<'a>,
}

/// Returns the indices of the columns that `selection` keeps, ascending. The caller has already
/// applied the threshold to the values. Components use all columns.
pub(super) fn select_columns(
    selection: FeatureSelection,
    rows: SelectionRows<'_>,
    run: FitRun<'_>,
) -> Result<Vec<usize>> {
    let x = rows.x;
    Ok(match selection {
        FeatureSelection::None | FeatureSelection::Svd { .. } => (0..x.f).collect(),
        FeatureSelection::Threshold { .. } => (0..x.f)
            .filter(|place| x.column(*place).iter().any(|value| *value != 0.0))
            .collect(),
        FeatureSelection::Lasso { c, min_coefficient } => {
            let coefficients = match rows.targets {
                TrainingTargets::Classes(labels) => {
                    lasso_coefficients(c, TrainingSet { x, labels }, run.stop)?
                }
                TrainingTargets::Numbers(labels) => {
                    let training = NumberTrainingSet { x, labels };
                    number_lasso_coefficients(c, training, run.stop)?
                }
            };
            indices_above(&coefficients, min_coefficient)
        }
        FeatureSelection::Forest {
            trees,
            min_importance,
        } => {
            let importances = match rows.targets {
                TrainingTargets::Classes(labels) => {
                    forest_importances(trees, TrainingSet { x, labels }, run)?
                }
                TrainingTargets::Numbers(labels) => {
                    number_forest_importances(trees, NumberTrainingSet { x, labels }, run)?
                }
            };
            indices_above(&importances, min_importance)
        }
    })
}

fn indices_above(values: &[f64], least: f64) -> Vec<usize> {
    (0..values.len())
        .filter(|place| values[*place] > least)
        .collect()
}

/// Returns the largest absolute coefficient of each column, `[f]`, over the logits of a logistic
/// regression on columns with standard deviation 1.
fn lasso_coefficients(c: f64, training: TrainingSet<'_>, stop: StopSignal<'_>) -> Result<Vec<f64>> {
    let scaled = with_unit_deviation(training.x);
    let penalty = ElasticNetPenalty { c, l1_ratio: 1.0 };
    let on_scaled = TrainingSet {
        x: &scaled,
        ..training
    };
    let fitted = LogisticRegression::fit(penalty, on_scaled, stop)?;

    let mut largest = vec![0.0_f64; scaled.f];
    for of_output in fitted.weights.chunks_exact(scaled.f) {
        for (largest, weight) in largest.iter_mut().zip(of_output) {
            *largest = largest.max(weight.abs());
        }
    }
    Ok(largest)
}

/// Returns the absolute coefficient of each column, `[f]`, in a linear regression. Numbers and
/// columns have standard deviation 1.
fn number_lasso_coefficients(
    c: f64,
    training: NumberTrainingSet<'_>,
    stop: StopSignal<'_>,
) -> Result<Vec<f64>> {
    let labels = training.labels;
    let ColumnScaling { shift, scale } = ScalerKind::Standard.learn(labels.y);
    let scaled: Vec<f64> = labels.y.iter().map(|y| (y - shift) / scale).collect();
    let labels = NumberLabels {
        y: &scaled,
        ..labels
    };
    let penalty = ElasticNetPenalty { c, l1_ratio: 1.0 };
    let x = with_unit_deviation(training.x);
    let found = least_squares::linear_coefficients(&x, labels, penalty, stop)?;
    Ok(found.into_iter().map(f64::abs).collect())
}

/// Divides the columns by their standard deviations. Constant columns become 0.
fn with_unit_deviation(x: &ColumnMatrix) -> ColumnMatrix {
    let mut values = Vec::with_capacity(x.values.len());
    for column in (0..x.f).map(|place| x.column(place)) {
        let deviation = MeanSpread::new(column).standard_deviation();
        values.extend(column.iter().map(|value| {
            if deviation > 0.0 {
                value / deviation
            } else {
                0.0
            }
        }));
    }
    ColumnMatrix {
        n: x.n,
        f: x.f,
        values,
    }
}
