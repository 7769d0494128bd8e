//! The epochs of a training: what came of each, and `history.jsonl`, which has one a line.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::calibration::best_f_measure;
use super::rolling_predictions::RollingPredictions;
use super::run_dir::HISTORY_FILE;
use poolcast_base::stats::{Scores, mean_cross_entropy};
use poolcast_config::MetricName;
use poolcast_base::manifest;

/// One epoch of a training's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean cross-entropy over the training samples, each scored before the step that learns from
    /// it, and weighted by `pos_weight`: what the training minimises.
    pub train_loss: f64,
    /// Mean cross-entropy over the validation samples, after the epoch; without weights, so that
    /// trainings compare.
    pub validation_loss: f64,
    /// The scores on the validation samples, after the epoch, before any calibration: success is
    /// predicted from 0.5 on. The F-measure is the largest that a threshold gives, as one at 0.5 is 0
    /// for every model that expects success of no sample.
    pub validation: Scores,
    /// Whether the watched metric was the best so far.
    pub is_best: bool,
}

impl Epoch {
    /// The score that early stopping watches, or a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        name.value_in(&self.validation, self.validation_loss)
    }
}

/// What the models of all time cuts come to on the samples that they did not learn from, pooled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledScores {
    /// The mean cross-entropy.
    pub loss: f64,
    /// The scores before any calibration, as those of an [`Epoch`].
    #[serde(flatten)]
    pub scores: Scores,
}

impl PooledScores {
    /// Those of `predictions`.
    pub(super) fn compute(predictions: &RollingPredictions) -> PooledScores {
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

/// Writes the epochs of a training to its directory. They are those of its checkpoint, so that each
/// is there once, whenever the training was killed.
pub(super) fn write_history(dir: &Path, history: &[Epoch]) -> Result<()> {
    manifest::write_json_lines(&dir.join(HISTORY_FILE), history)
}

/// The epochs that the training in `dir` has gone through.
pub fn read_history(dir: &Path) -> Result<Vec<Epoch>> {
    manifest::read_json_lines(&dir.join(HISTORY_FILE))
}
