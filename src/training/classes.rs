//! Probabilities of classes against the classes of rows → the scores of a model that tells two classes or more apart.

use serde::{Deserialize, Serialize};

use super::metrics::{SCORES, Scores};
use crate::config::MetricName;

/// The least probability that a loss is taken of, as scikit-learn's `log_loss` has it for doubles.
const LEAST: f64 = f64::EPSILON;

/// The scores of one set of predictions.
///
/// With two classes they are those of the second one, as [`Scores::of`] has them. With more, accuracy and loss are those of
/// all classes; the others are means over the classes, each against the rest and weighted by its rows (scikit-learn's
/// `average="weighted"`, for the area under the curve with `multi_class="ovr"`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassScores {
    /// The mean cross-entropy.
    pub loss: f64,
    /// What else there is.
    #[serde(flatten)]
    pub scores: Scores,
}

impl ClassScores {
    /// Scores `probabilities` `[n, classes]` of rows whose classes are `y` `[n]`.
    pub fn of(probabilities: &[f64], y: &[u32], classes: usize) -> ClassScores {
        ClassScores {
            loss: loss(probabilities, y, classes),
            scores: scores(probabilities, y, classes),
        }
    }

    /// The score that a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        self.scores
            .watched(name, self.loss)
            .filter(|value| value.is_finite())
    }

    /// The mean of each score over `all`, of those where it is defined.
    pub fn mean(all: &[ClassScores]) -> ClassScores {
        let mean = |values: Vec<f64>| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let scores = std::array::from_fn(|at| {
            mean(
                all.iter()
                    .filter_map(|one| one.scores.values()[at])
                    .collect(),
            )
        });
        ClassScores {
            loss: mean(all.iter().map(|one| one.loss).collect()).unwrap_or_default(),
            scores: Scores::from_values(scores),
        }
    }
}

/// One value of [`ClassScores`], without the cost of the others.
pub fn score(name: MetricName, probabilities: &[f64], y: &[u32], classes: usize) -> Option<f64> {
    match name {
        MetricName::ValidationLoss => {
            Some(loss(probabilities, y, classes)).filter(|loss| loss.is_finite())
        }
        MetricName::ValidationRocAuc if classes == 2 => {
            let (second, labels) = second(probabilities, y);
            super::metrics::roc_auc(&second, &labels)
        }
        _ => ClassScores::of(probabilities, y, classes).watched(name),
    }
}

fn loss(probabilities: &[f64], y: &[u32], classes: usize) -> f64 {
    let of_row = |(p, class): (&[f64], &u32)| -p[*class as usize].clamp(LEAST, 1.0 - LEAST).ln();
    probabilities
        .chunks_exact(classes)
        .zip(y)
        .map(of_row)
        .sum::<f64>()
        / y.len() as f64
}

fn second(probabilities: &[f64], y: &[u32]) -> (Vec<f64>, Vec<bool>) {
    (
        probabilities.chunks_exact(2).map(|p| p[1]).collect(),
        y.iter().map(|class| *class == 1).collect(),
    )
}

