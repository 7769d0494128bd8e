//! Limits of answers: the probabilities from which on earlier answers were right often enough.
//!
//! A limit is chosen by a lower bound of the share of right answers, not by the share itself: the
//! widest of many limits whose share looks sufficient is sufficient by luck. Each kind of answer has
//! limits of its own, for the odds that make it right: a release is right if the job succeeds now,
//! a repair if the fault does not pass, and a later release if it does.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::named_fault::NamedFault;
use poolcast_base::stats::wilson_bound;

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
    /// Index of the cause of the hold. If a fault stays, all answers about its cause are right.
    pub(crate) cause: u32,
    /// Access point and cluster of the job.
    pub(crate) cluster: (u32, i32),
    /// Probability of success, now or later.
    pub(crate) probability: f64,
    pub(crate) is_success: bool,
}

/// An earlier answer of a rule that is known to be right or wrong. It is wrong only if the job succeeded after a
/// policy had released it. Before a release by hand, a person may have made the repair that the rule asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledRule {
    pub(crate) key: RuleKey,
    /// True if the evidence in the log agreed with the rule.
    pub(crate) agreed: bool,
    pub(crate) is_right: bool,
}

/// An earlier release because other jobs got past the cause, whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledRelease {
    pub(crate) key: RecoveryKey,
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
    /// Share of these answers in all answers.
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

/// Limits for one kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitPair {
    /// Limit of firm answers.
    pub firm: Option<AnswerThreshold>,
    /// Limit of probable answers.
    pub probable: Option<AnswerThreshold>,
}

/// The holds that one rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleKey {
    /// Code and subcode of the hold.
    pub code: (i32, i32),
    /// The fault that the hold reason names.
    pub named_fault: NamedFault,
    /// The earlier releases that failed.
    pub failed: FailedReleases,
}

/// What earlier releases have shown about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedReleases {
    /// They have not shown that it stays.
    Unknown,
    /// For a request that was too low: a job of the cluster was released and held for it again, and none
    /// has got past it since.
    OfCluster,
    /// The job was released several times, and held again for the same reason each time.
    OfJob,
}

/// The earlier answers of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RuleRecord {
    /// The holds that the rule is for.
    pub key: RuleKey,
    /// Answers whose outcome is known.
    pub answers: usize,
    /// Right answers among them.
    pub right: usize,
    /// Answers where the evidence in the log agreed with the rule.
    pub agreed: usize,
    /// Right answers among those.
    pub agreed_right: usize,
}

impl RuleRecord {
    /// The share of right answers.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.answers as f64
    }

    /// The share of right answers where the evidence in the log agreed with the rule; `None` if too few
    /// such answers are known.
    pub fn agreed_precision(&self) -> Option<f64> {
        (self.agreed >= MIN_ANSWERS).then(|| self.agreed_right as f64 / self.agreed as f64)
    }

    fn add(&mut self, answer: &SettledRule) {
        let is_right = usize::from(answer.is_right);
        self.answers += 1;
        self.right += is_right;
        if answer.agreed {
            self.agreed += 1;
            self.agreed_right += is_right;
        }
    }
}

/// The releases, because other jobs got past the cause, that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecoveryKey {
    /// Code and subcode of the hold.
    pub code: (i32, i32),
    /// True if another job of the cluster succeeded since one failed like this. Nothing else shows that
    /// the job has no further fault.
    pub has_cluster_succeeded: bool,
}

/// The earlier releases because other jobs got past the cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecoveryRecord {
    /// The releases that are counted.
    pub key: RecoveryKey,
    /// Releases whose outcome is known.
    pub releases: usize,
    /// Successes among them.
    pub successes: usize,
}

impl RecoveryRecord {
    /// The share of successes.
    pub fn precision(&self) -> f64 {
        self.successes as f64 / self.releases as f64
    }

    /// The lower end of Wilson's one-sided 90 % interval for that share.
    pub fn lower_precision(&self) -> f64 {
        wilson_bound(self.precision(), self.releases as f64, Z)
    }
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
    /// Releases because other jobs got past the cause, where enough of their outcomes are known.
    pub recovered: Vec<RecoveryRecord>,
}

