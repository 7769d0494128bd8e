//! The training set and the trait that all regression models share.

use anyhow::Result;

use super::importances::ColumnImportances;
use super::solvers::labels::NumberLabels;
use super::solvers::matrix::ColumnMatrix;

/// Training rows of a regression model.
#[derive(Clone, Copy)]
pub(super) struct NumberTrainingSet<'a> {
    /// Columns as the model sees them.
    pub(super) x: &'a ColumnMatrix,
    /// Number of each row.
    pub(super) labels: NumberLabels<'a>,
}

/// A fitted model of a number over `f` columns.
pub(super) trait Regressor {
    /// Predicts the number of each row, `[n]`.
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64>;

    /// Returns the importance of each column, or `None` if the model cannot provide it.
    fn importances(&self) -> Option<ColumnImportances>;

    /// Rejects a model that fitting never produces, but that a foreign file may contain.
    fn check(&self, f: usize) -> Result<()>;
}
