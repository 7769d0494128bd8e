//! Calibration of logits on samples that were not learned from: fits the temperature that turns
//! logits into probabilities (Guo et al. 2017), and chooses the decision threshold.

use serde::{Deserialize, Serialize};

use super::rolling_predictions::RollingPredictions;
use poolcast_base::stats::{Scores, f_measure, mean_cross_entropy, sigmoid};
use poolcast_config::Threshold;

/// Minimum of the inverse temperature. If all samples are on the wrong side of 0, the likelihood
/// alone would drive it to 0.
const MIN_INVERSE_TEMPERATURE: f64 = 1.0 / 64.0;

/// Maximum of the inverse temperature. A temperature below 1 would make probabilities more extreme
/// than the model's own, and later holds rarely keep to those.
const MAX_INVERSE_TEMPERATURE: f64 = 1.0;

/// Maps a model's logits to probabilities and to decisions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Divisor of every logit, at least 1.
    pub temperature: f64,
    /// Minimum probability at which success is predicted.
    pub threshold: f64,
    /// Scores on the validation samples with this temperature and threshold. The best epoch is
    /// scored differently: with temperature 1 and threshold 0.5.
    pub validation: Scores,
}

impl Calibration {
    /// Fits the temperature to `predictions`, then chooses the threshold. The temperature stays 1
    /// if it does not help on all predictions, or if the one fitted to the earlier cuts would not
    /// have helped on the latest cut.
    pub fn fit(predictions: &RollingPredictions, threshold: Threshold) -> Calibration {
        let RollingPredictions { logits, labels, .. } = predictions;
        let fitted = fit_temperature(logits, labels);
        let is_kept = helps(fitted, logits, labels) && helps_on_latest_cut(predictions);
        let temperature = if is_kept { fitted } else { 1.0 };
        let probabilities: Vec<f64> = logits
            .iter()
            .map(|&x| sigmoid(f64::from(x) / temperature))
            .collect();
        let threshold = choose_threshold(&probabilities, labels, threshold);
        Calibration {
            temperature,
            threshold,
            validation: Scores::compute(&probabilities, labels, threshold),
        }
    }

    /// The calibrated probability of success for a logit.
    pub fn probability(&self, logit: f32) -> f64 {
        sigmoid(f64::from(logit) / self.temperature)
    }
}

/// Returns true if the temperature fitted to the earlier cuts helps on the latest cut. With a single
/// cut there is nothing to compare, and the result is true.
fn helps_on_latest_cut(predictions: &RollingPredictions) -> bool {
    let Some(latest) = predictions.cuts.iter().max() else {
        return true;
    };
    let mut earlier = LabelledLogits::default();
    let mut last = LabelledLogits::default();
    for (at, cut) in predictions.cuts.iter().enumerate() {
        let cut_logits = if cut == latest {
            &mut last
        } else {
            &mut earlier
        };
        cut_logits.logits.push(predictions.logits[at]);
        cut_logits.labels.push(predictions.labels[at]);
    }
    if earlier.logits.is_empty() {
        return true;
    }

    let temperature = fit_temperature(&earlier.logits, &earlier.labels);
    helps(temperature, &last.logits, &last.labels)
}

/// Returns true if `temperature` lowers the loss of `logits` without raising their Brier score.
fn helps(temperature: f64, logits: &[f32], labels: &[bool]) -> bool {
    let divided: Vec<f32> = logits.iter().map(|x| x / temperature as f32).collect();
    mean_cross_entropy(&divided, labels) < mean_cross_entropy(logits, labels)
        && squared_error(&divided, labels) <= squared_error(logits, labels)
}

/// The sum of the squared errors of the probabilities of `logits`.
fn squared_error(logits: &[f32], labels: &[bool]) -> f64 {
    let errors = logits.iter().zip(labels).map(|(&logit, &label)| {
        let error = sigmoid(f64::from(logit)) - f64::from(u8::from(label));
        error * error
    });
    errors.sum()
}

#[derive(Default)]
struct LabelledLogits {
    logits: Vec<f32>,
    labels: Vec<bool>,
}

