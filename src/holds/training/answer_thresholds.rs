//! Rolling predictions → from which probability on an answer was right as often as is wanted.

use std::collections::HashSet;

use serde::Serialize;

use super::calibration::Calibration;
use super::rolling_predictions::RollingPredictions;

/// The quantile of the normal distribution for an interval of 95 %.
const Z: f64 = 1.959_964;

/// The least answers that show anything.
const LEAST_ANSWERS: usize = 20;

/// By how much the lower bound of a precision, and the precision of the answers next to a threshold,
/// may be below the precision that is wanted.
const PRECISION_SLACK: f64 = 0.1;

/// So many answers are next to a threshold. Those far from it are right more often, and would
/// otherwise carry answers that are wrong as often as not.
const NEXT_TO_THRESHOLD: usize = 50;

/// A probability from which on, or up to which, one answer was given, and what came of that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AnswerThreshold {
    /// The probability of success.
    pub probability: f64,
    /// How many such answers there were.
    pub answers: usize,
    /// How many of them were right.
    pub right: usize,
    /// Of how many clusters their jobs were.
    pub clusters: usize,
    /// The share of all predictions that they were.
    pub coverage: f64,
    /// The lower end of the 95 % interval of their precision. Jobs of one cluster share their fate,
    /// so that a cluster counts as one answer (Wilson 1927, over clusters).
    pub lower: f64,
}

impl AnswerThreshold {
    /// The share of right answers.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.answers as f64
    }
}

/// The thresholds of the answers "it will succeed" and "it will not".
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct AnswerThresholds {
    /// From this probability on success was said as rightly as is wanted.
    pub success: Option<AnswerThreshold>,
    /// Up to this probability failure was.
    pub failure: Option<AnswerThreshold>,
}

impl AnswerThresholds {
    /// Those under which answers were right with `precision`, as far as `predictions` tell once
    /// `calibration` has read them: each gives as many answers as it can.
    pub fn find(
        predictions: &RollingPredictions,
        calibration: &Calibration,
        precision: f64,
    ) -> AnswerThresholds {
        let mut judged = Vec::with_capacity(predictions.logits.len());
        for (at, &logit) in predictions.logits.iter().enumerate() {
            judged.push(JudgedHold {
                probability: calibration.probability(logit),
                is_right: predictions.labels[at],
                cluster: predictions.clusters[at],
            });
        }

        judged.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let success = widest_threshold(&judged, precision);
        judged.reverse();
        for hold in &mut judged {
            hold.is_right = !hold.is_right;
        }
        let failure = widest_threshold(&judged, precision);
        AnswerThresholds { success, failure }
    }
}

/// A hold that was predicted, and whether one answer to it would have been right.
struct JudgedHold {
    probability: f64,
    is_right: bool,
    cluster: u32,
}

/// The last threshold in the order of `judged` before which answers are right with `precision`.
fn widest_threshold(judged: &[JudgedHold], precision: f64) -> Option<AnswerThreshold> {
    let mut clusters = HashSet::new();
    let mut right = 0;
    let mut right_near = 0;
    let mut widest = None;
    for (at, hold) in judged.iter().enumerate() {
        clusters.insert(hold.cluster);
        right += usize::from(hold.is_right);
        right_near += usize::from(hold.is_right);
        if at >= NEXT_TO_THRESHOLD {
            right_near -= usize::from(judged[at - NEXT_TO_THRESHOLD].is_right);
        }
        let next = judged.get(at + 1).map(|next| next.probability);
        if next == Some(hold.probability) {
            continue;
        }

        let answers = at + 1;
        let share = right as f64 / answers as f64;
        let share_near = right_near as f64 / answers.min(NEXT_TO_THRESHOLD) as f64;
        let lower = wilson_lower(share, clusters.len());
        let is_enough = answers >= LEAST_ANSWERS
            && share >= precision
            && share_near.min(lower) >= precision - PRECISION_SLACK;
        if is_enough {
            widest = Some(AnswerThreshold {
                probability: hold.probability,
                answers,
                right,
                clusters: clusters.len(),
                coverage: answers as f64 / judged.len() as f64,
                lower,
            });
        }
    }
    widest
}

