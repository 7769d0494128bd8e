//! The training set and the trait that all classification models share.

use anyhow::Result;

use super::importances::ColumnImportances;
use super::solvers::labels::ClassLabels;
use super::solvers::matrix::ColumnMatrix;
use super::solvers::stop::StopSignal;

/// Training rows of a classification model.
#[derive(Clone, Copy)]
pub(super) struct TrainingSet<'a> {
    /// Columns as the model sees them.
    pub(super) x: &'a ColumnMatrix,
    /// Class of each row.
    pub(super) labels: ClassLabels<'a>,
}

/// Inputs of a fit besides its rows and hyper-parameters.
#[derive(Clone, Copy)]
pub(super) struct FitRun<'a> {
    /// Seed of every random choice.
    pub(super) seed: u64,
    /// Signal that stops the fit early.
    pub(super) stop: StopSignal<'a>,
}

/// A fitted model of `k` classes over `f` columns.
pub(super) trait Classifier {
    /// Returns the probability of each class, row by row: `[n, k]`.
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64>;

    /// Returns the importance of each of the `f` columns, or `None` if the model cannot provide it.
    fn importances(&self, f: usize) -> Option<ColumnImportances>;

    /// Rejects a model that fitting never produces, but that a foreign file may contain.
    fn check(&self, f: usize, k: usize) -> Result<()>;
}
