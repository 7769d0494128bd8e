//! Scores of probabilities against labels: pure functions of slices, computed over a whole split
//! and never per batch.

use serde::{Deserialize, Serialize};

/// The mean binary cross-entropy of logits, in a form that cannot overflow.
pub fn mean_cross_entropy(logits: &[f32], labels: &[bool]) -> f64 {
    let terms = logits.iter().zip(labels).map(|(&logit, &label)| {
        let x = f64::from(logit);
        x.max(0.0) - if label { x } else { 0.0 } + (-x.abs()).exp().ln_1p()
    });
    terms.sum::<f64>() / logits.len() as f64
}

/// Scores of one set of predictions. The positive class is success after release, predicted from a
/// threshold on. An undefined score (no positive predicted, or only one class) is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Share of right predictions.
    pub accuracy: Option<f64>,
    /// Share of successes among predicted ones.
    pub precision: Option<f64>,
    /// Share of successes that are predicted.
    pub recall: Option<f64>,
    /// Harmonic mean of precision and recall.
    pub f_measure: Option<f64>,
    /// Area under the ROC curve.
    pub roc_auc: Option<f64>,
    /// Area under the curve of precision over recall.
    pub average_precision: Option<f64>,
    /// Mean squared error of the probabilities.
    pub brier: Option<f64>,
    /// Expected calibration error.
    pub ece: Option<f64>,
}

/// Number of scores.
pub const SCORE_COUNT: usize = Scores::NAMES.len();

/// The F-measure of `probabilities` against `labels`. Success is predicted for probabilities of at
/// least `threshold`.
pub fn f_measure(probabilities: &[f64], labels: &[bool], threshold: f64) -> Option<f64> {
    let (mut right, mut wrong) = (0.0, 0.0);
    for (&probability, &label) in probabilities.iter().zip(labels) {
        match (probability >= threshold, label) {
            (true, true) => right += 1.0,
            (true, false) | (false, true) => wrong += 1.0,
            (false, false) => {}
        }
    }
    ratio(2.0 * right, 2.0 * right + wrong)
}

impl Scores {
    /// Names of the scores, in the order of [`Scores::values`].
    pub const NAMES: [&'static str; 8] = [
        "accuracy",
        "precision",
        "recall",
        "f_measure",
        "roc_auc",
        "average_precision",
        "brier",
        "ece",
    ];

    /// Returns the display title of the score `name`, of classes or of numbers.
    pub fn title(name: &str) -> String {
        match name {
            "f_measure" => "F-measure".to_owned(),
            "roc_auc" => "ROC-AUC".to_owned(),
            "brier" => "Brier score".to_owned(),
            "ece" => "ECE".to_owned(),
            "mae" | "rmse" => name.to_uppercase(),
            "r2" => "R²".to_owned(),
            _ => name.replace('_', " "),
        }
    }

    /// Scores `probabilities` against `labels`. Success is predicted for probabilities of at least
    /// `threshold`.
    pub fn compute(probabilities: &[f64], labels: &[bool], threshold: f64) -> Scores {
        let n = labels.len() as f64;
        let (mut tp, mut fp, mut tn, mut misses) = (0.0, 0.0, 0.0, 0.0);
        let mut squares = 0.0;
        for (&probability, &label) in probabilities.iter().zip(labels) {
            match (probability >= threshold, label) {
                (true, true) => tp += 1.0,
                (true, false) => fp += 1.0,
                (false, false) => tn += 1.0,
                (false, true) => misses += 1.0,
            }
            squares += (probability - f64::from(u8::from(label))).powi(2);
        }

        Scores {
            accuracy: ratio(tp + tn, n),
            precision: ratio(tp, tp + fp),
            recall: ratio(tp, tp + misses),
            f_measure: ratio(2.0 * tp, 2.0 * tp + fp + misses),
            roc_auc: roc_auc(probabilities, labels),
            average_precision: average_precision(probabilities, labels),
            brier: ratio(squares, n),
            ece: ratio(calibration_gap(probabilities, labels), n),
        }
    }

    /// The scores in the order of [`Scores::NAMES`].
    pub fn values(&self) -> [Option<f64>; SCORE_COUNT] {
        let Scores {
            accuracy,
            precision,
            recall,
            f_measure,
            roc_auc,
            average_precision,
            brier,
            ece,
        } = *self;
        [
            accuracy,
            precision,
            recall,
            f_measure,
            roc_auc,
            average_precision,
            brier,
            ece,
        ]
    }

    /// Creates scores from their values in the order of [`Scores::NAMES`].
    pub fn from_values(values: [Option<f64>; SCORE_COUNT]) -> Scores {
        let [
            accuracy,
            precision,
            recall,
            f_measure,
            roc_auc,
            average_precision,
            brier,
            ece,
        ] = values;
        Scores {
            accuracy,
            precision,
            recall,
            f_measure,
            roc_auc,
            average_precision,
            brier,
            ece,
        }
    }
}