impl AnswerLimits {
    /// Finds the limits at which the answers in `settled` were right with the precisions `firm` and
    /// `probable`.
    pub(crate) fn find(settled: &SettledRecord, firm: f64, probable: f64) -> AnswerLimits {
        let pair = |claim, answers: &[SettledAnswer]| LimitPair {
            firm: widest(claim, answers, firm),
            probable: widest(claim, answers, probable),
        };
        let release = pair(Claim::Succeeds, &settled.now);
        let fix = pair(Claim::Stays, &settled.later);
        let later = pair(Claim::Succeeds, &settled.later);
        AnswerLimits {
            release: release.clamped(f64::max, MIN_FIRM, MIN_PROBABLE),
            fix: fix.clamped(f64::min, 1.0 - MIN_FIRM, 1.0 - MIN_PROBABLE_REPAIR),
            later: later.clamped(f64::max, MIN_FIRM, MIN_PROBABLE),
            rules: rule_records(&settled.rules),
            recovered: recovery_records(&settled.recovered),
        }
    }

    /// Returns true if the numbers are possible in answers. A file may have any.
    pub(super) fn is_valid(&self) -> bool {
        let pairs = [self.release, self.fix, self.later];
        let mut limits = pairs.iter().flat_map(|pair| [pair.firm, pair.probable]);
        let is_rule = |rule: &RuleRecord| {
            rule.answers > 0
                && rule.right.max(rule.agreed) <= rule.answers
                && rule.agreed_right <= rule.agreed.min(rule.right)
        };
        let is_recovery =
            |record: &RecoveryRecord| record.releases > 0 && record.successes <= record.releases;
        limits.all(|limit| limit.is_none_or(|limit| limit.is_valid()))
            && self.rules.iter().all(is_rule)
            && self.recovered.iter().all(is_recovery)
    }

    /// Returns the record of the rule for the holds of `key`, if enough of its answers are known.
    pub fn rule(&self, key: RuleKey) -> Option<&RuleRecord> {
        self.rules.iter().find(|record| record.key == key)
    }

    /// Returns the record of the releases of `key`, if enough of their outcomes are known.
    pub fn recovery(&self, key: RecoveryKey) -> Option<&RecoveryRecord> {
        self.recovered.iter().find(|record| record.key == key)
    }
}

/// Returns the records of the rules with enough answers, in order of their keys.
fn rule_records(settled: &[SettledRule]) -> Vec<RuleRecord> {
    let mut records: BTreeMap<RuleKey, RuleRecord> = BTreeMap::new();
    for rule in settled {
        let record = records.entry(rule.key).or_insert(RuleRecord {
            key: rule.key,
            answers: 0,
            right: 0,
            agreed: 0,
            agreed_right: 0,
        });
        record.add(rule);
    }
    let is_known = |record: &RuleRecord| record.answers >= MIN_ANSWERS;
    records.into_values().filter(is_known).collect()
}

/// Returns the records of the releases with enough known outcomes, in order of their keys.
fn recovery_records(settled: &[SettledRelease]) -> Vec<RecoveryRecord> {
    let mut records: BTreeMap<RecoveryKey, RecoveryRecord> = BTreeMap::new();
    for release in settled {
        let record = records.entry(release.key).or_insert(RecoveryRecord {
            key: release.key,
            releases: 0,
            successes: 0,
        });
        record.releases += 1;
        record.successes += usize::from(release.is_success);
    }
    let is_known = |record: &RecoveryRecord| record.releases >= MIN_ANSWERS;
    records.into_values().filter(is_known).collect()
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

/// What an answer says of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It succeeds, the more surely the higher its odds. What is true depends on the moment.
    Succeeds,
    /// It fails until the job is repaired, the more surely the lower its odds. What is true depends on
    /// the cause.
    Stays,
}

