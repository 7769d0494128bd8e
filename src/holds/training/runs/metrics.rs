//! Training metrics: status, epochs and scores of a training, as stored in `metrics.json`.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::run_dir::METRICS_FILE;
use crate::training::fitting::{Epoch, PooledScores};
use crate::training::scoring::Calibration;
use poolcast_base::manifest;
use poolcast_config::{Metric, MetricName};

/// The end status of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrainingStatus {
    /// All epochs were trained.
    #[serde(rename = "finished")]
    Finished,
    /// Early stopping ended it, because the watched metric no longer improved.
    #[serde(rename = "stopped early")]
    StoppedEarly,
    /// The sweep ended it, because other trials did better.
    #[serde(rename = "terminated early")]
    TerminatedEarly,
    /// The loss was NaN or infinite, so there is no model.
    #[serde(rename = "non-finite")]
    NonFinite,
}

/// Metrics of one training.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingMetrics {
    /// End status.
    pub status: TrainingStatus,
    /// Metric that early stopping watched on the validation samples.
    pub metric: Metric,
    /// Completed epochs.
    pub epochs: usize,
    /// The last epoch, with the final losses.
    pub last: Option<Epoch>,
    /// The epoch whose weights the model has: the one with the best value of the watched metric.
    /// Ties go to the first.
    pub best: Option<Epoch>,
    /// Scores of the training's models on the samples that they did not learn from, each after the
    /// epoch that the other time cuts chose. Trials are compared by these. `None` without a model.
    pub judged: Option<PooledScores>,
    /// Calibration of the logits, fitted to predictions for samples that were not learned from.
    /// `None` without a model.
    pub calibration: Option<Calibration>,
}

impl TrainingMetrics {
    /// Creates the metrics of a training with this `history`, without the results that need a
    /// model.
    pub(crate) fn new(
        status: TrainingStatus,
        metric: &Metric,
        history: &[Epoch],
    ) -> TrainingMetrics {
        TrainingMetrics {
            status,
            metric: metric.clone(),
            epochs: history.len(),
            last: history.last().cloned(),
            best: history.iter().rfind(|epoch| epoch.is_best).cloned(),
            judged: None,
            calibration: None,
        }
    }

    /// The epoch whose weights the model has. `None` if the training left no model.
    pub fn of_model(&self) -> Option<&Epoch> {
        if self.status == TrainingStatus::NonFinite {
            return None;
        }
        self.best.as_ref()
    }

    /// The value of metric `name`, by which a sweep compares models. `None` without a model or if
    /// it is undefined.
    pub fn value(&self, name: MetricName) -> Option<f64> {
        let judged = self.judged.as_ref()?;
        name.value_in(&judged.scores, judged.loss)
    }

    /// Reads the metrics of the training in `dir`.
    pub fn read(dir: &Path) -> Result<TrainingMetrics> {
        manifest::read_json(&dir.join(METRICS_FILE))
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        manifest::write_json(&dir.join(METRICS_FILE), self)
    }
}
