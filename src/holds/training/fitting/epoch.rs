//! Epochs of a training: their scores, and the file `history.jsonl` with one epoch per line.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::training::runs::HISTORY_FILE;
use crate::training::scoring::RollingPredictions;
use crate::training::scoring::best_f_measure;
use poolcast_base::manifest;
use poolcast_base::stats::{Scores, mean_cross_entropy};
use poolcast_config::MetricName;

/// One epoch of a training's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean cross-entropy over the training samples, weighted by `pos_weight`: the value that the
    /// training minimises. Each sample is scored before the step that learns from it.
    pub train_loss: f64,
    /// Mean cross-entropy over the validation samples after the epoch. It is unweighted, so that
    /// trainings are comparable.
    pub validation_loss: f64,
    /// Uncalibrated scores on the validation samples after the epoch. Success is predicted for
    /// probabilities of at least 0.5. The F-measure is the maximum over all thresholds, because at
    /// 0.5 it is 0 for every model that predicts success of no sample.
    pub validation: Scores,
    /// True if the watched metric was the best so far.
    pub is_best: bool,
}

impl Epoch {
    /// The score that early stopping watches, or that a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        name.value_in(&self.validation, self.validation_loss)
    }
}

/// Scores of the models of all time cuts, pooled over the samples that they did not learn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledScores {
    /// Mean cross-entropy.
    pub loss: f64,
    /// Uncalibrated scores, defined as in [`Epoch`].
    #[serde(flatten)]
    pub scores: Scores,
}

impl PooledScores {
    /// Scores `predictions`.
    pub(crate) fn compute(predictions: &RollingPredictions) -> PooledScores {
        let labels = &predictions.labels;
        let probabilities = predictions.probabilities();
        PooledScores {
            loss: mean_cross_entropy(&predictions.logits, labels),
            scores: Scores {
                f_measure: best_f_measure(&probabilities, labels),
                ..Scores::compute(&probabilities, labels, 0.5)
            },
        }
    }
}

/// Writes the epochs of a training to its directory. They come from its checkpoint, so each epoch
/// is there exactly once, even if the training was killed.
pub(crate) fn write_history(dir: &Path, history: &[Epoch]) -> Result<()> {
    manifest::write_json_lines(&dir.join(HISTORY_FILE), history)
}

/// Reads the completed epochs of the training in `dir`.
pub fn read_history(dir: &Path) -> Result<Vec<Epoch>> {
    manifest::read_json_lines(&dir.join(HISTORY_FILE))
}
