//! The metric by which a training is watched or a trial is chosen, and which of two values is
//! better.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::data::PredictionTask;
use poolcast_base::error::hinted;
use poolcast_base::stats::Scores;

/// A value that a training is watched by, or a trial chosen by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Metric {
    pub name: MetricName,
    pub goal: Goal,
}

impl Metric {
    /// Refuses the metric at `key` where it is none of `task`, and where of numbers the worst trial
    /// would be the best.
    pub(super) fn check(&self, key: &str, task: PredictionTask) -> Result<()> {
        let name = self.name;
        ensure!(
            !name.is_of_waits(),
            hinted(
                format!("`{key}.name` is {name}, which models of waits have alone"),
                "name samples of waits in `provision.samples`, or choose another metric"
            )
        );
        ensure!(
            name.task().is_none_or(|of_metric| of_metric == task),
            hinted(
                match task {
                    PredictionTask::Classification => {
                        format!("`{key}.name` is {name}, and what is predicted are classes")
                    }
                    PredictionTask::Regression => {
                        format!("`{key}.name` is {name}, and what is predicted are numbers")
                    }
                },
                match task {
                    PredictionTask::Classification => {
                        format!(
                            "choose another, such as `{key}: {{name: validation_roc_auc, goal: maximize}}`"
                        )
                    }
                    PredictionTask::Regression => {
                        format!(
                            "choose another, such as `{key}: {{name: validation_loss, goal: minimize}}`"
                        )
                    }
                }
            )
        );

        let wanted = match name {
            MetricName::ValidationR2 => Goal::Maximize,
            _ => Goal::Minimize,
        };
        let word = format!("{wanted:?}").to_lowercase();
        ensure!(
            task == PredictionTask::Classification || self.goal == wanted,
            hinted(
                format!("`{key}` would choose the worst {name}"),
                format!("write `{key}: {{name: {name}, goal: {word}}}`")
            )
        );
        Ok(())
    }

    /// Refuses the metric at `key` where models of waits do not have it, and where the worst trial
    /// would be the best.
    pub(super) fn check_of_waits(&self, key: &str) -> Result<()> {
        let name = self.name;
        ensure!(
            name.is_of_waits(),
            hinted(
                format!("`{key}.name` is {name}, which models of waits do not have"),
                format!("write `{key}: {{name: held_back_pinball, goal: minimize}}`")
            )
        );
        ensure!(
            self.goal == Goal::Minimize,
            hinted(
                format!("`{key}` would choose the worst {name}"),
                format!("write `{key}: {{name: {name}, goal: minimize}}`")
            )
        );
        Ok(())
    }
}

/// The metrics of the validation split, and of models of waits those of the windows that are held back;
/// other names that files have for them are read, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named as in config/default.yaml")]
pub enum MetricName {
    #[serde(
        alias = "validate_loss",
        alias = "val_loss",
        alias = "val/loss",
        alias = "validation/loss"
    )]
    ValidationLoss,
    #[serde(
        alias = "val_roc_auc",
        alias = "val_auc",
        alias = "roc_auc",
        alias = "auc"
    )]
    ValidationRocAuc,
    #[serde(alias = "val_average_precision", alias = "average_precision")]
    ValidationAveragePrecision,
    #[serde(
        alias = "f-measure",
        alias = "f_measure",
        alias = "val_f_measure",
        alias = "validation_f1"
    )]
    #[serde(
        alias = "val_f1",
        alias = "val/f1",
        alias = "val_f1_score",
        alias = "f1_score",
        alias = "f1"
    )]
    ValidationFMeasure,
    #[serde(
        alias = "val_accuracy",
        alias = "val_acc",
        alias = "val/accuracy",
        alias = "accuracy"
    )]
    ValidationAccuracy,
    #[serde(alias = "val_brier", alias = "brier")]
    ValidationBrier,
    #[serde(alias = "val_mae", alias = "mae", alias = "mean_absolute_error")]
    ValidationMae,
    #[serde(alias = "val_rmse", alias = "rmse", alias = "root_mean_squared_error")]
    ValidationRmse,
    #[serde(alias = "val_r2", alias = "r2", alias = "r2_score")]
    ValidationR2,
    HeldBackPinball,
    HeldBackCost,
}

