//! Limits of answers: the probabilities from which on earlier answers were right often enough.
//!
//! A limit is chosen by a lower bound of the share of right answers, not by the share itself: the
//! widest of many limits whose share looks sufficient is sufficient by luck.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::training::{AnswerThreshold, wilson_bound};

/// Quantile of the normal distribution for a one-sided 90 % bound.
const Z: f64 = 1.281_552;
/// Minimum number of answers beyond a limit.
const MIN_ANSWERS: usize = 20;
/// Minimum probability of a firm answer, whatever earlier answers were: where nearly all jobs fail,
/// "it fails" is right for any probability.
const MIN_FIRM: f64 = 0.8;
/// Minimum probability of a probable answer.
const MIN_PROBABLE: f64 = 0.5;

/// An earlier answer whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledAnswer {
    /// Index of the moment at which it was given. Answers of one moment share what happened then.
    pub(crate) moment: u32,
    /// Access point and cluster of the job.
    pub(crate) cluster: (u32, i32),
    /// Probability of success.
    pub(crate) probability: f64,
    pub(crate) is_success: bool,
}

/// Limits for one kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitPair {
    /// Limit of firm answers.
    pub firm: Option<AnswerThreshold>,
    /// Limit of probable answers.
    pub probable: Option<AnswerThreshold>,
}

/// Limits for both kinds of answers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AnswerLimits {
    /// Minimum probabilities for "released now, it succeeds".
    pub release: LimitPair,
    /// Maximum probabilities for "released now, it fails".
    pub failure: LimitPair,
}

impl AnswerLimits {
    /// Finds the limits at which `settled` answers were right with the precisions `firm` and
    /// `probable`.
    pub(crate) fn find(settled: &[SettledAnswer], firm: f64, probable: f64) -> AnswerLimits {
        let mut sorted = settled.to_vec();
        sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let release = LimitPair {
            firm: widest(&sorted, firm, |answer| answer.is_success),
            probable: widest(&sorted, probable, |answer| answer.is_success),
        };
        sorted.reverse();
        let failure = LimitPair {
            firm: widest(&sorted, firm, |answer| !answer.is_success),
            probable: widest(&sorted, probable, |answer| !answer.is_success),
        };
        AnswerLimits {
            release: release.clamped(f64::max, |minimum| minimum),
            failure: failure.clamped(f64::min, |minimum| 1.0 - minimum),
        }
    }
}

impl LimitPair {
    /// Moves the limits with `clamp` to those that follow from the minimum probabilities.
    fn clamped(
        self,
        clamp: impl Fn(f64, f64) -> f64,
        from_minimum: impl Fn(f64) -> f64,
    ) -> LimitPair {
        let move_limit = |limit: Option<AnswerThreshold>, minimum: f64| {
            limit.map(|limit| AnswerThreshold {
                probability: clamp(limit.probability, from_minimum(minimum)),
                ..limit
            })
        };
        LimitPair {
            firm: move_limit(self.firm, MIN_FIRM),
            probable: move_limit(self.probable, MIN_PROBABLE),
        }
    }
}

/// Goes from the strict end of `sorted` inwards as long as the lower bound reaches `precision`, and
/// returns the last limit.
fn widest(
    sorted: &[SettledAnswer],
    precision: f64,
    is_right: impl Fn(&SettledAnswer) -> bool,
) -> Option<AnswerThreshold> {
    let mut shares = MomentShares::default();
    let mut clusters = HashSet::new();
    let mut widest = None;
    for (at, answer) in sorted.iter().enumerate() {
        shares.add(answer.moment, is_right(answer));
        clusters.insert(answer.cluster);
        let next = sorted.get(at + 1).map(|next| next.probability);
        // A limit cannot separate equal probabilities.
        if at + 1 < MIN_ANSWERS || next == Some(answer.probability) {
            continue;
        }
        let lower = shares.lower_bound();
        if lower < precision {
            break;
        }
        widest = Some(AnswerThreshold {
            probability: answer.probability,
            answers: shares.answers,
            right: shares.right,
            clusters: clusters.len(),
            coverage: shares.answers as f64 / sorted.len() as f64,
            lower,
        });
    }
    widest
}

/// Right answers by moment.
#[derive(Debug, Default)]
pub(crate) struct MomentShares {
    /// Answers and right answers of each moment.
    moments: Vec<(usize, usize)>,
    pub(crate) answers: usize,
    pub(crate) right: usize,
}

