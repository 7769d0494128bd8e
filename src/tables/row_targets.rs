//! What is to be predicted of each row of a table: its class, or a number.

use poolcast_config::{DataConfig, PredictionTask};

/// What is known of the rows of a table and to be predicted of others.
#[derive(Debug, Clone, PartialEq)]
pub enum RowTargets {
    /// The probability of each class.
    Classes(RowClasses),
    /// A number.
    Numbers(RowNumbers),
}

/// Classes by name, and the class of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowClasses {
    /// The names of the classes; of two the second is the positive one.
    pub names: Vec<String>,
    /// The class of each row, `[n]`: a place in `names`.
    pub y: Vec<u32>,
}

/// A number of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowNumbers {
    /// The numbers, `[n]`, all finite.
    pub y: Vec<f64>,
    /// What of them a model predicts.
    pub loss: NumberLoss,
}

/// The loss that a model of numbers makes as small as it can, which decides what it predicts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberLoss {
    /// The square of the error: the mean is predicted.
    Squared,
    /// The error, times `quantile` where the number is above what was predicted, and times
    /// `1 - quantile` where it is below: the quantile is predicted.
    Pinball {
        /// The share of numbers that are to be below, between 0 and 1.
        quantile: f64,
    },
}

impl NumberLoss {
    /// What `data` asks for; `None` where it asks for classes.
    pub(super) fn of_task(data: &DataConfig) -> Option<NumberLoss> {
        match (data.task, data.quantile) {
            (PredictionTask::Classification, _) => None,
            (PredictionTask::Regression, None) => Some(NumberLoss::Squared),
            (PredictionTask::Regression, Some(quantile)) => Some(NumberLoss::Pinball { quantile }),
        }
    }

    /// The mean loss of what was `predicted` `[n]` where `truth` `[n]` came.
    pub fn mean(self, truth: &[f64], predicted: &[f64]) -> f64 {
        let pairs = truth.iter().zip(predicted);
        let losses = pairs.map(|(truth, predicted)| self.of_error(truth - predicted));
        losses.sum::<f64>() / truth.len() as f64
    }

    /// The loss where the number is by `error` more than what was predicted.
    fn of_error(self, error: f64) -> f64 {
        match self {
            NumberLoss::Squared => error * error,
            NumberLoss::Pinball { quantile } => (quantile * error).max((quantile - 1.0) * error),
        }
    }
}

impl RowTargets {
    /// The class of each row, `[n]`: a place in [`RowTargets::class_names`]. Empty where rows have
    /// numbers.
    pub fn classes(&self) -> &[u32] {
        match self {
            RowTargets::Classes(classes) => &classes.y,
            RowTargets::Numbers(_) => &[],
        }
    }

    /// The names of the classes; none where rows have numbers.
    pub fn class_names(&self) -> &[String] {
        match self {
            RowTargets::Classes(classes) => &classes.names,
            RowTargets::Numbers(_) => &[],
        }
    }

    /// How many numbers a model predicts of a row: a probability of each class, or the number.
    pub fn width(&self) -> usize {
        match self {
            RowTargets::Classes(classes) => classes.names.len(),
            RowTargets::Numbers(_) => 1,
        }
    }

    /// How many rows there are: `n`.
    pub fn row_count(&self) -> usize {
        match self {
            RowTargets::Classes(classes) => classes.y.len(),
            RowTargets::Numbers(numbers) => numbers.y.len(),
        }
    }

    /// Those of the rows at these places, in this order.
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

    /// The same rows, of classes that have none left out.
    pub(super) fn with_present_classes(self) -> RowTargets {
        match self {
            RowTargets::Classes(classes) => RowTargets::Classes(classes.with_present_classes()),
            RowTargets::Numbers(_) => self,
        }
    }
}

impl RowClasses {
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