impl MetricName {
    /// Whether models of waits have it, and no others.
    pub fn is_of_waits(self) -> bool {
        matches!(self, MetricName::HeldBackPinball | MetricName::HeldBackCost)
    }

    /// The value of this metric in `scores`; `None` for a metric of numbers or of waits. `loss` is the
    /// cross-entropy on the same samples.
    pub fn value_in(self, scores: &Scores, loss: f64) -> Option<f64> {
        match self {
            MetricName::ValidationLoss => Some(loss),
            MetricName::ValidationRocAuc => scores.roc_auc,
            MetricName::ValidationAveragePrecision => scores.average_precision,
            MetricName::ValidationFMeasure => scores.f_measure,
            MetricName::ValidationAccuracy => scores.accuracy,
            MetricName::ValidationBrier => scores.brier,
            MetricName::ValidationMae
            | MetricName::ValidationRmse
            | MetricName::ValidationR2
            | MetricName::HeldBackPinball
            | MetricName::HeldBackCost => None,
        }
    }

    /// Of what predictions it is a metric; `None` for the loss, which all have, and for those of models of
    /// waits.
    pub(super) fn task(self) -> Option<PredictionTask> {
        match self {
            MetricName::ValidationLoss | MetricName::HeldBackPinball | MetricName::HeldBackCost => {
                None
            }
            MetricName::ValidationRocAuc
            | MetricName::ValidationAveragePrecision
            | MetricName::ValidationFMeasure
            | MetricName::ValidationAccuracy
            | MetricName::ValidationBrier => Some(PredictionTask::Classification),
            MetricName::ValidationMae | MetricName::ValidationRmse | MetricName::ValidationR2 => {
                Some(PredictionTask::Regression)
            }
        }
    }

    /// What decides between trials of equal value, of which less is better: the validation loss.
    /// F-measures are equal where all samples get one answer, whatever the probabilities say, so that
    /// the area under the curve decides between those.
    pub fn tie_breaker(self, loss: Option<f64>, roc_auc: Option<f64>) -> f64 {
        let less_is_better = match self {
            MetricName::ValidationFMeasure => roc_auc.map(|area| -area),
            _ => loss,
        };
        less_is_better.unwrap_or(f64::INFINITY)
    }
}

impl std::fmt::Display for MetricName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Whether less or more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Goal {
    Minimize,
    Maximize,
}

impl Goal {
    /// A value as something of which less is better.
    pub fn loss(self, value: f64) -> f64 {
        match self {
            Goal::Minimize => value,
            Goal::Maximize => -value,
        }
    }

    /// The item with the best value, the first of equals.
    pub fn best<T>(self, items: impl Iterator<Item = T>, value: impl Fn(&T) -> f64) -> Option<T> {
        items.reduce(|best, next| {
            if self.is_better(value(&next), value(&best)) {
                next
            } else {
                best
            }
        })
    }

    /// The order of two trials by their values, the better one first; of equals the one whose
    /// [`MetricName::tie_breaker`] is less.
    pub fn order(self, a: (f64, f64), b: (f64, f64)) -> std::cmp::Ordering {
        self.loss(a.0)
            .total_cmp(&self.loss(b.0))
            .then(a.1.total_cmp(&b.1))
    }

    /// Whether `a` is better than `b`.
    fn is_better(self, a: f64, b: f64) -> bool {
        self.is_gain(a, b, 0.0)
    }

    /// Whether `a` is better than `b` by more than `min_delta`.
    pub fn is_gain(self, a: f64, b: f64, min_delta: f64) -> bool {
        self.loss(a) < self.loss(b) - min_delta
    }
}
