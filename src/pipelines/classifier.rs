//! What every classical model learns from, and what it does once it is fitted.

use anyhow::Result;

use super::importances::ColumnImportances;
use super::solvers::labels::ClassLabels;
use super::solvers::matrix::ColumnMatrix;
use super::solvers::stop::StopSignal;

/// The rows that a model is fitted to.
#[derive(Clone, Copy)]
pub(super) struct TrainingSet<'a> {
    /// The columns as the model sees them.
    pub(super) x: &'a ColumnMatrix,
    /// The class of each row.
    pub(super) labels: ClassLabels<'a>,
}

/// What a fit depends on besides its rows and hyper-parameters.
#[derive(Clone, Copy)]
pub(super) struct FitRun<'a> {
    /// The seed of every random choice.
    pub(super) seed: u64,
    /// Ends the fit before its time.
    pub(super) stop: StopSignal<'a>,
}

/// A fitted model of `k` classes over `f` columns.
pub(super) trait Classifier {
    /// The probability of each class, row by row: `[n, k]`.
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64>;

    /// What the model makes of each of its `f` columns; none where that cannot be read off it.
    fn importances(&self, f: usize) -> Option<ColumnImportances>;

    /// Refuses what no fit leaves, but what a file from elsewhere may hold.
    fn check(&self, f: usize, k: usize) -> Result<()>;
}
