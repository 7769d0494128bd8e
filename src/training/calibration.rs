//! Logits and labels of the validation samples → the temperature that turns logits into probabilities (Guo et al. 2017),
//! and the probability from which on success is predicted.

use serde::{Deserialize, Serialize};

use super::metrics::{Scores, probability};
use crate::config::Threshold;

/// The least and the largest inverse temperature: where all samples are on their right side, or all on the wrong one, the
/// likelihood alone would go on for ever.
const INVERSE: (f64, f64) = (1.0 / 64.0, 64.0);

/// How a model's logits are read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// What every logit is divided by.
    pub temperature: f64,
    /// Success is predicted from this probability on.
    pub threshold: f64,
    /// The scores on the validation samples, so read. Those of the best epoch are as before: temperature 1, threshold 0.5.
    pub validation: Scores,
}

impl Calibration {
    /// Fits the temperature to `logits` and `labels`, then chooses the threshold.
    pub(super) fn fit(logits: &[f32], labels: &[bool], threshold: Threshold) -> Calibration {
        let temperature = temperature(logits, labels);
        let probabilities: Vec<f64> = logits
            .iter()
            .map(|&x| probability(f64::from(x) / temperature))
            .collect();
        let threshold = choose(&probabilities, labels, threshold);
        Calibration {
            temperature,
            threshold,
            validation: Scores::of(&probabilities, labels, threshold),
        }
    }

    /// The probability that a logit stands for.
    pub fn probability(&self, logit: f32) -> f64 {
        probability(f64::from(logit) / self.temperature)
    }
}

/// The temperature under which `labels` are most likely; 1 where there is but one kind of label, which would tell nothing.
fn temperature(logits: &[f32], labels: &[bool]) -> f64 {
    if labels.iter().all(|label| *label) || !labels.contains(&true) {
        return 1.0;
    }
    // The loss is convex in the inverse temperature: its slope changes its sign once, where halving finds it.
    let slope = |inverse: f64| {
        let terms = logits.iter().zip(labels).map(|(&logit, &label)| {
            let x = f64::from(logit);
            (probability(inverse * x) - f64::from(u8::from(label))) * x
        });
        terms.sum::<f64>()
    };
    let (mut low, mut high) = INVERSE;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if slope(middle) < 0.0 {
            low = middle
        } else {
            high = middle
        }
    }
    2.0 / (low + high)
}

/// How many predictions are right and wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right_success: f64,
    wrong_success: f64,
    right_failure: f64,
    wrong_failure: f64,
}

