//! What every model of numbers learns from, and what it does once it is fitted.

use anyhow::Result;

use super::importances::ColumnImportances;
use super::solvers::labels::NumberLabels;
use super::solvers::matrix::ColumnMatrix;

/// The rows that a model of numbers is fitted to.
#[derive(Clone, Copy)]
pub(super) struct NumberTrainingSet<'a> {
    /// The columns as the model sees them.
    pub(super) x: &'a ColumnMatrix,
    /// The number of each row.
    pub(super) labels: NumberLabels<'a>,
}

/// A fitted model of a number over `f` columns.
pub(super) trait Regressor {
    /// The number of each row, `[n]`.
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64>;

    /// What the model makes of each of its columns; none where that cannot be read off it.
    fn importances(&self) -> Option<ColumnImportances>;

    /// Refuses what no fit leaves, but what a file from elsewhere may hold.
    fn check(&self, f: usize) -> Result<()>;
}