/// Fits the temperature, of at least 1, under which `labels` are most likely. Returns 1 if there is
/// only one kind of label, because such labels cannot determine a temperature.
fn fit_temperature(logits: &[f32], labels: &[bool]) -> f64 {
    if labels.iter().all(|label| *label) || !labels.contains(&true) {
        return 1.0;
    }
    if loss_slope(logits, labels, MAX_INVERSE_TEMPERATURE) <= 0.0 {
        return 1.0 / MAX_INVERSE_TEMPERATURE;
    }

    // The loss is convex in the inverse temperature, so its slope changes sign once. Bisection
    // finds that point.
    let mut low = MIN_INVERSE_TEMPERATURE;
    let mut high = MAX_INVERSE_TEMPERATURE;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if loss_slope(logits, labels, middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    2.0 / (low + high)
}

/// The derivative of the cross-entropy with respect to the inverse temperature.
fn loss_slope(logits: &[f32], labels: &[bool], inverse: f64) -> f64 {
    let terms = logits.iter().zip(labels).map(|(&logit, &label)| {
        let x = f64::from(logit);
        (sigmoid(inverse * x) - f64::from(u8::from(label))) * x
    });
    terms.sum()
}

/// Numbers of right and wrong predictions of success and of failure.
#[derive(Debug, Clone, Copy, Default)]
struct ConfusionCounts {
    right_success: f64,
    wrong_success: f64,
    right_failure: f64,
    wrong_failure: f64,
}

impl ConfusionCounts {
    /// The value that the choice of a threshold maximises.
    fn objective(&self, threshold: Threshold) -> f64 {
        let wrong = self.wrong_success + self.wrong_failure;
        match threshold {
            Threshold::At(_) => 0.0,
            Threshold::Accuracy => self.right_success + self.right_failure,
            Threshold::FMeasure => {
                2.0 * self.right_success / (2.0 * self.right_success + wrong).max(1.0)
            }
            Threshold::Cost {
                wrong_release,
                wrong_removal,
            } => -(wrong_release * self.wrong_success + wrong_removal * self.wrong_failure),
        }
    }

    /// Counts a sample with this label as predicted to fail. Called when the threshold rises above
    /// its probability.
    fn predict_failure(&mut self, label: bool) {
        if label {
            self.right_success -= 1.0;
            self.wrong_failure += 1.0;
        } else {
            self.wrong_success -= 1.0;
            self.right_failure += 1.0;
        }
    }
}

/// Returns the threshold that maximises the objective of `threshold` on these samples. Ties go to
/// the one nearest to 0.5, then to the lowest.
pub fn choose_threshold(probabilities: &[f64], labels: &[bool], threshold: Threshold) -> f64 {
    if let Threshold::At(threshold) = threshold {
        return threshold;
    }
    let mut order: Vec<(f64, bool)> = probabilities
        .iter()
        .copied()
        .zip(labels.iter().copied())
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));

    // Below the lowest probability, every sample is predicted to succeed.
    let positives = labels.iter().filter(|label| **label).count();
    let mut counts = ConfusionCounts {
        right_success: positives as f64,
        wrong_success: (labels.len() - positives) as f64,
        ..ConfusionCounts::default()
    };
    let first = order.first().map_or(1.0, |(probability, _)| *probability);
    let mut best = threshold_between(0.0, first);
    let mut best_objective = counts.objective(threshold);

    // Raise the threshold past one distinct probability after the other.
    let mut groups = order.chunk_by(|a, b| a.0 == b.0).peekable();
    while let Some(group) = groups.next() {
        for &(_, label) in group {
            counts.predict_failure(label);
        }

        let below = group[0].0;
        let above = groups.peek().map_or(1.0, |next| next[0].0);
        let candidate = threshold_between(below, above);
        let objective = counts.objective(threshold);
        let is_nearer = (candidate - 0.5).abs() < (best - 0.5).abs();
        let is_better = objective > best_objective || objective == best_objective && is_nearer;
        if below < above && is_better {
            best = candidate;
            best_objective = objective;
        }
    }
    best
}

/// The largest F-measure over all thresholds on these samples. `None` if it is not defined.
pub fn best_f_measure(probabilities: &[f64], labels: &[bool]) -> Option<f64> {
    let threshold = choose_threshold(probabilities, labels, Threshold::FMeasure);
    f_measure(probabilities, labels, threshold)
}

