//! Limits of answers: the probabilities from which on earlier answers were right often enough.
//!
//! A limit is chosen by a lower bound of the share of right answers, not by the share itself: the
//! widest of many limits whose share looks sufficient is sufficient by luck. Each kind of answer has
//! limits of its own, for the odds that make it right: a release is right if the job succeeds now,
//! a repair if the fault does not pass, and a later release if it does.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::training::{AnswerThreshold, wilson_bound};

/// Quantile of the normal distribution for a one-sided 90 % bound.
const Z: f64 = 1.281_552;
/// Minimum number of answers beyond a limit.
const MIN_ANSWERS: usize = 20;
/// Number of limits that are tried.
const TRIED_LIMITS: usize = 20;
/// Minimum probability of a firm answer, whatever earlier answers were: where nearly all jobs fail,
/// "it fails" is right for any probability.
const MIN_FIRM: f64 = 0.8;
/// Minimum probability of a probable release, now or later.
const MIN_PROBABLE: f64 = 0.5;
/// Minimum probability of a probable repair. It takes a person's time, which is lost if the fault
/// passes.
const MIN_PROBABLE_REPAIR: f64 = 0.7;

/// An earlier answer whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledAnswer {
    /// Index of the moment at which it was given. Answers of one moment share what happened then.
    pub(crate) moment: u32,
    /// Access point and cluster of the job.
    pub(crate) cluster: (u32, i32),
    /// Probability of success, now or later.
    pub(crate) probability: f64,
    pub(crate) is_success: bool,
}

/// An earlier answer of the rule for a hold code that is known to be right or wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledRule {
    /// Code and subcode of the hold.
    pub(crate) code: (i32, i32),
    pub(crate) is_right: bool,
}

/// An earlier release because other jobs got past the cause, whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledRelease {
    /// Index of the moment at which it was advised.
    pub(crate) moment: u32,
    pub(crate) is_success: bool,
}

/// All earlier answers whose outcomes are known, in order of their moments.
#[derive(Debug, Default)]
pub(crate) struct SettledRecord {
    /// All answers, by the success of a release at that moment.
    pub(crate) now: Vec<SettledAnswer>,
    /// Answers other than releases and probes, by the success of a later release.
    pub(crate) later: Vec<SettledAnswer>,
    /// Answers by rules.
    pub(crate) rules: Vec<SettledRule>,
    /// Releases because other jobs got past the cause.
    pub(crate) recovered: Vec<SettledRelease>,
}

/// Limits for one kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitPair {
    /// Limit of firm answers.
    pub firm: Option<AnswerThreshold>,
    /// Limit of probable answers.
    pub probable: Option<AnswerThreshold>,
}

/// The earlier answers of the rule for one hold code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RuleRecord {
    /// Code and subcode of the hold.
    pub code: (i32, i32),
    /// Answers whose outcome is known.
    pub answers: usize,
    /// Right answers among them.
    pub right: usize,
}

impl RuleRecord {
    /// The share of right answers.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.answers as f64
    }
}

/// The earlier releases because other jobs got past the cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRecord {
    /// Releases whose outcome is known.
    pub releases: usize,
    /// Successes among them.
    pub successes: usize,
    /// Lower bound of the share of successes, with a confidence of 90 %.
    pub lower: f64,
}

/// Limits for all kinds of answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AnswerLimits {
    /// Minimum odds now for "released now, it succeeds".
    pub release: LimitPair,
    /// Maximum odds later for "it fails until it is repaired".
    pub fix: LimitPair,
    /// Minimum odds later for "released later, it succeeds".
    pub later: LimitPair,
    /// Rules with enough known answers.
    pub rules: Vec<RuleRecord>,
    /// Releases because other jobs got past the cause, if enough of their outcomes are known.
    #[serde(default)]
    pub recovered: Option<RecoveryRecord>,
}

