//! Linear regression with an L1, L2 or elastic net penalty: the mean of a number.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::importances::ColumnImportances;
use super::regressor::{NumberTrainingSet, Regressor};
use super::solvers::labels::NumberLabels;
use super::solvers::least_squares::linear_coefficients;
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::solvers::objective::ElasticNetPenalty;
use super::solvers::stop::StopSignal;
use poolcast_base::output::counted;

/// A fitted linear regression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LinearRegression {
    /// Weights, `[f]`.
    weights: Vec<f64>,
    intercept: f64,
}

impl LinearRegression {
    /// Fits the weights that minimise the squared errors under `penalty`.
    pub(super) fn fit(
        penalty: ElasticNetPenalty,
        training: NumberTrainingSet<'_>,
        stop: StopSignal<'_>,
    ) -> Result<LinearRegression> {
        let NumberTrainingSet { x, labels } = training;
        let weights = linear_coefficients(x, labels, penalty, stop)?;
        // The intercept has no penalty, so that the mean prediction is the mean number.
        let mean_of = |values| {
            NumberLabels {
                y: values,
                ..labels
            }
            .mean()
        };
        let intercept = (0..x.f).fold(labels.mean(), |intercept, place| {
            intercept - weights[place] * mean_of(x.column(place))
        });
        Ok(LinearRegression { weights, intercept })
    }
}

impl Regressor for LinearRegression {
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64> {
        let mut numbers = vec![self.intercept; x.n];
        for (place, weight) in self.weights.iter().enumerate() {
            add_scaled(&mut numbers, *weight, x.column(place));
        }
        numbers
    }

    fn importances(&self) -> Option<ColumnImportances> {
        let f = self.weights.len();
        Some(ColumnImportances::from_coefficients(&self.weights, f))
    }

    fn check(&self, f: usize) -> Result<()> {
        ensure!(
            self.weights.len() == f,
            "{} for {}",
            counted(self.weights.len(), "weight"),
            counted(f, "column")
        );
        let mut numbers = self.weights.iter().chain([&self.intercept]);
        ensure!(
            numbers.all(|number| number.is_finite()),
            "a weight is not finite"
        );
        Ok(())
    }
}
