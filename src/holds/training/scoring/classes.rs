//! Scores of classifiers with two classes or more: class probabilities against the true classes of
//! rows.

use serde::{Deserialize, Serialize};

use super::calibration::best_f_measure;
use poolcast_base::stats::{SCORE_COUNT, Scores, roc_auc};
use poolcast_config::MetricName;

/// Minimum probability in the cross-entropy, as in scikit-learn's `log_loss` for doubles.
const MIN_PROBABILITY: f64 = f64::EPSILON;

/// Scores of one set of predictions.
///
/// With two classes these are the scores of the second class, as [`Scores::compute`] returns them.
/// With more, accuracy and loss are over all classes. The other scores are means over the classes,
/// each against the rest and weighted by its rows (scikit-learn's `average="weighted"`, for the
/// area under the curve with `multi_class="ovr"`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassScores {
    /// Mean cross-entropy.
    pub loss: f64,
    /// All other scores.
    #[serde(flatten)]
    pub scores: Scores,
}

impl ClassScores {
    /// Scores `probabilities` `[n, classes]` of rows whose classes are `y` `[n]`.
    pub fn compute(probabilities: &[f64], y: &[u32], classes: usize) -> ClassScores {
        ClassScores {
            loss: mean_log_loss(probabilities, y, classes),
            scores: class_scores(probabilities, y, classes),
        }
    }

    /// Scores `probabilities` `[n, 2]` of samples of logs with labels `y` `[n]`, the way network
    /// epochs are scored: see [`crate::training::Epoch::validation`].
    pub fn from_samples(probabilities: &[f64], y: &[u32]) -> ClassScores {
        let mut found = ClassScores::compute(probabilities, y, 2);
        let BinaryView { second, labels } = BinaryView::new(probabilities, y);
        found.scores.f_measure = best_f_measure(&second, &labels);
        found
    }

    /// The score that a sweep chooses by. `None` if it is not finite.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        name.value_in(&self.scores, self.loss)
            .filter(|value| value.is_finite())
    }

    /// The mean of each score over the elements of `all` in which it is defined.
    pub fn mean(all: &[ClassScores]) -> ClassScores {
        let losses: Vec<f64> = all.iter().map(|one| one.loss).collect();
        let scores = std::array::from_fn(|score| {
            let defined: Vec<f64> = all
                .iter()
                .filter_map(|one| one.scores.values()[score])
                .collect();
            mean_value(&defined)
        });
        ClassScores {
            loss: mean_value(&losses).unwrap_or_default(),
            scores: Scores::from_values(scores),
        }
    }
}