/// The lower end of Wilson's 95 % interval of a share of `n`.
pub fn wilson_lower(share: f64, n: usize) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let n = n as f64;
    let centre = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - spread) / (1.0 + Z * Z / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::super::rolling_predictions::RollingPrediction;
    use poolcast_base::stats::{Scores, logit};
    use super::*;

    const PLAIN: Calibration = Calibration {
        temperature: 1.0,
        threshold: 0.5,
        validation: Scores {
            accuracy: None,
            precision: None,
            recall: None,
            f_measure: None,
            roc_auc: None,
            average_precision: None,
            brier: None,
            ece: None,
        },
    };

    /// Holds with known odds, `jobs` of each cluster, whose labels are drawn from the odds, once for
    /// the whole cluster.
    fn drawn(clusters: u32, jobs: usize) -> RollingPredictions {
        let mut generator = poolcast_base::seed::generator(1, "answers", &[]);
        let mut predictions = RollingPredictions::default();
        for cluster in 0..clusters {
            let probability = generator.random_range(0.01..0.99);
            let label = generator.random_bool(probability);
            for _ in 0..jobs {
                predictions.push(RollingPrediction {
                    sample: predictions.samples.len(),
                    cluster,
                    cut: 0,
                    logit: logit(probability),
                    label,
                });
            }
        }
        predictions
    }

    #[test]
    fn thresholds_give_the_precision_that_is_wanted() {
        let predictions = drawn(4000, 1);
        let found = AnswerThresholds::find(&predictions, &PLAIN, 0.9);
        let success = found.success.expect("found");
        let failure = found.failure.expect("found");
        // Over odds that are spread evenly, those above 0.8 are right in 9 of 10, and those next to
        // it in 8 of 10.
        assert!((success.probability - 0.8).abs() < 0.1, "{success:?}");
        assert!((failure.probability - 0.2).abs() < 0.1, "{failure:?}");
        for side in [success, failure] {
            assert!(side.precision() >= 0.9 && side.lower >= 0.8, "{side:?}");
            assert!((side.coverage - 0.2).abs() < 0.1, "{side:?}");
        }
    }

    #[test]
    fn answers_that_are_sure_carry_no_others() {
        let mut predictions = RollingPredictions::default();
        for sample in 0..1000 {
            // 600 sure failures, which would carry 200 coins.
            let is_sure = sample < 600;
            predictions.push(RollingPrediction {
                sample,
                cluster: sample as u32,
                cut: 0,
                logit: logit(if is_sure {
                    0.02
                } else {
                    0.5 + sample as f64 / 4000.0
                }),
                label: !is_sure && sample % 2 == 0,
            });
        }
        let found = AnswerThresholds::find(&predictions, &PLAIN, 0.75);
        let failure = found.failure.expect("found");
        assert!(failure.answers < 640, "{failure:?}");
    }

    #[test]
    fn many_jobs_of_few_clusters_show_little() {
        let found = AnswerThresholds::find(&drawn(20, 200), &PLAIN, 0.9);
        assert_eq!(found, AnswerThresholds::default());
        let few = AnswerThresholds::find(&drawn(19, 1), &PLAIN, 0.5);
        assert_eq!(few, AnswerThresholds::default());
        let none = AnswerThresholds::find(&RollingPredictions::default(), &PLAIN, 0.5);
        assert_eq!(none, AnswerThresholds::default());
    }

    /// From the formula, by hand: 10 of 10 give 10 / (10 + z^2).
    #[test]
    fn a_bound_by_hand() {
        assert!((wilson_lower(1.0, 10) - 0.722_467).abs() < 1e-6);
        assert_eq!((wilson_lower(0.0, 10), wilson_lower(1.0, 0)), (0.0, 0.0));
    }
}