impl MomentShares {
    pub(crate) fn add(&mut self, moment: u32, is_right: bool) {
        let moment = moment as usize;
        if self.moments.len() <= moment {
            self.moments.resize(moment + 1, (0, 0));
        }
        self.moments[moment].0 += 1;
        self.moments[moment].1 += usize::from(is_right);
        self.answers += 1;
        self.right += usize::from(is_right);
    }

    /// The share of right answers.
    pub(crate) fn share(&self) -> f64 {
        self.right as f64 / self.answers.max(1) as f64
    }

    /// Returns the lower end of Wilson's one-sided 90 % interval for the share, with the number of
    /// independent answers that the spread over the moments shows.
    pub(crate) fn lower_bound(&self) -> f64 {
        wilson_bound(self.share(), self.independent_answers(), Z)
    }

    /// Returns the number of independent answers with the same variance of the share: Cochran,
    /// Sampling Techniques, 3rd edition, formula 9A.6, over the moments.
    fn independent_answers(&self) -> f64 {
        let answers = self.answers as f64;
        let share = self.share();
        let used = self.moments.iter().filter(|(given, _)| *given > 0);
        let (mut moments, mut squares) = (0.0, 0.0);
        for &(given, right) in used {
            moments += 1.0;
            squares += (right as f64 - share * given as f64).powi(2);
        }
        if moments < 2.0 {
            return moments;
        }
        let variance = moments / (moments - 1.0) * squares / answers.powi(2);
        let independent = share * (1.0 - share) / variance.max(f64::MIN_POSITIVE);
        independent.clamp(moments, answers.max(moments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns answers with evenly spread probabilities, right with exactly these, in `moments`.
    fn even(count: u32, moments: u32) -> Vec<SettledAnswer> {
        let answer = |at: u32| SettledAnswer {
            moment: at % moments,
            cluster: (0, at as i32),
            probability: (f64::from(at) + 0.5) / f64::from(count),
            is_success: f64::from(at * 7919 % 101) / 101.0 < f64::from(at) / f64::from(count),
        };
        (0..count).map(answer).collect()
    }

    #[test]
    fn limits_reach_the_precision_with_confidence() {
        let limits = AnswerLimits::find(&even(4000, 20), 0.9, 0.75);
        let firm = limits.release.firm.expect("found");
        // Above 0.8, answers of these are right in nine of ten cases.
        assert!((0.8..0.85).contains(&firm.probability), "{firm:?}");
        assert!(firm.lower >= 0.9 && firm.right * 10 >= firm.answers * 9);
        let probable = limits.release.probable.expect("found");
        assert!((0.5..0.55).contains(&probable.probability), "{probable:?}");
        let fails = limits.failure.firm.expect("found");
        assert!((0.15..0.2).contains(&fails.probability), "{fails:?}");
    }

    #[test]
    fn a_log_where_nearly_all_fail_gives_no_firm_answer_to_high_odds() {
        let failing: Vec<SettledAnswer> = even(4000, 20)
            .into_iter()
            .map(|answer| SettledAnswer {
                is_success: answer.is_success && answer.cluster.1 % 10 == 0,
                ..answer
            })
            .collect();
        let limits = AnswerLimits::find(&failing, 0.9, 0.75);
        let limit = |limit: Option<AnswerThreshold>| limit.expect("found").probability;
        assert!(limit(limits.failure.firm) <= 0.2, "{limits:?}");
        assert_eq!(limit(limits.failure.probable), 0.5);
    }

    #[test]
    fn few_or_wrong_answers_give_no_limit() {
        assert_eq!(
            AnswerLimits::find(&even(4000, 20)[..19], 0.9, 0.75),
            AnswerLimits::default()
        );
        let wrong: Vec<SettledAnswer> = even(400, 20)
            .into_iter()
            .map(|answer| SettledAnswer {
                is_success: !answer.is_success,
                ..answer
            })
            .collect();
        assert_eq!(
            AnswerLimits::find(&wrong, 0.9, 0.75),
            AnswerLimits::default()
        );
    }

    #[test]
    fn answers_of_one_moment_count_as_one() {
        let mut together = MomentShares::default();
        let mut apart = MomentShares::default();
        for at in 0..200 {
            together.add(at / 20, at / 20 != 0);
            apart.add(at / 20, at % 10 != 0);
        }
        assert_eq!(together.share(), apart.share());
        assert!(together.lower_bound() < 0.8, "{}", together.lower_bound());
        assert!(apart.lower_bound() > 0.86, "{}", apart.lower_bound());
    }
}