impl AnswerLimits {
    /// Finds the limits at which the answers in `settled` were right with the precisions `firm` and
    /// `probable`.
    pub(crate) fn find(settled: &SettledRecord, firm: f64, probable: f64) -> AnswerLimits {
        let pair = |sorted: &[SettledAnswer], right_outcome: bool| {
            let is_right = |answer: &SettledAnswer| answer.is_success == right_outcome;
            LimitPair {
                firm: widest(sorted, firm, is_right),
                probable: widest(sorted, probable, is_right),
            }
        };
        let from_high = |answers: &[SettledAnswer]| {
            let mut sorted = answers.to_vec();
            sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability));
            sorted
        };
        let now = from_high(&settled.now);
        let mut later = from_high(&settled.later);
        let passes = pair(&later, true);
        later.reverse();
        AnswerLimits {
            release: pair(&now, true).clamped(f64::max, MIN_FIRM, MIN_PROBABLE),
            fix: pair(&later, false).clamped(f64::min, 1.0 - MIN_FIRM, 1.0 - MIN_PROBABLE_REPAIR),
            later: passes.clamped(f64::max, MIN_FIRM, MIN_PROBABLE),
            rules: rule_records(&settled.rules),
            recovered: recovery_record(&settled.recovered),
        }
    }

    /// Returns the record of the rule for `code`, if enough of its answers are known.
    pub fn rule(&self, code: (i32, i32)) -> Option<&RuleRecord> {
        self.rules.iter().find(|record| record.code == code)
    }
}

/// Counts the answers of each rule with enough of them, in order of the codes.
fn rule_records(settled: &[SettledRule]) -> Vec<RuleRecord> {
    let mut records: BTreeMap<(i32, i32), RuleRecord> = BTreeMap::new();
    for answer in settled {
        let record = records.entry(answer.code).or_insert(RuleRecord {
            code: answer.code,
            answers: 0,
            right: 0,
        });
        record.answers += 1;
        record.right += usize::from(answer.is_right);
    }
    let is_known = |record: &RuleRecord| record.answers >= MIN_ANSWERS;
    records.into_values().filter(is_known).collect()
}

fn recovery_record(settled: &[SettledRelease]) -> Option<RecoveryRecord> {
    let mut shares = MomentShares::default();
    for release in settled {
        shares.add(release.moment, release.is_success);
    }
    (shares.answers >= MIN_ANSWERS).then(|| RecoveryRecord {
        releases: shares.answers,
        successes: shares.right,
        lower: shares.lower_bound(),
    })
}

impl LimitPair {
    /// Moves the limits with `clamp` to the probabilities `firm` and `probable`.
    fn clamped(self, clamp: impl Fn(f64, f64) -> f64, firm: f64, probable: f64) -> LimitPair {
        let move_limit = |limit: Option<AnswerThreshold>, to: f64| {
            limit.map(|limit| AnswerThreshold {
                probability: clamp(limit.probability, to),
                ..limit
            })
        };
        LimitPair {
            firm: move_limit(self.firm, firm),
            probable: move_limit(self.probable, probable),
        }
    }
}