fn mean_value(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Computes one value of [`ClassScores`], without the cost of the others.
pub(crate) fn class_score(
    name: MetricName,
    probabilities: &[f64],
    y: &[u32],
    classes: usize,
) -> Option<f64> {
    match name {
        MetricName::ValidationLoss => {
            Some(mean_log_loss(probabilities, y, classes)).filter(|loss| loss.is_finite())
        }
        MetricName::ValidationRocAuc if classes == 2 => {
            let BinaryView { second, labels } = BinaryView::new(probabilities, y);
            roc_auc(&second, &labels)
        }
        _ => ClassScores::compute(probabilities, y, classes).watched(name),
    }
}

fn mean_log_loss(probabilities: &[f64], y: &[u32], classes: usize) -> f64 {
    let losses = probabilities
        .chunks_exact(classes)
        .zip(y)
        .map(|(row, class)| {
            -row[*class as usize]
                .clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
                .ln()
        });
    losses.sum::<f64>() / y.len() as f64
}

/// Two classes as a binary problem.
struct BinaryView {
    /// Probability of the second class, `[n]`.
    second: Vec<f64>,
    /// True for rows of the second class, `[n]`.
    labels: Vec<bool>,
}

impl BinaryView {
    fn new(probabilities: &[f64], y: &[u32]) -> BinaryView {
        BinaryView {
            second: probabilities.chunks_exact(2).map(|row| row[1]).collect(),
            labels: y.iter().map(|class| *class == 1).collect(),
        }
    }
}

fn class_scores(probabilities: &[f64], y: &[u32], classes: usize) -> Scores {
    if classes == 2 {
        let BinaryView { second, labels } = BinaryView::new(probabilities, y);
        return Scores::compute(&second, &labels, 0.5);
    }

    let predicted: Vec<usize> = probabilities
        .chunks_exact(classes)
        .map(likeliest_class)
        .collect();
    let mut means = [WeightedMean::default(); SCORE_COUNT];
    for class in 0..classes {
        let labels: Vec<bool> = y.iter().map(|other| *other as usize == class).collect();
        let rows = labels.iter().filter(|label| **label).count() as f64;
        let scores = one_against_rest(probabilities, classes, &predicted, class, &labels);
        for (mean, value) in means.iter_mut().zip(scores.values()) {
            mean.add(value, rows);
        }
    }

    let right = predicted
        .iter()
        .zip(y)
        .filter(|(predicted, class)| **predicted == **class as usize)
        .count();
    Scores {
        accuracy: (!y.is_empty()).then(|| right as f64 / y.len() as f64),
        ..Scores::from_values(means.map(WeightedMean::value))
    }
}

/// Returns the class with the largest probability. Ties go to the first class, as in argmax.
fn likeliest_class(row: &[f64]) -> usize {
    let mut best = 0;
    for class in 1..row.len() {
        if row[class] > row[best] {
            best = class;
        }
    }
    best
}

/// Scores one class against the rest. A row counts as predicted to be of the class if no other
/// class is likelier. The 0.5 threshold does not apply.
fn one_against_rest(
    probabilities: &[f64],
    classes: usize,
    predicted: &[usize],
    class: usize,
    labels: &[bool],
) -> Scores {
    let of_class: Vec<f64> = probabilities
        .chunks_exact(classes)
        .map(|row| row[class])
        .collect();
    let decisions: Vec<f64> = predicted
        .iter()
        .map(|predicted| f64::from(u8::from(*predicted == class)))
        .collect();
    let decided = Scores::compute(&decisions, labels, 0.5);
    Scores {
        precision: decided.precision,
        recall: decided.recall,
        f_measure: decided.f_measure,
        ..Scores::compute(&of_class, labels, 0.5)
    }
}

/// Weighted mean of the values that are defined.
#[derive(Debug, Clone, Copy, Default)]
struct WeightedMean {
    sum: f64,
    weight: f64,
}

impl WeightedMean {
    fn add(&mut self, value: Option<f64>, weight: f64) {
        if let Some(value) = value {
            self.sum += weight * value;
            self.weight += weight;
        }
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
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

    /// Expected values from scikit-learn 1.9.1 for these numbers: `roc_auc_score(y, p,
    /// multi_class="ovr", average="weighted")`, `log_loss(y, p)`,
    /// `precision_recall_fscore_support(y, p.argmax(1), average="weighted")`,
    /// `average_precision_score(numpy.eye(3)[y], p, average="weighted")`.
    #[test]
    fn scores_of_three_classes() {
        let p = [
            0.7, 0.2, 0.1, 0.1, 0.6, 0.3, 0.3, 0.4, 0.3, 0.2, 0.2, 0.6, 0.5, 0.3, 0.2, 0.1, 0.5,
            0.4,
        ];
        let y = [0, 1, 2, 2, 1, 0];
        let scores = ClassScores::compute(&p, &y, 3);
        close(Some(scores.loss), EXPECTED[0]);
        close(scores.scores.accuracy, 0.5);
        close(scores.scores.precision, EXPECTED[1]);
        close(scores.scores.recall, EXPECTED[2]);
        close(scores.scores.f_measure, EXPECTED[3]);
        close(scores.scores.roc_auc, EXPECTED[4]);
        close(scores.scores.average_precision, EXPECTED[5]);
        assert_eq!(
            class_score(MetricName::ValidationRocAuc, &p, &y, 3),
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
    fn two_classes_are_scored_as_binary() {
        let p = [0.9, 0.1, 0.4, 0.6, 0.65, 0.35, 0.4, 0.6, 0.1, 0.9];
        let y = [0, 0, 1, 1, 1];
        let scores = ClassScores::compute(&p, &y, 2);
        assert_eq!(
            scores.scores,
            Scores::compute(
                &[0.1, 0.6, 0.35, 0.6, 0.9],
                &[false, false, true, true, true],
                0.5
            )
        );
        let one = |name| (class_score(name, &p, &y, 2), scores.watched(name));
        for (alone, among) in [
            MetricName::ValidationLoss,
            MetricName::ValidationRocAuc,
            MetricName::ValidationBrier,
        ]
        .map(one)
        {
            assert_eq!(alone, among);
        }
        let sure = ClassScores::compute(&[1.0, 0.0], &[1], 2);
        assert!(sure.loss.is_finite() && sure.scores.roc_auc.is_none());
        let mean = ClassScores::mean(&[scores, sure]);
        close(Some(mean.loss), (scores.loss + sure.loss) / 2.0);
        assert_eq!(
            mean.scores.roc_auc, scores.scores.roc_auc,
            "of those where it is defined"
        );
    }
}
