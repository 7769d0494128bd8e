//! How a training went → `metrics.json` in its directory.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::epoch::{Epoch, PooledScores};
use super::run_dir::METRICS_FILE;
use poolcast_config::{Metric, MetricName};
use poolcast_base::manifest;

/// How a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrainingStatus {
    /// After all its epochs.
    #[serde(rename = "finished")]
    Finished,
    /// Before, as the watched metric no longer improved.
    #[serde(rename = "stopped early")]
    StoppedEarly,
    /// Before, as the sweep that it is a trial of saw others do better.
    #[serde(rename = "terminated early")]
    TerminatedEarly,
    /// The loss was NaN or infinite: there is no model.
    #[serde(rename = "non-finite")]
    NonFinite,
}

/// How a training went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingMetrics {
    /// How it ended.
    pub status: TrainingStatus,
    /// What early stopping watched on the validation samples.
    pub metric: Metric,
    /// Epochs that were trained to their end.
    pub epochs: usize,
    /// The last of them, with the final losses.
    pub last: Option<Epoch>,
    /// The one whose weights remain: that with the best value of the watched metric, the first of
    /// equals.
    pub best: Option<Epoch>,
    /// What its models come to on the samples that they did not learn from, each after the epoch that
    /// the other time cuts chose: what trials are compared by. Absent without a model.
    pub judged: Option<PooledScores>,
    /// What was fitted to its logits on the validation samples; absent without a model.
    pub calibration: Option<Calibration>,
}

impl TrainingMetrics {
    /// How the training with this `history` went, of which no model remains.
    pub(super) fn new(
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

    /// The epoch whose weights the model has; `None` for a training that left no model.
    pub fn of_model(&self) -> Option<&Epoch> {
        if self.status == TrainingStatus::NonFinite {
            return None;
        }
        self.best.as_ref()
    }

    /// The value of the model that a sweep chooses by `name`; `None` also where it is not defined.
    pub fn value(&self, name: MetricName) -> Option<f64> {
        let judged = self.judged.as_ref()?;
        name.value_in(&judged.scores, judged.loss)
    }

    /// Reads how the training in `dir` went.
    pub fn read(dir: &Path) -> Result<TrainingMetrics> {
        manifest::read_json(&dir.join(METRICS_FILE))
    }

    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        manifest::write_json(&dir.join(METRICS_FILE), self)
    }
}