/// Returns the widest of a few limits at which the lower bound of the share of right `answers` reaches
/// `precision`. The limits are at fixed shares of the answers: among many limits, some would pass by
/// luck.
fn widest(claim: Claim, answers: &[SettledAnswer], precision: f64) -> Option<AnswerThreshold> {
    let mut sorted = answers.to_vec();
    match claim {
        Claim::Succeeds => sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability)),
        Claim::Stays => sorted.sort_by(|a, b| a.probability.total_cmp(&b.probability)),
    }
    let mut shares = GroupShares::default();
    let mut clusters = HashSet::new();
    let mut widest = None;
    let mut tried = 0;
    for (at, answer) in sorted.iter().enumerate() {
        match claim {
            Claim::Succeeds => shares.add(answer.moment, answer.is_success),
            Claim::Stays => shares.add(answer.cause, !answer.is_success),
        }
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

/// Right answers by groups that share what happened, such as moments.
#[derive(Debug, Default)]
pub(crate) struct GroupShares {
    /// Answers and right answers of each group.
    groups: Vec<(usize, usize)>,
    pub(crate) answers: usize,
    pub(crate) right: usize,
}

impl GroupShares {
    pub(crate) fn add(&mut self, group: u32, is_right: bool) {
        let group = group as usize;
        if self.groups.len() <= group {
            self.groups.resize(group + 1, (0, 0));
        }
        self.groups[group].0 += 1;
        self.groups[group].1 += usize::from(is_right);
        self.answers += 1;
        self.right += usize::from(is_right);
    }

    /// The share of right answers.
    pub(crate) fn share(&self) -> f64 {
        self.right as f64 / self.answers.max(1) as f64
    }

    /// Returns the lower end of Wilson's one-sided 90 % interval for the share, with the number of
    /// independent answers that the spread over the groups shows.
    pub(crate) fn lower_bound(&self) -> f64 {
        wilson_bound(self.share(), self.independent_answers(), Z)
    }

    /// Returns the number of independent answers with the same variance of the share: Cochran,
    /// Sampling Techniques, 3rd edition, formula 9A.6, over the groups.
    fn independent_answers(&self) -> f64 {
        let answers = self.answers as f64;
        let share = self.share();
        let used = self.groups.iter().filter(|(given, _)| *given > 0);
        let (mut groups, mut squares) = (0.0, 0.0);
        for &(given, right) in used {
            groups += 1.0;
            squares += (right as f64 - share * given as f64).powi(2);
        }
        if groups < 2.0 {
            return groups;
        }
        let variance = groups / (groups - 1.0) * squares / answers.powi(2);
        let independent = share * (1.0 - share) / variance.max(f64::MIN_POSITIVE);
        independent.clamp(groups, answers.max(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns answers with evenly spread probabilities, right with exactly these, in `moments`.
    fn even(count: u32, moments: u32) -> Vec<SettledAnswer> {
        let answer = |at: u32| SettledAnswer {
            moment: at % moments,
            cause: at % moments,
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
        let mut together = GroupShares::default();
        let mut apart = GroupShares::default();
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
        let key = |code, has_cluster_succeeded| RecoveryKey {
            code,
            has_cluster_succeeded,
        };
        let asked = key((13, 2), true);
        let record = |count: u32| {
            let recovered = (0..count).map(|at| SettledRelease {
                key: asked,
                is_success: at > 0,
            });
            let settled = SettledRecord {
                recovered: recovered.collect(),
                ..SettledRecord::default()
            };
            let limits = AnswerLimits::find(&settled, 0.9, 0.75);
            assert_eq!(limits.recovery(key((13, 2), false)), None);
            assert_eq!(limits.recovery(key((12, 2), true)), None);
            limits.recovery(asked).copied()
        };
        assert_eq!(record(19), None, "too few");
        let of_20 = record(20).expect("a record");
        assert_eq!((of_20.releases, of_20.successes), (20, 19));
        assert_eq!(of_20.precision(), 0.95);
    }

    fn key(code: (i32, i32)) -> RuleKey {
        RuleKey {
            code,
            named_fault: NamedFault::Unknown,
            failed: FailedReleases::Unknown,
        }
    }

    #[test]
    fn rules_have_records_by_code_with_limits_by_odds() {
        let rule = |code, at: u32, is_right: bool| SettledRule {
            key: key(code),
            agreed: at < 60,
            is_right,
        };
        let mut rules: Vec<SettledRule> = (0..200).map(|at| rule((13, 2), at, at < 100)).collect();
        rules.extend((0..200).map(|at| rule((6, 2), at, at % 2 == 0)));
        rules.extend((0..19).map(|at| rule((12, 2), at, true)));
        let settled = SettledRecord {
            rules,
            ..SettledRecord::default()
        };
        let limits = AnswerLimits::find(&settled, 0.9, 0.75);
        let record = |code| limits.rule(key(code));
        let sometimes_right = record((13, 2)).expect("known");
        assert_eq!(sometimes_right.precision(), 0.5);
        assert_eq!(sometimes_right.agreed_precision(), Some(1.0), "low odds");
        let never_sure = record((6, 2)).expect("known");
        let agreed = never_sure.agreed_precision().expect("known");
        assert!((0.45..0.55).contains(&agreed), "{agreed}");
        assert_eq!(record((12, 2)), None, "too few");
        let other_fault = RuleKey {
            named_fault: NamedFault::Missing,
            ..key((13, 2))
        };
        assert_eq!(limits.rule(other_fault), None);
        let repeated = RuleKey {
            failed: FailedReleases::OfJob,
            ..key((13, 2))
        };
        assert_eq!(limits.rule(repeated), None);
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