/// `a / b`, or `None` if `b` is not positive.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// The expected calibration error (Guo et al. 2017) times the number of samples: the absolute
/// difference between predicted and actual successes, summed over 15 equal-width bins of the
/// probability.
fn calibration_gap(probabilities: &[f64], labels: &[bool]) -> f64 {
    let mut gaps = [0.0; 15];
    for (&probability, &label) in probabilities.iter().zip(labels) {
        let bin = (probability * 15.0).ceil().clamp(1.0, 15.0) as usize - 1;
        gaps[bin] += probability - f64::from(u8::from(label));
    }
    gaps.iter().map(|gap: &f64| gap.abs()).sum()
}

/// Numbers of samples with one distinct score.
struct ScoreStep {
    positives: f64,
    all: f64,
}

/// Counts the samples of each distinct score, highest score first.
fn score_steps(scores: &[f64], labels: &[bool]) -> Vec<ScoreStep> {
    let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(labels.iter().copied()).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    order
        .chunk_by(|a, b| a.0 == b.0)
        .map(|ties| ScoreStep {
            positives: ties.iter().filter(|(_, label)| *label).count() as f64,
            all: ties.len() as f64,
        })
        .collect()
}

/// The probability that a positive scores above a negative. Ties count half (Mann and Whitney).
pub fn roc_auc(scores: &[f64], labels: &[bool]) -> Option<f64> {
    let positives = labels.iter().filter(|label| **label).count() as f64;
    let negatives = labels.len() as f64 - positives;

    // Negatives whose score is below the current one.
    let mut below = negatives;
    let mut wins = 0.0;
    for step in score_steps(scores, labels) {
        let step_negatives = step.all - step.positives;
        below -= step_negatives;
        wins += step.positives * (below + step_negatives / 2.0);
    }
    (positives > 0.0 && negatives > 0.0).then(|| wins / (positives * negatives))
}

/// The sum of precision times gain in recall over the distinct scores, like scikit-learn's
/// `average_precision_score`.
fn average_precision(scores: &[f64], labels: &[bool]) -> Option<f64> {
    let positives = labels.iter().filter(|label| **label).count() as f64;
    let mut found = 0.0;
    let mut seen = 0.0;
    let mut sum = 0.0;
    for step in score_steps(scores, labels) {
        found += step.positives;
        seen += step.all;
        sum += step.positives * found / seen;
    }
    (positives > 0.0).then(|| sum / positives)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by hand. scikit-learn 1.5 gives the same for `y = [0, 0, 1, 1, 1]`, `p =
    /// [0.1, 0.6, 0.35, 0.6, 0.9]`.
    #[test]
    fn scores_by_hand() {
        let labels = [false, false, true, true, true];
        let scores = Scores::compute(&[0.1, 0.6, 0.35, 0.6, 0.9], &labels, 0.5);
        let close = |value: Option<f64>, expected: f64| {
            assert!((value.expect("defined") - expected).abs() < 1e-12)
        };
        close(scores.accuracy, 3.0 / 5.0);
        close(scores.precision, 2.0 / 3.0);
        close(scores.recall, 2.0 / 3.0);
        close(scores.f_measure, 2.0 / 3.0);
        close(scores.roc_auc, (1.0 + 2.0 + 1.5) / 6.0);
        close(
            scores.average_precision,
            (1.0 + 2.0 / 3.0 + 3.0 / 4.0) / 3.0,
        );
        close(scores.brier, (0.01 + 0.36 + 0.4225 + 0.16 + 0.01) / 5.0);
        // Bins 2, 6, 9 and 14 of 15. Both 0.6 are in bin 9, and one of them succeeded.
        close(scores.ece, (0.1 + 0.65 + 0.2 + 0.1) / 5.0);
        let lower = Scores::compute(&[0.1, 0.6, 0.35, 0.6, 0.9], &labels, 0.35);
        close(lower.recall, 1.0);
        close(lower.precision, 3.0 / 4.0);
    }

    #[test]
    fn undefined_scores_are_absent() {
        let scores = Scores::compute(&[0.2, 0.3], &[false, false], 0.5);
        assert_eq!(
            (scores.precision, scores.recall, scores.roc_auc),
            (None, None, None)
        );
        assert_eq!(scores.accuracy, Some(1.0));
        let ties = Scores::compute(&[0.4; 4], &[true, false, false, false], 0.5);
        assert_eq!(
            (ties.roc_auc, ties.average_precision),
            (Some(0.5), Some(0.25))
        );
        assert_eq!(Scores::compute(&[], &[], 0.5), Scores::default());
    }

    #[test]
    fn the_loss_never_overflows() {
        assert!((mean_cross_entropy(&[0.0, 0.0], &[true, false]) - 2f64.ln()).abs() < 1e-12);
        assert!((mean_cross_entropy(&[1e30], &[false]) - 1e30).abs() < 1e24);
        assert_eq!(mean_cross_entropy(&[1000.0], &[true]), 0.0);
    }
}