/// Returns the widest of a few limits in `sorted`, which begins at the strict end, at which the lower
/// bound of the share of right answers reaches `precision`. The limits are at fixed shares of the
/// answers: among many limits, some would pass by luck.
fn widest(
    sorted: &[SettledAnswer],
    precision: f64,
    is_right: impl Fn(&SettledAnswer) -> bool,
) -> Option<AnswerThreshold> {
    let mut shares = MomentShares::default();
    let mut clusters = HashSet::new();
    let mut widest = None;
    let mut tried = 0;
    for (at, answer) in sorted.iter().enumerate() {
        shares.add(answer.moment, is_right(answer));
        clusters.insert(answer.cluster);
        let next = sorted.get(at + 1).map(|next| next.probability);
        let step = (at + 1) * TRIED_LIMITS / sorted.len();
        // A limit cannot separate equal probabilities.
        if at + 1 < MIN_ANSWERS || next == Some(answer.probability) || step == tried {
            continue;
        }
        tried = step;
        let lower = shares.lower_bound();
        if lower >= precision {
            widest = Some(AnswerThreshold {
                probability: answer.probability,
                answers: shares.answers,
                right: shares.right,
                clusters: clusters.len(),
                coverage: shares.answers as f64 / sorted.len() as f64,
                lower,
            });
        }
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

    /// Returns the limits that `answers` earn, for now and for later.
    fn limits(answers: &[SettledAnswer]) -> AnswerLimits {
        let settled = SettledRecord {
            now: answers.to_vec(),
            later: answers.to_vec(),
            ..SettledRecord::default()
        };
        AnswerLimits::find(&settled, 0.9, 0.75)
    }

    #[test]
    fn limits_reach_the_precision_with_confidence() {
        let limits = limits(&even(4000, 20));
        let firm = limits.release.firm.expect("found");
        // Above 0.8, answers of these are right in nine of ten cases.
        assert!((0.8..0.87).contains(&firm.probability), "{firm:?}");
        assert!(firm.lower >= 0.9 && firm.right * 10 >= firm.answers * 9);
        let probable = limits.release.probable.expect("found");
        assert!((0.5..0.6).contains(&probable.probability), "{probable:?}");
        let fails = limits.fix.firm.expect("found");
        assert!((0.1..0.2).contains(&fails.probability), "{fails:?}");
        assert_eq!(limits.later, limits.release, "the same answers");
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
        let limits = limits(&failing);
        let limit = |limit: Option<AnswerThreshold>| limit.expect("found").probability;
        assert!(limit(limits.fix.firm) <= 0.2, "{limits:?}");
        assert_eq!(limit(limits.fix.probable), 1.0 - MIN_PROBABLE_REPAIR);
    }

    #[test]
    fn few_or_wrong_answers_give_no_limit() {
        assert_eq!(limits(&even(4000, 20)[..19]), AnswerLimits::default());
        let wrong: Vec<SettledAnswer> = even(400, 20)
            .into_iter()
            .map(|answer| SettledAnswer {
                is_success: !answer.is_success,
                ..answer
            })
            .collect();
        assert_eq!(limits(&wrong), AnswerLimits::default());
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

    #[test]
    fn releases_after_others_got_past_have_a_record() {
        let record = |count: u32, is_success: fn(u32) -> bool| {
            let recovered = (0..count).map(|at| SettledRelease {
                moment: at / 10,
                is_success: is_success(at),
            });
            let settled = SettledRecord {
                recovered: recovered.collect(),
                ..SettledRecord::default()
            };
            AnswerLimits::find(&settled, 0.9, 0.75).recovered
        };
        assert_eq!(record(19, |_| true), None, "too few");
        let lower = |record: Option<RecoveryRecord>| record.expect("a record").lower;
        assert!(lower(record(200, |at| at % 20 != 0)) > 0.9);
        assert!(lower(record(30, |at| at % 20 != 0)) < 0.9, "three moments");
        let one_bad_moment = record(200, |at| at / 10 != 7);
        assert_eq!(one_bad_moment.expect("a record").successes, 190);
        assert!(
            lower(one_bad_moment) < 0.9,
            "what fails together is one failure"
        );
    }

    #[test]
    fn rules_have_records_by_code() {
        let rule = |code, is_right| SettledRule { code, is_right };
        let mut rules: Vec<SettledRule> = (0..200).map(|_| rule((13, 2), true)).collect();
        rules.extend((0..200).map(|at| rule((6, 2), at % 2 == 0)));
        rules.extend((0..19).map(|_| rule((12, 2), true)));
        let settled = SettledRecord {
            rules,
            ..SettledRecord::default()
        };
        let limits = AnswerLimits::find(&settled, 0.9, 0.75);
        let precision = |code| limits.rule(code).map(RuleRecord::precision);
        assert_eq!(precision((13, 2)), Some(1.0));
        assert_eq!(precision((6, 2)), Some(0.5));
        assert_eq!(precision((12, 2)), None, "too few");
    }

    #[test]
    fn few_wrong_answers_at_the_strict_end_do_not_hide_a_limit() {
        let mut answers = even(4000, 20);
        for answer in answers.iter_mut().rev().take(8) {
            answer.is_success = false;
        }
        let firm = limits(&answers).release.firm.expect("found");
        assert!((0.8..0.9).contains(&firm.probability), "{firm:?}");
    }
}