impl Counts {
    /// What `threshold` wants most of.
    fn value(&self, threshold: Threshold) -> f64 {
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
}

/// The threshold that is best on these samples; of those that are equally good the one nearest to 0.5, then the lowest.
fn choose(probabilities: &[f64], labels: &[bool], threshold: Threshold) -> f64 {
    if let Threshold::At(threshold) = threshold {
        return threshold;
    }
    let mut order: Vec<(f64, bool)> = probabilities
        .iter()
        .copied()
        .zip(labels.iter().copied())
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut counts = Counts::default();
    for &(_, label) in &order {
        *(if label {
            &mut counts.right_success
        } else {
            &mut counts.wrong_success
        }) += 1.0;
    }
    let first = order.first().map_or(1.0, |(probability, _)| *probability);
    let mut best = (counts.value(threshold), between(0.0, first));
    let mut groups = order.chunk_by(|a, b| a.0 == b.0).peekable();
    // One distinct probability after the other falls below the threshold.
    while let Some(group) = groups.next() {
        for &(_, label) in group {
            let (from, to) = match label {
                true => (&mut counts.right_success, &mut counts.wrong_failure),
                false => (&mut counts.wrong_success, &mut counts.right_failure),
            };
            (*from, *to) = (*from - 1.0, *to + 1.0);
        }
        let (below, above) = (group[0].0, groups.peek().map_or(1.0, |next| next[0].0));
        let candidate = (counts.value(threshold), between(below, above));
        let nearer = (candidate.1 - 0.5).abs() < (best.1 - 0.5).abs();
        if below < above && (candidate.0 > best.0 || candidate.0 == best.0 && nearer) {
            best = candidate;
        }
    }
    best.1
}

/// A threshold above `below` and up to `above`: 0.5 if it is there, else in the middle.
fn between(below: f64, above: f64) -> f64 {
    let middle = (below + above) / 2.0;
    match below < 0.5 && 0.5 <= above {
        true => 0.5,
        false if middle > below => middle,
        false => above,
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;

    /// Logits whose probabilities are right, and labels drawn from them.
    fn drawn(n: usize) -> (Vec<f32>, Vec<bool>) {
        let mut generator = crate::seed::generator(1, "calibration", &[]);
        let logits: Vec<f32> = (0..n).map(|_| generator.random_range(-3.0..3.0)).collect();
        let labels = logits
            .iter()
            .map(|&x| generator.random_bool(probability(f64::from(x))))
            .collect();
        (logits, labels)
    }

    #[test]
    fn the_temperature_of_logits_that_boast_is_found() {
        let (logits, labels) = drawn(20_000);
        for factor in [0.5, 1.0, 4.0] {
            let boasting: Vec<f32> = logits.iter().map(|x| factor * x).collect();
            let found = temperature(&boasting, &labels) / f64::from(factor);
            assert!((found - 1.0).abs() < 0.05, "{found}");
            let fitted = Calibration::fit(&boasting, &labels, Threshold::At(0.5));
            let raw: Vec<f64> = boasting
                .iter()
                .map(|&x| probability(f64::from(x)))
                .collect();
            let (before, after) = (Scores::of(&raw, &labels, 0.5), fitted.validation);
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

    /// Three of four samples at a distance of 2 lie on the side of their label: likeliest is a probability of 3/4 to be
    /// right, which is a logit of ln 3.
    #[test]
    fn a_temperature_by_hand() {
        let found = temperature(&[2.0, 2.0, 2.0, -2.0], &[true, true, false, false]);
        assert!((found - 2.0 / 3f64.ln()).abs() < 1e-12, "{found}");
    }

    #[test]
    fn what_tells_nothing_fits_nothing_and_extremes_stay_finite() {
        for label in [true, false] {
            let fitted = Calibration::fit(&[3.0, -1.0, 0.0], &[label; 3], Threshold::FMeasure);
            assert_eq!(fitted.temperature, 1.0);
            assert!(fitted.threshold.is_finite());
        }
        assert_eq!(temperature(&[], &[]), 1.0);
        assert!(
            (temperature(&[1.0, -1.0], &[true, false]) * INVERSE.1 - 1.0).abs() < 1e-9,
            "all right"
        );
        assert!(
            (temperature(&[1.0, -1.0], &[false, true]) * INVERSE.0 - 1.0).abs() < 1e-9,
            "all wrong"
        );
        assert!(temperature(&[f32::MAX, f32::MIN, 0.0], &[true, true, false]).is_finite());
    }

    #[test]
    fn thresholds_by_hand() {
        let (probabilities, labels) = ([0.1, 0.2, 0.3, 0.4, 0.9], [false, true, false, true, true]);
        let chosen = |threshold| choose(&probabilities, &labels, threshold);
        let cost = |wrong_release, wrong_removal| {
            chosen(Threshold::Cost {
                wrong_release,
                wrong_removal,
            })
        };
        assert_eq!(chosen(Threshold::At(0.7)), 0.7);
        // From 0.2 on and from 0.4 on four of five are right; the latter is nearer to 0.5.
        assert!((chosen(Threshold::Accuracy) - 0.35).abs() < 1e-12);
        // 2 * 3 / (2 * 3 + 1) from 0.2 on, 2 * 2 / (2 * 2 + 1) from 0.4 on.
        assert!((chosen(Threshold::FMeasure) - 0.15).abs() < 1e-12);
        assert!((cost(1.0, 10.0) - 0.15).abs() < 1e-12);
        assert!((cost(10.0, 1.0) - 0.35).abs() < 1e-12);
        assert!(
            (cost(0.0, 1.0) - 0.15).abs() < 1e-12,
            "of those that miss no success the nearest to 0.5"
        );
        assert_eq!(
            choose(&[0.2, 0.9], &[false, true], Threshold::Accuracy),
            0.5,
            "0.5 where it is as good"
        );
        assert_eq!(
            choose(&[0.4, 0.6], &[true, false], Threshold::Accuracy),
            0.2,
            "the lower of two as near"
        );
        assert_eq!(choose(&[0.0, 1.0], &[true, true], Threshold::Accuracy), 0.0);
        assert!(choose(&[1.0], &[false], Threshold::Accuracy) <= 1.0);
        assert_eq!(choose(&[], &[], Threshold::FMeasure), 0.5);
    }
}
