//! Metrics for early stopping and for choosing the best trial, and the comparison of their values.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_base::stats::Scores;

/// Kind of value that is predicted for a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PredictionTask {
    /// The probability of each class.
    #[default]
    Classification,
    /// A number.
    Regression,
}

/// The metric that early stopping watches, or by which the best trial is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// The metric's name, as a configuration has it.
    pub name: MetricName,
    /// Direction in which the metric is better.
    pub goal: Goal,
    /// The program's name of the metric, if `name` is `reported`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// The value at which a sweep begins no more trials, if the configuration has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

impl Metric {
    /// The name of the values by which trials are compared.
    pub fn title(&self) -> String {
        match &self.reported {
            Some(reported) => reported.clone(),
            None => self.name.judged_name(),
        }
    }

    /// The metric of predictions for samples that stands for this one: the validation loss for the loss of answers,
    /// which are about other moments.
    pub fn of_predictions(&self) -> Metric {
        match self.name {
            MetricName::AnswersLogLoss => Metric {
                name: MetricName::ValidationLoss,
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// Returns true if `value` is as good as the target, if there is one.
    pub fn is_reached_by(&self, value: f64) -> bool {
        let target = self.target.map(|target| self.goal.loss(target));
        target.is_some_and(|target| self.goal.loss(value) <= target)
    }

    /// The text of a value. The metric of a program may have any scale.
    pub fn value_text(&self, value: f64) -> String {
        let has_scale = value == 0.0 || (1e-3..1e6).contains(&value.abs());
        if self.reported.is_none() || has_scale {
            format!("{value:.4}")
        } else {
            format!("{value:.3e}")
        }
    }

    /// Rejects the metric at `key` if it does not apply to `task`. For a regression, also rejects a
    /// goal that would choose the worst trial.
    pub fn check(&self, key: &str, task: PredictionTask) -> Result<()> {
        let name = self.name;
        ensure!(
            name != MetricName::Reported,
            hinted(
                format!("`{key}.name` is {name}, which only trials of a program have"),
                "name the program in `program`, or choose another metric"
            )
        );
        ensure!(
            !name.is_wait_metric(),
            hinted(
                format!("`{key}.name` is {name}, which only models of waits have"),
                "name samples of waits in `provision.samples`, or choose another metric"
            )
        );
        ensure!(
            name.task().is_none_or(|of_metric| of_metric == task),
            hinted(
                match task {
                    PredictionTask::Classification => {
                        format!("`{key}.name` is {name}, but the task is classification")
                    }
                    PredictionTask::Regression => {
                        format!("`{key}.name` is {name}, but the task is regression")
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

    /// Rejects the metric at `key` if wait models do not have it, or if its goal would choose the
    /// worst trial.
    pub fn check_wait_metric(&self, key: &str) -> Result<()> {
        let name = self.name;
        ensure!(
            name.is_wait_metric(),
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

/// The metrics on the validation split, and for wait models the metrics on the held-back windows.
///
/// Aliases are names that other programs use in their files.
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
    /// Mean logarithmic loss over both questions about held jobs, answered by the model of the trial alone.
    AnswersLogLoss,
    /// The metric that a program reports, under a name of its own.
    Reported,
}

impl MetricName {
    /// The name of the value of this metric by which trials are compared: for a network the score
    /// of the predictions after each time cut, each from the epoch that the other cuts chose. The
    /// name of the metric itself stands for the score of the epoch that the model has.
    pub fn judged_name(self) -> String {
        let name = self.to_string();
        match name.strip_prefix("validation_") {
            Some(score) => format!("judged_{score}"),
            None => name,
        }
    }

    /// Returns true if only wait models have this metric.
    pub fn is_wait_metric(self) -> bool {
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
            | MetricName::HeldBackCost
            | MetricName::AnswersLogLoss
            | MetricName::Reported => None,
        }
    }

    /// Returns the task that the metric belongs to; `None` for the loss, which all tasks have, and
    /// for the metrics of wait models.
    pub(super) fn task(self) -> Option<PredictionTask> {
        match self {
            MetricName::ValidationLoss
            | MetricName::HeldBackPinball
            | MetricName::HeldBackCost
            | MetricName::Reported => None,
            MetricName::AnswersLogLoss
            | MetricName::ValidationRocAuc
            | MetricName::ValidationAveragePrecision
            | MetricName::ValidationFMeasure
            | MetricName::ValidationAccuracy
            | MetricName::ValidationBrier => Some(PredictionTask::Classification),
            MetricName::ValidationMae | MetricName::ValidationRmse | MetricName::ValidationR2 => {
                Some(PredictionTask::Regression)
            }
        }
    }

    /// Returns the value that decides between trials with equal metrics; less is better. It is the
    /// validation loss. For the F-measure it is the negated area under the ROC curve, because
    /// F-measures are equal if all samples get the same answer, whatever their probabilities are.
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

/// The direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Goal {
    Minimize,
    Maximize,
}

impl Goal {
    /// Converts a value of the metric so that less is better.
    pub fn loss(self, value: f64) -> f64 {
        match self {
            Goal::Minimize => value,
            Goal::Maximize => -value,
        }
    }

    /// Returns the item with the best value; the first of several with equal values.
    pub fn best<T>(self, items: impl Iterator<Item = T>, value: impl Fn(&T) -> f64) -> Option<T> {
        items.reduce(|best, next| {
            if self.is_better(value(&next), value(&best)) {
                next
            } else {
                best
            }
        })
    }

    /// Compares two trials by (value, tie breaker); the better trial is less. If the values are
    /// equal, the trial with the smaller [`MetricName::tie_breaker`] is better.
    pub fn order(self, a: (f64, f64), b: (f64, f64)) -> std::cmp::Ordering {
        self.loss(a.0)
            .total_cmp(&self.loss(b.0))
            .then(a.1.total_cmp(&b.1))
    }

    /// Returns true if `a` is better than `b`.
    fn is_better(self, a: f64, b: f64) -> bool {
        self.is_gain(a, b, 0.0)
    }

    /// Returns true if `a` is better than `b` by more than `min_delta`.
    pub fn is_gain(self, a: f64, b: f64, min_delta: f64) -> bool {
        self.loss(a) < self.loss(b) - min_delta
    }
}
