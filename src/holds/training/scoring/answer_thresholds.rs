//! Thresholds for answers: finds, from rolling predictions, the probabilities from which on answers
//! reach a wanted precision.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::rolling_predictions::RollingPredictions;

/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.959_964;

/// Minimum number of answers for a threshold.
const MIN_ANSWERS: usize = 20;

/// Tolerance by which two precisions may be below the wanted one: the lower bound, and the
/// precision of the answers next to a threshold.
const PRECISION_SLACK: f64 = 0.1;

/// Window, in answers, for the precision next to a threshold. Answers far from the threshold are
/// right more often, and would otherwise carry answers that are wrong as often as not.
const NEARBY_ANSWERS: usize = 50;

/// Probability threshold of one answer, with the past precision beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AnswerThreshold {
    /// Probability of success at the threshold.
    pub probability: f64,
    /// Past answers beyond the threshold.
    pub answers: usize,
    /// Right answers among them.
    pub right: usize,
    /// Clusters of the jobs behind these answers.
    pub clusters: usize,
    /// Share of these answers in all predictions.
    pub coverage: f64,
    /// Lower end of the 95 % interval of the precision. Jobs of one cluster tend to have the same
    /// outcome, so the interval counts a cluster as one answer (Wilson 1927, over clusters).
    pub lower: f64,
}

impl AnswerThreshold {
    /// The share of right answers.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.answers as f64
    }

    /// Returns true if the numbers are possible in answers. A file may have any.
    pub(crate) fn is_valid(&self) -> bool {
        let shares = [self.probability, self.coverage, self.lower];
        shares.iter().all(|share| (0.0..=1.0).contains(share))
            && self.answers > 0
            && self.right.max(self.clusters) <= self.answers
    }
}

/// Thresholds of the answers "it will succeed" and "it will not".
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct AnswerThresholds {
    /// Minimum probability at which success was predicted with the wanted precision.
    pub success: Option<AnswerThreshold>,
    /// Maximum probability at which failure was predicted with the wanted precision.
    pub failure: Option<AnswerThreshold>,
}

impl AnswerThresholds {
    /// Finds the thresholds at which answers had this `precision` in `predictions`, read with
    /// `calibration`. Each threshold admits as many answers as possible.
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
        // The answer "it will not succeed" is right where the other is wrong, and surest at low
        // probabilities.
        judged.reverse();
        for hold in &mut judged {
            hold.is_right = !hold.is_right;
        }
        let failure = widest_threshold(&judged, precision);
        AnswerThresholds { success, failure }
    }
}

/// A predicted hold, and whether one answer to it would have been right.
struct JudgedHold {
    probability: f64,
    is_right: bool,
    cluster: u32,
}

/// Returns the last threshold in the order of `judged` up to which answers reach this `precision`.
fn widest_threshold(judged: &[JudgedHold], precision: f64) -> Option<AnswerThreshold> {
    let mut clusters = HashSet::new();
    let mut right = 0;
    let mut right_near = 0;
    let mut widest = None;
    for (at, hold) in judged.iter().enumerate() {
        clusters.insert(hold.cluster);
        right += usize::from(hold.is_right);
        right_near += usize::from(hold.is_right);
        if at >= NEARBY_ANSWERS {
            right_near -= usize::from(judged[at - NEARBY_ANSWERS].is_right);
        }
        // Holds with equal probability cannot be separated by a threshold.
        let next = judged.get(at + 1).map(|next| next.probability);
        if next == Some(hold.probability) {
            continue;
        }

        let answers = at + 1;
        let share = right as f64 / answers as f64;
        let share_near = right_near as f64 / answers.min(NEARBY_ANSWERS) as f64;
        // Jobs of one cluster are not independent, so the bound counts clusters.
        let lower = wilson_lower(share, clusters.len());
        let is_enough = answers >= MIN_ANSWERS
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

/// The lower end of Wilson's 95 % interval for a share of `n`.
pub fn wilson_lower(share: f64, n: usize) -> f64 {
    wilson_bound(share, n as f64, Z)
}

/// The lower end of Wilson's interval for a share of `n` independent cases, `z` standard deviations
/// wide on each side.
pub(crate) fn wilson_bound(share: f64, n: f64, z: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    let centre = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((centre - spread) / (1.0 + z * z / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::super::rolling_predictions::RollingPrediction;
    use super::*;
    use poolcast_base::stats::{Scores, logit};

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

    /// Draws holds with known probabilities, `jobs` of each cluster. One label is drawn for each
    /// whole cluster.
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
    fn thresholds_reach_the_wanted_precision() {
        let predictions = drawn(4000, 1);
        let found = AnswerThresholds::find(&predictions, &PLAIN, 0.9);
        let success = found.success.expect("found");
        let failure = found.failure.expect("found");
        // Over evenly spread probabilities, answers above 0.8 are right in 9 of 10 cases, and
        // answers next to 0.8 in 8 of 10.
        assert!((success.probability - 0.8).abs() < 0.1, "{success:?}");
        assert!((failure.probability - 0.2).abs() < 0.1, "{failure:?}");
        for side in [success, failure] {
            assert!(side.precision() >= 0.9 && side.lower >= 0.8, "{side:?}");
            assert!((side.coverage - 0.2).abs() < 0.1, "{side:?}");
        }
    }

    #[test]
    fn sure_answers_do_not_carry_unsure_ones() {
        let mut predictions = RollingPredictions::default();
        for sample in 0..1000 {
            // 600 sure failures would carry 200 answers that are wrong as often as right.
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
    fn jobs_of_few_clusters_give_no_thresholds() {
        let found = AnswerThresholds::find(&drawn(20, 200), &PLAIN, 0.9);
        assert_eq!(found, AnswerThresholds::default());
        let few = AnswerThresholds::find(&drawn(19, 1), &PLAIN, 0.5);
        assert_eq!(few, AnswerThresholds::default());
        let none = AnswerThresholds::find(&RollingPredictions::default(), &PLAIN, 0.5);
        assert_eq!(none, AnswerThresholds::default());
    }

    /// By hand, from the formula: 10 of 10 give 10 / (10 + z^2).
    #[test]
    fn wilson_bound_by_hand() {
        assert!((wilson_lower(1.0, 10) - 0.722_467).abs() < 1e-6);
        assert_eq!((wilson_lower(0.0, 10), wilson_lower(1.0, 0)), (0.0, 0.0));
    }
}
