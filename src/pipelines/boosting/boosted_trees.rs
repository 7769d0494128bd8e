//! Stored boosted trees, and their predictions.

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::classifier::Classifier;
use crate::importances::ColumnImportances;
use crate::regressor::Regressor;
use crate::solvers::labels::output_count;
use crate::solvers::logits::softmax_in_place;
use crate::solvers::matrix::{ColumnMatrix, add_scaled};
use crate::trees::grow::GrownTree;
use crate::trees::tree::DecisionTree;
use poolcast_base::output::counted;
use poolcast_base::stats::stable_sigmoid;

/// Rows per parallel scoring task.
const ROWS_PER_TASK: usize = 1024;

/// Boosted trees with `o` outputs: one for numbers and for two classes, otherwise one per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BoostedTrees {
    /// Scores before the first tree, `[o]`: xgboost's `base_score`. For classes they are logits.
    base: Vec<f64>,
    /// Trees by round, and by output within a round.
    trees: Vec<DecisionTree>,
    /// Total gain of the splits at each column, `[f]`.
    gains: Vec<f64>,
}

impl BoostedTrees {
    /// Creates an ensemble over `f` columns that has no trees yet.
    pub(super) fn new(base: Vec<f64>, f: usize) -> BoostedTrees {
        BoostedTrees {
            base,
            trees: Vec::new(),
            gains: vec![0.0; f],
        }
    }

    /// Appends the next tree and adds its gains.
    pub(super) fn push(&mut self, grown: GrownTree) {
        add_scaled(&mut self.gains, 1.0, &grown.gains);
        self.trees.push(grown.tree);
    }

    /// Computes the scores of every row, `[n, o]`.
    fn scores(&self, x: &ColumnMatrix) -> Vec<f64> {
        x.to_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row_scores(row))
            .collect()
    }

    /// Computes the scores of one row, `[o]`.
    fn row_scores(&self, row: &[f64]) -> Vec<f64> {
        let outputs = self.base.len();
        let mut scores = self.base.clone();
        for (at, tree) in self.trees.iter().enumerate() {
            scores[at % outputs] += tree.score_row(|column| row[column]);
        }
        scores
    }

    /// Rejects an ensemble without one tree per output and round, or one that does not have `f`
    /// columns.
    fn check_shape(&self, f: usize, outputs: usize) -> Result<()> {
        ensure!(
            self.trees.len().is_multiple_of(outputs),
            "a round does not have one tree for each of {}",
            counted(outputs, "output")
        );
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            counted(self.gains.len(), "gain"),
            counted(f, "column")
        );
        self.trees.iter().try_for_each(|tree| tree.check(f))
    }
}

/// Adds the tree's score of each row of `x` to the score of `output`. `scores` is `[n, outputs]`.
pub(super) fn add_scores(
    scores: &mut [f64],
    tree: &DecisionTree,
    x: &ColumnMatrix,
    output: usize,
    outputs: usize,
) {
    let chunks = scores.par_chunks_mut(ROWS_PER_TASK * outputs);
    chunks.enumerate().for_each(|(chunk, scores)| {
        let of_output = scores.iter_mut().skip(output).step_by(outputs);
        for (at, score) in of_output.enumerate() {
            let row = chunk * ROWS_PER_TASK + at;
            *score += tree.score_row(|column| x.values[column * x.n + row]);
        }
    });
}

/// Returns the probability of each output's class, `[n, o]`, from logits `[n, o]`.
pub(super) fn output_probabilities(logits: &[f64], outputs: usize) -> Vec<f64> {
    let mut values = logits.to_vec();
    if outputs == 1 {
        values
            .iter_mut()
            .for_each(|value| *value = stable_sigmoid(*value));
    } else {
        values.chunks_exact_mut(outputs).for_each(softmax_in_place);
    }
    values
}

impl Classifier for BoostedTrees {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        let outputs = self.base.len();
        let values = output_probabilities(&self.scores(x), outputs);
        if outputs == 1 {
            values.iter().flat_map(|p| [1.0 - p, *p]).collect()
        } else {
            values
        }
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = output_count(k);
        ensure!(
            self.base.len() == outputs,
            "{} for {k} classes",
            counted(self.base.len(), "output")
        );
        self.check_shape(f, outputs)
    }
}

impl Regressor for BoostedTrees {
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64> {
        self.scores(x)
    }

    fn importances(&self) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize) -> Result<()> {
        ensure!(
            self.base.len() == 1,
            "{} for a number",
            counted(self.base.len(), "output")
        );
        self.check_shape(f, 1)
    }
}