fn scores(probabilities: &[f64], y: &[u32], classes: usize) -> Scores {
    if classes == 2 {
        let (second, labels) = second(probabilities, y);
        return Scores::of(&second, &labels, 0.5);
    }
    // Of equals the first, as argmax.
    let likeliest = |p: &[f64]| {
        (1..classes).fold(
            0,
            |best, class| if p[class] > p[best] { class } else { best },
        )
    };
    let predicted: Vec<usize> = probabilities.chunks_exact(classes).map(likeliest).collect();
    let right = predicted
        .iter()
        .zip(y)
        .filter(|(predicted, class)| **predicted == **class as usize)
        .count();
    let mut sums = [(0.0, 0.0); SCORES];
    for class in 0..classes {
        let labels: Vec<bool> = y.iter().map(|other| *other as usize == class).collect();
        let rows = labels.iter().filter(|label| **label).count() as f64;
        let chances: Vec<f64> = probabilities
            .chunks_exact(classes)
            .map(|p| p[class])
            .collect();
        let hard: Vec<f64> = predicted
            .iter()
            .map(|predicted| f64::from(u8::from(*predicted == class)))
            .collect();
        let (soft, hard) = (
            Scores::of(&chances, &labels, 0.5),
            Scores::of(&hard, &labels, 0.5),
        );
        let Scores {
            precision,
            recall,
            f_measure,
            ..
        } = hard;
        let values = Scores {
            precision,
            recall,
            f_measure,
            ..soft
        }
        .values();
        sums.iter_mut().zip(values).for_each(|(sum, value)| {
            let weight = if value.is_some() { rows } else { 0.0 };
            *sum = (sum.0 + weight * value.unwrap_or(0.0), sum.1 + weight);
        });
    }
    let means = Scores::from_values(sums.map(|(sum, weight)| (weight > 0.0).then(|| sum / weight)));
    Scores {
        accuracy: (!y.is_empty()).then(|| right as f64 / y.len() as f64),
        ..means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("defined");
        assert!(
            (value - expected).abs() < 1e-12,
            "{value}, and not {expected}"
        );
    }

    /// As scikit-learn 1.9.1 has it, of these numbers:
    /// `roc_auc_score(y, p, multi_class="ovr", average="weighted")`, `log_loss(y, p)`,
    /// `precision_recall_fscore_support(y, p.argmax(1), average="weighted")`,
    /// `average_precision_score(numpy.eye(3)[y], p, average="weighted")`.
    #[test]
    fn scores_of_three_classes() {
        let p = [
            0.7, 0.2, 0.1, 0.1, 0.6, 0.3, 0.3, 0.4, 0.3, 0.2, 0.2, 0.6, 0.5, 0.3, 0.2, 0.1, 0.5,
            0.4,
        ];
        let y = [0, 1, 2, 2, 1, 0];
        let scores = ClassScores::of(&p, &y, 3);
        close(Some(scores.loss), EXPECTED[0]);
        close(scores.scores.accuracy, 0.5);
        close(scores.scores.precision, EXPECTED[1]);
        close(scores.scores.recall, EXPECTED[2]);
        close(scores.scores.f_measure, EXPECTED[3]);
        close(scores.scores.roc_auc, EXPECTED[4]);
        close(scores.scores.average_precision, EXPECTED[5]);
        assert_eq!(
            score(MetricName::ValidationRocAuc, &p, &y, 3),
            scores.scores.roc_auc
        );
    }

    const EXPECTED: [f64; 6] = [
        1.0148094821861051,
        0.611111111111111,
        0.5,
        0.5222222222222223,
        0.7083333333333334,
        0.7222222222222222,
    ];

    #[test]
    fn two_classes_are_as_yes_and_no() {
        let p = [0.9, 0.1, 0.4, 0.6, 0.65, 0.35, 0.4, 0.6, 0.1, 0.9];
        let y = [0, 0, 1, 1, 1];
        let scores = ClassScores::of(&p, &y, 2);
        assert_eq!(
            scores.scores,
            Scores::of(
                &[0.1, 0.6, 0.35, 0.6, 0.9],
                &[false, false, true, true, true],
                0.5
            )
        );
        let one = |name| (score(name, &p, &y, 2), scores.watched(name));
        for (alone, among) in [
            MetricName::ValidationLoss,
            MetricName::ValidationRocAuc,
            MetricName::ValidationBrier,
        ]
        .map(one)
        {
            assert_eq!(alone, among);
        }
        let sure = ClassScores::of(&[1.0, 0.0], &[1], 2);
        assert!(sure.loss.is_finite() && sure.scores.roc_auc.is_none());
        let mean = ClassScores::mean(&[scores, sure]);
        close(Some(mean.loss), (scores.loss + sure.loss) / 2.0);
        assert_eq!(
            mean.scores.roc_auc, scores.scores.roc_auc,
            "of those where it is defined"
        );
    }
}
