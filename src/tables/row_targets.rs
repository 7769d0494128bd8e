//! Targets of a table's rows: their classes, or their numbers.

use crate::DataConfig;
use poolcast_base::stats::pinball_loss;
use poolcast_config::PredictionTask;

/// Targets of the rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum RowTargets {
    /// Classes. A model predicts the probability of each.
    Classes(RowClasses),
    /// Numbers.
    Numbers(RowNumbers),
}

/// Names of the classes, and the class of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowClasses {
    /// Names of the classes. Of two classes, the second is the positive one.
    pub names: Vec<String>,
    /// Class of each row, `[n]`: an index into `names`.
    pub y: Vec<u32>,
}

/// Numbers of the rows, and the loss to minimise.
#[derive(Debug, Clone, PartialEq)]
pub struct RowNumbers {
    /// Numbers, `[n]`, all finite.
    pub y: Vec<f64>,
    /// Loss to minimise, which decides if a model predicts the mean or a quantile.
    pub loss: NumberLoss,
}

/// Loss that a model of numbers minimises. It decides what the model predicts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberLoss {
    /// Squared error. The model predicts the mean.
    Squared,
    /// Absolute error times `quantile` if the number is above the prediction, and times
    /// `1 - quantile` if it is below. The model predicts the quantile.
    Pinball {
        /// Share of the numbers that should be below the prediction, between 0 and 1.
        quantile: f64,
    },
}

impl NumberLoss {
    /// Returns the loss that `data` requests, or `None` if it requests classes.
    pub fn from_task(data: &DataConfig) -> Option<NumberLoss> {
        match (data.task, data.quantile) {
            (PredictionTask::Classification, _) => None,
            (PredictionTask::Regression, None) => Some(NumberLoss::Squared),
            (PredictionTask::Regression, Some(quantile)) => Some(NumberLoss::Pinball { quantile }),
        }
    }

    /// Returns the mean loss of the predictions `predicted` `[n]`, where `truth` `[n]` are the true
    /// values.
    pub fn mean(self, truth: &[f64], predicted: &[f64]) -> f64 {
        let pairs = truth.iter().zip(predicted);
        let losses = pairs.map(|(truth, predicted)| self.loss_of_error(truth - predicted));
        losses.sum::<f64>() / truth.len() as f64
    }

    /// Returns the loss if the number exceeds the prediction by `error`.
    fn loss_of_error(self, error: f64) -> f64 {
        match self {
            NumberLoss::Squared => error * error,
            NumberLoss::Pinball { quantile } => pinball_loss(quantile, error),
        }
    }
}

impl RowTargets {
    /// Class of each row, `[n]`: an index into [`RowTargets::class_names`]. Empty if rows have
    /// numbers.
    pub fn classes(&self) -> &[u32] {
        match self {
            RowTargets::Classes(classes) => &classes.y,
            RowTargets::Numbers(_) => &[],
        }
    }

    /// Names of the classes; empty if rows have numbers.
    pub fn class_names(&self) -> &[String] {
        match self {
            RowTargets::Classes(classes) => &classes.names,
            RowTargets::Numbers(_) => &[],
        }
    }

    /// Number of values that a model predicts per row: a probability of each class, or one number.
    pub fn width(&self) -> usize {
        match self {
            RowTargets::Classes(classes) => classes.names.len(),
            RowTargets::Numbers(_) => 1,
        }
    }

    /// Number of rows, `n`.
    pub fn row_count(&self) -> usize {
        match self {
            RowTargets::Classes(classes) => classes.y.len(),
            RowTargets::Numbers(numbers) => numbers.y.len(),
        }
    }

    /// Returns the targets of the rows at the indices `places`, in this order.
    pub fn select_rows(&self, places: &[usize]) -> RowTargets {
        match self {
            RowTargets::Classes(classes) => RowTargets::Classes(RowClasses {
                names: classes.names.clone(),
                y: places.iter().map(|place| classes.y[*place]).collect(),
            }),
            RowTargets::Numbers(numbers) => RowTargets::Numbers(RowNumbers {
                y: places.iter().map(|place| numbers.y[*place]).collect(),
                loss: numbers.loss,
            }),
        }
    }

    /// Drops the classes that have no rows.
    pub(super) fn with_present_classes(self) -> RowTargets {
        match self {
            RowTargets::Classes(classes) => RowTargets::Classes(classes.with_present_classes()),
            RowTargets::Numbers(_) => self,
        }
    }
}

impl RowClasses {
    /// Returns the share of each class in the rows, `[k]`.
    pub fn shares(&self) -> Vec<f64> {
        let mut rows = vec![0.0; self.names.len()];
        for class in &self.y {
            rows[*class as usize] += 1.0;
        }
        let all = self.y.len().max(1) as f64;
        rows.into_iter().map(|rows| rows / all).collect()
    }

    fn with_present_classes(self) -> RowClasses {
        let mut present: Vec<u32> = self.y.clone();
        present.sort_unstable();
        present.dedup();

        let y = self
            .y
            .iter()
            .map(|class| present.partition_point(|known| known < class) as u32)
            .collect();
        let names = present
            .iter()
            .map(|class| self.names[*class as usize].clone())
            .collect();
        RowClasses { names, y }
    }
}