/// Returns a threshold above `below` and at most `above`: 0.5 if it lies there, else the midpoint.
fn threshold_between(below: f64, above: f64) -> f64 {
    if below < 0.5 && 0.5 <= above {
        return 0.5;
    }
    let middle = (below + above) / 2.0;
    if middle > below { middle } else { above }
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::super::rolling_predictions::RollingPrediction;
    use super::*;

    /// Returns logits whose probabilities are correct, and labels drawn from those probabilities.
    fn drawn(n: usize) -> (Vec<f32>, Vec<bool>) {
        let mut generator = poolcast_base::seed::generator(1, "calibration", &[]);
        let logits: Vec<f32> = (0..n).map(|_| generator.random_range(-3.0..3.0)).collect();
        let labels = logits
            .iter()
            .map(|&x| generator.random_bool(sigmoid(f64::from(x))))
            .collect();
        (logits, labels)
    }

    fn prediction(sample: usize, cut: usize, logit: f32, label: bool) -> RollingPrediction {
        RollingPrediction {
            sample,
            cluster: sample as u32,
            cut,
            logit,
            label,
        }
    }

    fn predictions_of_one_cut(logits: &[f32], labels: &[bool]) -> RollingPredictions {
        let mut predictions = RollingPredictions::default();
        for (sample, (&logit, &label)) in logits.iter().zip(labels).enumerate() {
            predictions.push(prediction(sample, 0, logit, label));
        }
        predictions
    }

    #[test]
    fn a_temperature_that_does_not_help_on_the_latest_cut_is_rejected() {
        let (logits, labels) = drawn(4000);
        let with_latest = |factor: f32| {
            let mut predictions = RollingPredictions::default();
            for (sample, (&logit, &label)) in logits.iter().zip(&labels).enumerate() {
                let is_latest = sample >= 2000;
                let logit = if is_latest { logit } else { factor * logit };
                predictions.push(prediction(sample, usize::from(is_latest), logit, label));
            }
            Calibration::fit(&predictions, Threshold::At(0.5)).temperature
        };
        assert_eq!(with_latest(4.0), 1.0, "only the earlier logits boast");
        let (logits, labels) = drawn(4000);
        let mut overconfident = RollingPredictions::default();
        for (sample, (&logit, &label)) in logits.iter().zip(&labels).enumerate() {
            overconfident.push(prediction(sample, sample / 1000, 4.0 * logit, label));
        }
        let found = Calibration::fit(&overconfident, Threshold::At(0.5)).temperature;
        assert!((found - 4.0).abs() < 0.3, "{found}");
    }

    #[test]
    fn the_temperature_of_overconfident_logits_is_found() {
        let (logits, labels) = drawn(20_000);
        for factor in [1.0, 2.0, 4.0] {
            let overconfident: Vec<f32> = logits.iter().map(|x| factor * x).collect();
            let found = fit_temperature(&overconfident, &labels) / f64::from(factor);
            assert!((found - 1.0).abs() < 0.05, "{found}");
            let fitted = Calibration::fit(
                &predictions_of_one_cut(&overconfident, &labels),
                Threshold::At(0.5),
            );
            let raw: Vec<f64> = overconfident
                .iter()
                .map(|&x| sigmoid(f64::from(x)))
                .collect();
            let (before, after) = (Scores::compute(&raw, &labels, 0.5), fitted.validation);
            assert!(after.ece.expect("defined") < 0.02, "{after:?}");
            assert!(
                factor == 1.0 || after.brier < before.brier && after.ece < before.ece,
                "{before:?} {after:?}"
            );
            assert_eq!(
                (after.roc_auc, after.accuracy),
                (before.roc_auc, before.accuracy),
                "the order is the same"
            );
        }
    }

    #[test]
    fn logits_are_never_sharpened() {
        let (logits, labels) = drawn(4000);
        let cautious: Vec<f32> = logits.iter().map(|x| 0.25 * x).collect();
        assert_eq!(fit_temperature(&cautious, &labels), 1.0);
        let predictions = predictions_of_one_cut(&cautious, &labels);
        let fitted = Calibration::fit(&predictions, Threshold::At(0.5));
        assert_eq!(fitted.temperature, 1.0);
    }

    /// A few certain errors dominate the loss, whose best temperature flattens the many right
    /// answers. The Brier score of all of them is then worse.
    #[test]
    fn a_temperature_that_raises_the_brier_score_is_rejected() {
        let mut logits = vec![3.0; 97];
        logits.extend([9.0; 3]);
        let labels: Vec<bool> = (0..100).map(|at| at < 97).collect();
        let temperature = fit_temperature(&logits, &labels);
        let divided: Vec<f32> = logits.iter().map(|x| x / temperature as f32).collect();
        assert!(temperature > 1.0);
        assert!(mean_cross_entropy(&divided, &labels) < mean_cross_entropy(&logits, &labels));
        assert!(squared_error(&divided, &labels) > squared_error(&logits, &labels));

        let predictions = predictions_of_one_cut(&logits, &labels);
        let fitted = Calibration::fit(&predictions, Threshold::At(0.5));
        assert_eq!(fitted.temperature, 1.0);
    }

    /// Three of four samples at a distance of 2 lie on the side of their label. The most likely
    /// probability of being right is 3/4, a logit of ln 3.
    #[test]
    fn a_temperature_by_hand() {
        let found = fit_temperature(&[2.0, 2.0, 2.0, -2.0], &[true, true, false, false]);
        assert!((found - 2.0 / 3f64.ln()).abs() < 1e-12, "{found}");
    }

    #[test]
    fn uniform_labels_fit_nothing_and_extremes_stay_finite() {
        for label in [true, false] {
            let predicted = predictions_of_one_cut(&[3.0, -1.0, 0.0], &[label; 3]);
            let fitted = Calibration::fit(&predicted, Threshold::FMeasure);
            assert_eq!(fitted.temperature, 1.0);
            assert!(fitted.threshold.is_finite());
        }
        assert_eq!(fit_temperature(&[], &[]), 1.0);
        assert!(
            (fit_temperature(&[1.0, -1.0], &[true, false]) * MAX_INVERSE_TEMPERATURE - 1.0).abs()
                < 1e-9,
            "all right"
        );
        assert!(
            (fit_temperature(&[1.0, -1.0], &[false, true]) * MIN_INVERSE_TEMPERATURE - 1.0).abs()
                < 1e-9,
            "all wrong"
        );
        assert!(fit_temperature(&[f32::MAX, f32::MIN, 0.0], &[true, true, false]).is_finite());
    }

    #[test]
    fn thresholds_by_hand() {
        let (probabilities, labels) = ([0.1, 0.2, 0.3, 0.4, 0.9], [false, true, false, true, true]);
        let chosen = |threshold| choose_threshold(&probabilities, &labels, threshold);
        let cost = |wrong_release, wrong_removal| {
            chosen(Threshold::Cost {
                wrong_release,
                wrong_removal,
            })
        };
        assert_eq!(chosen(Threshold::At(0.7)), 0.7);
        // Thresholds 0.15 and 0.35 both classify four of five samples correctly. 0.35 is nearer to
        // 0.5.
        assert!((chosen(Threshold::Accuracy) - 0.35).abs() < 1e-12);
        // F-measure: 2 * 3 / (2 * 3 + 1) at threshold 0.15, 2 * 2 / (2 * 2 + 1) at 0.35.
        assert!((chosen(Threshold::FMeasure) - 0.15).abs() < 1e-12);
        assert!((cost(1.0, 10.0) - 0.15).abs() < 1e-12);
        assert!((cost(10.0, 1.0) - 0.35).abs() < 1e-12);
        assert!(
            (cost(0.0, 1.0) - 0.15).abs() < 1e-12,
            "of those that miss no success the nearest to 0.5"
        );
        assert_eq!(
            choose_threshold(&[0.2, 0.9], &[false, true], Threshold::Accuracy),
            0.5,
            "0.5 where it is as good"
        );
        assert_eq!(
            choose_threshold(&[0.4, 0.6], &[true, false], Threshold::Accuracy),
            0.2,
            "the lower of two as near"
        );
        assert_eq!(
            choose_threshold(&[0.0, 1.0], &[true, true], Threshold::Accuracy),
            0.0
        );
        assert!(choose_threshold(&[1.0], &[false], Threshold::Accuracy) <= 1.0);
        assert_eq!(choose_threshold(&[], &[], Threshold::FMeasure), 0.5);
    }
}
