//! Scores of predictions against the targets of rows, which are classes or numbers.

use serde::{Deserialize, Serialize};

use super::classes::{ClassScores, class_score};
use super::number_scores::NumberScores;
use poolcast_base::stats::Scores;
use poolcast_config::{MetricName, PredictionTask};
use poolcast_tables::RowTargets;

/// Scores of one set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TargetScores {
    /// Scores of predicted numbers. This variant comes first because it rejects the fields of the
    /// other, so that `serde` reads each file as the right variant.
    Numbers(NumberScores),
    /// Scores of predicted class probabilities.
    Classes(ClassScores),
}

impl TargetScores {
    /// Scores `predictions` `[n, width]` of rows with these `targets`.
    pub fn compute(predictions: &[f64], targets: &RowTargets) -> TargetScores {
        match targets {
            RowTargets::Classes(classes) => {
                let width = classes.names.len();
                TargetScores::Classes(ClassScores::compute(predictions, &classes.y, width))
            }
            RowTargets::Numbers(numbers) => {
                TargetScores::Numbers(NumberScores::compute(predictions, numbers))
            }
        }
    }

    /// Creates scores of classes from their mean cross-entropy `loss` and their other `scores`.
    pub fn of_classes(loss: f64, scores: Scores) -> TargetScores {
        TargetScores::Classes(ClassScores { loss, scores })
    }

    /// The mean loss. `None` if a loss of numbers is not finite.
    pub fn loss(&self) -> Option<f64> {
        match self {
            TargetScores::Numbers(scores) => scores.loss,
            TargetScores::Classes(scores) => Some(scores.loss),
        }
    }

    /// The names of the scores other than the loss.
    pub fn names(task: PredictionTask) -> &'static [&'static str] {
        match task {
            PredictionTask::Classification => &Scores::NAMES,
            PredictionTask::Regression => &NumberScores::NAMES,
        }
    }

    /// The scores other than the loss, in the order of their names.
    pub fn values(&self) -> Vec<Option<f64>> {
        match self {
            TargetScores::Numbers(scores) => scores.values().to_vec(),
            TargetScores::Classes(ClassScores { scores, .. }) => scores.values().to_vec(),
        }
    }

    /// The scores other than the loss, with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        let task = match self {
            TargetScores::Numbers(_) => PredictionTask::Regression,
            TargetScores::Classes(_) => PredictionTask::Classification,
        };
        let names = TargetScores::names(task).iter().copied();
        names.zip(self.values())
    }

    /// The score that a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        match self {
            TargetScores::Numbers(scores) => scores.watched(name),
            TargetScores::Classes(scores) => scores.watched(name),
        }
    }

    /// The mean of each score over `all`, which must be all of classes or all of numbers. `None` if
    /// `all` is empty.
    pub fn mean(all: &[TargetScores]) -> Option<TargetScores> {
        let mut of_numbers = Vec::new();
        let mut of_classes = Vec::new();
        for scores in all {
            match scores {
                TargetScores::Numbers(scores) => of_numbers.push(*scores),
                TargetScores::Classes(scores) => of_classes.push(*scores),
            }
        }
        if !of_numbers.is_empty() {
            return Some(TargetScores::Numbers(NumberScores::mean(&of_numbers)));
        }
        let mean = || TargetScores::Classes(ClassScores::mean(&of_classes));
        (!of_classes.is_empty()).then(mean)
    }
}

/// Computes one value of [`TargetScores`], without the cost of the others.
pub fn target_score(name: MetricName, predictions: &[f64], targets: &RowTargets) -> Option<f64> {
    match targets {
        RowTargets::Classes(classes) => {
            class_score(name, predictions, &classes.y, classes.names.len())
        }
        RowTargets::Numbers(numbers) => NumberScores::compute(predictions, numbers).watched(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_tables::{NumberLoss, RowClasses, RowNumbers};

    #[test]
    fn scores_round_trip_through_json() {
        let classes = RowTargets::Classes(RowClasses {
            names: ["no", "yes"].map(str::to_owned).to_vec(),
            y: vec![0, 1],
        });
        let numbers = RowTargets::Numbers(RowNumbers {
            y: vec![1.0, 1.0],
            loss: NumberLoss::Squared,
        });
        for (targets, predictions) in [
            (classes, vec![0.8, 0.2, 0.5, 0.5]),
            (numbers, vec![1.0, 2.0]),
        ] {
            let scores = TargetScores::compute(&predictions, &targets);
            let text = serde_json::to_string(&scores).expect("written");
            assert_eq!(
                serde_json::from_str::<TargetScores>(&text).expect("read"),
                scores
            );
            assert_eq!(TargetScores::mean(&[scores, scores]), Some(scores));
            let loss = target_score(MetricName::ValidationLoss, &predictions, &targets);
            assert_eq!(loss, scores.loss());
        }
        assert_eq!(TargetScores::mean(&[]), None);
    }
}
