//! What was predicted of rows, and their targets → scores, of classes or of numbers.

use serde::{Deserialize, Serialize};

use super::classes::{ClassScores, class_score};
use super::number_scores::NumberScores;
use poolcast_base::stats::Scores;
use poolcast_config::{MetricName, PredictionTask};
use poolcast_tables::RowTargets;

/// The scores of one set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TargetScores {
    /// Of numbers. They stand first, as a file of classes has fields that they refuse.
    Numbers(NumberScores),
    /// Of probabilities of classes.
    Classes(ClassScores),
}

impl TargetScores {
    /// Scores `predictions` `[n, width]` of rows with these targets.
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

    /// Those of classes, with their mean cross-entropy.
    pub fn of_classes(loss: f64, scores: Scores) -> TargetScores {
        TargetScores::Classes(ClassScores { loss, scores })
    }

    /// The mean loss; absent where it is no number.
    pub fn loss(&self) -> Option<f64> {
        match self {
            TargetScores::Numbers(scores) => scores.loss,
            TargetScores::Classes(scores) => Some(scores.loss),
        }
    }

    /// The names of the scores beside the loss.
    pub fn names(task: PredictionTask) -> &'static [&'static str] {
        match task {
            PredictionTask::Classification => &Scores::NAMES,
            PredictionTask::Regression => &NumberScores::NAMES,
        }
    }

    /// The scores beside the loss, in the order of their names.
    pub fn values(&self) -> Vec<Option<f64>> {
        match self {
            TargetScores::Numbers(scores) => scores.values().to_vec(),
            TargetScores::Classes(ClassScores { scores, .. }) => scores.values().to_vec(),
        }
    }

    /// The scores beside the loss, by name.
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

    /// The mean of each score over `all`, which are all of classes or all of numbers.
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

/// One value of [`TargetScores`], without the cost of the others.
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
    fn scores_are_read_back_as_what_they_are() {
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
