//! Decides what to answer about a job that is held now, from its odds, the limits that earlier
//! answers have earned, and the rule for its hold code.

use super::action::{AnswerFirmness, HoldAction};
use super::codes::HoldRule;
use super::held_evidence::{HeldEvidence, RECOVERED_WITHOUT_ODDS, TRY_FROM};
use crate::answers::{
    AnswerLimits, AnswerThreshold, FailedReleases, HeldOdds, LimitPair, OriginState,
    PROGRAM_NOT_STARTED, RecoveryKey, RecoveryRecord, RuleRecord,
};
use crate::config::AdviceConfig;

/// Probability of a later success from which on a fault counts as passing. The odds are low for most
/// faults that pass, because they are learned from early releases, which often come before the fault
/// has passed.
const PASSING_FROM: f64 = 0.4;
/// Probability of a later success from which on a rule that expects failure yields to the odds.
const RULE_YIELDS_FROM: f64 = 0.6;
/// Minimum probability of success of a probe.
const MIN_PROBE_PROBABILITY: f64 = 0.05;
/// Expected successes in a cause from which on a probe of it is worth a run.
const MIN_EXPECTED_SUCCESSES: f64 = 0.6;
/// Probability of success from which on a job that is alone with its cause is released as a try: one success
/// is worth three runs.
const LONE_TRY_FROM: f64 = 0.35;
/// Number of held jobs of a cause up to which each is released by its own probability.
const FEW_HELD: usize = 3;
/// Probability of success from which on many held jobs of a cause are released without a probe.
const RELEASE_MANY_FROM: f64 = 0.9;

/// An answer about a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAnswer {
    /// The recommended action.
    pub action: HoldAction,
    /// Certainty of the action; `None` for rules and for no advice.
    pub firmness: Option<AnswerFirmness>,
    /// True if the rule for the hold code decided.
    pub is_by_rule: bool,
    /// The record that a release counts in which follows because other jobs got past the cause.
    pub recovery: Option<RecoveryKey>,
}

impl HeldAnswer {
    fn new(action: HoldAction, firmness: Option<AnswerFirmness>) -> HeldAnswer {
        HeldAnswer {
            action,
            firmness,
            is_by_rule: false,
            recovery: None,
        }
    }
}

/// Decides the answer. The first rule that applies counts.
pub(crate) fn held_answer(
    evidence: &HeldEvidence,
    limits: &AnswerLimits,
    settings: &AdviceConfig,
) -> HeldAnswer {
    if let Some(rule) = evidence.rule.filter(|rule| rule_decides(rule, evidence)) {
        let record = limits.rule(evidence.rule_key);
        let firmness = match evidence.origin_state {
            // Others get what is there, so what this job names is not.
            OriginState::Works => AnswerFirmness::Firm,
            _ => rule_firmness(record, evidence, settings),
        };
        // A rule that leaves a job alone claims nothing about its success.
        let firmness = rule.expects_failure().then_some(firmness);
        return HeldAnswer {
            is_by_rule: true,
            ..HeldAnswer::new(rule.action, firmness)
        };
    }
    if evidence.stays_after_failed_release() {
        return HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Possible));
    }
    if evidence.failed_while_others_read() {
        return HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Probable));
    }
    if evidence.is_of_unknown_kind() && !evidence.has_recovered() {
        return answer_of_unknown_kind(evidence);
    }
    let answer = success_answer(evidence, limits, settings)
        .unwrap_or_else(|| failure_answer(evidence, limits, settings.remove_from_holds));
    answer_within_learned(answer, evidence)
}

/// Returns the answer where the odds are of other kinds of holds: to wait, if what failed is known to pass, and
/// else none.
fn answer_of_unknown_kind(evidence: &HeldEvidence) -> HeldAnswer {
    let passes =
        evidence.origin_state == OriginState::Fails || evidence.rule_key.named_fault.may_pass();
    if passes {
        HeldAnswer::new(HoldAction::Later, Some(AnswerFirmness::Possible))
    } else {
        HeldAnswer::new(HoldAction::None, None)
    }
}

/// Returns `answer`, without its promise if it follows from odds that nothing was learned for here. A
/// removal, which cannot be undone, then becomes a repair, and a release the try of one job.
fn answer_within_learned(answer: HeldAnswer, evidence: &HeldEvidence) -> HeldAnswer {
    let is_learned = !evidence.is_beyond_learned && evidence.is_learned_here();
    if is_learned || evidence.recovered >= RECOVERED_WITHOUT_ODDS {
        return answer;
    }
    match answer.action {
        HoldAction::Release => HeldAnswer::new(HoldAction::Probe, None),
        HoldAction::Remove => HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Possible)),
        action => HeldAnswer::new(action, answer.firmness.map(|_| AnswerFirmness::Possible)),
    }
}

/// Returns the certainty that the earlier answers of a rule have earned. A rule without a record is
/// knowledge about HTCondor and not about this pool, where missing files may come back by themselves.
/// Outcomes are known only for owners who release jobs, so the record alone makes no answer firm: the
/// evidence in the log must agree, and where it did, no record may say that the rule was wrong. If earlier
/// releases have shown that the fault stays, the answer is firm unless such answers were wrong.
fn rule_firmness(
    record: Option<&RuleRecord>,
    evidence: &HeldEvidence,
    settings: &AdviceConfig,
) -> AnswerFirmness {
    let earned = record.map_or(AnswerFirmness::Probable, |record| {
        AnswerFirmness::earned(record.precision(), settings)
    });
    let is_firm = if evidence.rule_key.failed != FailedReleases::Unknown {
        record.is_none() || earned == AnswerFirmness::Firm
    } else {
        let agreed = record.and_then(RuleRecord::agreed_precision);
        let is_wrong = match agreed {
            Some(precision) => precision < settings.precision,
            None => earned == AnswerFirmness::Possible,
        };
        evidence.agrees_with_rule()
            && !is_wrong
            && evidence.origin_state != OriginState::PerhapsFails
    };
    if is_firm {
        AnswerFirmness::Firm
    } else {
        earned.max(AnswerFirmness::Probable)
    }
}

/// Returns true if `rule` decides. It yields only to a job that got past the same file since, to other
/// owners who miss files in the same directory, or to odds that say that the fault passes. What other
/// access points know, what follows from other reasons alone, or what nobody has learned about so old a
/// hold, does not outweigh a rule, and nothing does that no job with this reason has ever shown.
fn rule_decides(rule: &HoldRule, evidence: &HeldEvidence) -> bool {
    if !rule.expects_failure() || !rule.can_be_outweighed() {
        return true;
    }
    // A server may lose a whole bucket for a while, so that the age of a hold for its file says nothing.
    let is_of_learned_age =
        !evidence.is_beyond_learned || evidence.rule_key.named_fault.is_of_file();
    let is_learned = evidence.reason.is_known() && is_of_learned_age;
    // A file that is missing where others get theirs stays missing, whatever became of other files.
    let passes = evidence.odds.later >= RULE_YIELDS_FROM
        && is_learned
        && evidence.is_learned_here()
        && !evidence.reason.never_passed()
        && evidence.origin_state != OriginState::Works
        && !is_own_program_repaired(evidence);
    evidence.origin_state != OriginState::Fails
        && !evidence.passed_since
        && !evidence.has_recovered()
        && !passes
}

/// Returns true if the program that a job brings along could not be started, and most jobs that got past such
/// holds were released by hand, which says that their programs were repaired.
fn is_own_program_repaired(evidence: &HeldEvidence) -> bool {
    let (code, _) = evidence.rule_key.code;
    code == PROGRAM_NOT_STARTED && evidence.is_mostly_repaired
}

/// Returns the answer where a release pays, now or as a probe.
fn success_answer(
    evidence: &HeldEvidence,
    limits: &AnswerLimits,
    settings: &AdviceConfig,
) -> Option<HeldAnswer> {
    let HeldOdds { now, later, .. } = evidence.odds;
    let reaches =
        |limit: Option<AnswerThreshold>| limit.is_some_and(|limit| now >= limit.probability);
    let release = |firmness| Some(HeldAnswer::new(HoldAction::Release, Some(firmness)));
    let is_passing = later >= PASSING_FROM;
    let reaches_firm = is_passing && evidence.is_taught && reaches(limits.release.firm);
    // Where others got past the cause, the record of such releases may make this one more certain than the odds do.
    if reaches_firm && (is_fault_gone(evidence) || !evidence.has_recovered()) {
        return release(release_firmness(is_fault_gone(evidence)));
    }
    if evidence.has_recovered() {
        let key = evidence.recovery_key();
        let is_sure = is_recovery_sure(evidence, limits.recovery(key), settings);
        return Some(HeldAnswer {
            recovery: Some(key),
            ..HeldAnswer::new(HoldAction::Release, Some(release_firmness(is_sure)))
        });
    }
    let is_few = evidence.held_for_cause <= FEW_HELD || now >= RELEASE_MANY_FROM;
    if evidence.is_taught && is_few && reaches(limits.release.probable) {
        return release(AnswerFirmness::Probable);
    }
    let held = evidence.held_for_cause;
    // The origin answers others again, though perhaps it lacks this file.
    let answers = evidence.origin_reads >= RECOVERED_WITHOUT_ODDS;
    // One run is about all jobs of the cause, so they get one answer. Where this log knows nothing,
    // the run teaches more than the odds of other access points do.
    let pays = evidence.is_new_cause
        || answers
        || evidence.best_of_cause
            >= MIN_PROBE_PROBABILITY.max(MIN_EXPECTED_SUCCESSES / held as f64);
    let may_pass = is_passing
        || evidence.origin_state == OriginState::Fails
        || !evidence.has_outcomes
        || evidence.is_new_cause;
    let is_due = !evidence.failed_just_now
        || answers
        || evidence.recovered > 0
        || evidence.best_of_cause >= TRY_FROM;
    if held >= 2 && may_pass && pays && is_due {
        return Some(HeldAnswer::new(HoldAction::Probe, None));
    }
    let is_try = held == 1 && is_passing && is_lone_try(evidence, is_due);
    is_try.then(|| HeldAnswer::new(HoldAction::Probe, None))
}

/// Returns true if a job that is alone with a passing cause is worth a run: its odds are high enough, or it has
/// been held for longer than faults that pass. If its fault passes, it has passed by now, and to wait shows
/// nothing. Outcomes of its owner need not be known, because no other job depends on the answer.
fn is_lone_try(evidence: &HeldEvidence, is_due: bool) -> bool {
    let outlasts_outages =
        evidence.is_beyond_learned && is_due && evidence.origin_state != OriginState::Fails;
    outlasts_outages || evidence.best_of_cause >= LONE_TRY_FROM
}

/// Returns true if a release because other jobs got past the cause is firm: another job of the cluster, or the
/// server that is back, shows that the fault is gone, and no record of such releases contradicts it, or the record
/// alone is good enough. It is not firm if the directory or server has failed for two clusters since, or if others
/// got other files from there alone.
fn is_recovery_sure(
    evidence: &HeldEvidence,
    record: Option<&RecoveryRecord>,
    settings: &AdviceConfig,
) -> bool {
    if evidence.recovered < RECOVERED_WITHOUT_ODDS
        || evidence.may_need_repair()
        || evidence.rests_on_other_files()
        || evidence.has_origin_failed_since
    {
        return false;
    }
    if evidence.has_cluster_succeeded || evidence.has_origin_recovered() {
        record.is_none_or(|record| record.precision() >= settings.precision)
    } else {
        record.is_some_and(|record| record.lower_precision() >= settings.precision)
    }
}

/// Returns true if outcomes of other jobs show enough about this one for a firm release. Another job of
/// the cluster must have succeeded, as this job may have a further fault, and got the same file if one did not arrive.
fn is_fault_gone(evidence: &HeldEvidence) -> bool {
    evidence.has_cluster_succeeded
        && !evidence.may_need_repair()
        && !evidence.rests_on_other_files()
}

/// Returns the certainty of a release that follows from limits or outcomes of other jobs.
fn release_firmness(is_sure: bool) -> AnswerFirmness {
    if is_sure {
        AnswerFirmness::Firm
    } else {
        AnswerFirmness::Probable
    }
}

/// Returns the answer for a job that fails if it is released now.
fn failure_answer(
    evidence: &HeldEvidence,
    limits: &AnswerLimits,
    remove_from_holds: usize,
) -> HeldAnswer {
    let later = evidence.odds.later;
    if later >= PASSING_FROM {
        let earned = firmness_of(limits.later, |limit| later >= limit.probability);
        // Repairs that the log does not show look like faults that pass.
        let firmness = if evidence.is_mostly_repaired {
            earned.max(AnswerFirmness::Probable)
        } else {
            earned
        };
        return HeldAnswer::new(HoldAction::Later, Some(firmness));
    }
    let firmness = firmness_of(limits.fix, |limit| later <= limit.probability);
    // The words of the reason outweigh odds that have earned no promise.
    let is_promised = firmness != AnswerFirmness::Possible;
    let passes = evidence.origin_state == OriginState::Fails
        || evidence.rule_key.named_fault.may_pass() && !is_promised;
    if passes {
        return HeldAnswer::new(HoldAction::Later, Some(AnswerFirmness::Possible));
    }
    let has_outcomes = evidence.has_outcomes || !evidence.is_learned_here();
    if !is_promised && !has_outcomes {
        return HeldAnswer::new(HoldAction::None, None);
    }
    let is_often_held = evidence.holds_for_code >= remove_from_holds;
    let action = if firmness == AnswerFirmness::Firm && is_often_held {
        HoldAction::Remove
    } else {
        HoldAction::Fix
    };
    HeldAnswer::new(action, Some(firmness))
}

/// Returns the certainty of an answer whose odds reach the limits for which `reaches` is true.
fn firmness_of(limits: LimitPair, reaches: impl Fn(AnswerThreshold) -> bool) -> AnswerFirmness {
    if limits.firm.is_some_and(&reaches) {
        AnswerFirmness::Firm
    } else if limits.probable.is_some_and(&reaches) {
        AnswerFirmness::Probable
    } else {
        AnswerFirmness::Possible
    }
}

#[cfg(test)]
pub(super) mod tests {
    use htcondor_eventlog::ReasonKind;
    use htcondor_holdreasons::{Outcome, Thing, kind_of_code};

    use super::super::codes::{code_rule, hold_rule};
    use super::super::held_evidence::held_evidence;
    use super::*;
    use crate::answers::{
        CauseKind, HoldHistory, LearnedFrom, NamedFault, ReasonRecord, RuleKey,
        learned_test_answers,
    };
    use crate::test_config::TestConfig;
    use htcondor_eventlog::InputFile;
    use test_stores::{TestLog, log_with_outages};

    fn limit(probability: f64) -> Option<AnswerThreshold> {
        Some(AnswerThreshold {
            probability,
            answers: 100,
            right: 95,
            clusters: 40,
            coverage: 0.5,
            lower: 0.9,
        })
    }

    /// Returns what is stated about data that a plug-in could not get.
    fn object_that_is(outcome: Outcome) -> ReasonKind {
        ReasonKind {
            thing: Thing::Object,
            outcome,
            ..ReasonKind::default()
        }
    }

    /// The key of a hold for an input file.
    fn rule_key(named_fault: NamedFault) -> RuleKey {
        RuleKey {
            code: (13, 2),
            named_fault,
            failed: FailedReleases::Unknown,
        }
    }

    /// Returns the record of a rule, where the odds always agreed.
    fn rule_record(right: usize) -> RuleRecord {
        RuleRecord {
            key: rule_key(NamedFault::Unknown),
            answers: 100,
            right,
            agreed: 100,
            agreed_right: right,
        }
    }

    pub(in crate::decision) fn limits() -> AnswerLimits {
        AnswerLimits {
            release: LimitPair {
                firm: limit(0.9),
                probable: limit(0.7),
            },
            fix: LimitPair {
                firm: limit(0.1),
                probable: limit(0.3),
            },
            later: LimitPair {
                firm: limit(0.95),
                probable: limit(0.8),
            },
            rules: vec![rule_record(95)],
            recovered: Vec::new(),
        }
    }

    pub(in crate::decision) fn evidence(now: f64, later: f64) -> HeldEvidence {
        HeldEvidence {
            hold: 0,
            rule_key: rule_key(NamedFault::Unknown),
            odds: HeldOdds {
                now,
                uncalibrated: now,
                later,
                learned_from: LearnedFrom::ThisLog,
            },
            rule: None,
            lacks_output: false,
            reason: ReasonRecord {
                outcomes: 3,
                ..ReasonRecord::default()
            },
            origin_state: OriginState::Unknown,
            passed_since: false,
            has_origin_failed_since: false,
            is_taught: true,
            has_outcomes: true,
            held_for_cause: 1,
            best_of_cause: now,
            is_new_cause: false,
            cause: (0, 0),
            is_probe: true,
            awaits_outcome: false,
            failed_again: false,
            failed_just_now: false,
            recovered: 0,
            started_in_cluster: 0,
            is_perhaps_repaired: false,
            is_mostly_repaired: false,
            has_cluster_succeeded: true,
            origin_reads: 0,
            holds_for_code: 1,
            is_beyond_learned: false,
        }
    }

    /// Returns evidence with these odds, where another job got the same file since.
    fn sure(now: f64, later: f64) -> HeldEvidence {
        HeldEvidence {
            passed_since: true,
            ..evidence(now, later)
        }
    }

    /// Returns evidence with these odds, which are known from other access points alone.
    fn elsewhere(now: f64, later: f64) -> HeldEvidence {
        let evidence = evidence(now, later);
        HeldEvidence {
            odds: HeldOdds {
                learned_from: LearnedFrom::OtherLogs,
                ..evidence.odds
            },
            is_taught: false,
            has_outcomes: false,
            ..evidence
        }
    }

    fn answer(evidence: HeldEvidence) -> (HoldAction, Option<AnswerFirmness>) {
        let HeldAnswer {
            action, firmness, ..
        } = held_answer(&evidence, &limits(), &TestConfig::load(&[]).advice);
        (action, firmness)
    }

    const FIRM: Option<AnswerFirmness> = Some(AnswerFirmness::Firm);
    const PROBABLE: Option<AnswerFirmness> = Some(AnswerFirmness::Probable);
    const POSSIBLE: Option<AnswerFirmness> = Some(AnswerFirmness::Possible);

    #[test]
    fn release_after_others_got_past_is_firm_if_the_cluster_succeeds_unrepaired() {
        let recovered = HeldEvidence {
            recovered: 3,
            passed_since: true,
            ..evidence(0.4, 0.3)
        };
        // Returns the certainty with a record of 20 releases and these successes.
        let firmness = |evidence: HeldEvidence, successes: Option<usize>| {
            let record = successes.map(|successes| RecoveryRecord {
                key: evidence.recovery_key(),
                releases: 20,
                successes,
            });
            let limits = AnswerLimits {
                recovered: record.into_iter().collect(),
                ..limits()
            };
            let answer = held_answer(&evidence, &limits, &TestConfig::load(&[]).advice);
            assert_eq!(answer.recovery, Some(evidence.recovery_key()));
            assert_eq!(answer.action, HoldAction::Release);
            answer.firmness
        };
        assert_eq!(firmness(recovered, None), FIRM);
        assert_eq!(firmness(recovered, Some(18)), FIRM);
        assert_eq!(firmness(recovered, Some(17)), PROBABLE);
        let alone = HeldEvidence {
            has_cluster_succeeded: false,
            ..recovered
        };
        assert_eq!(firmness(alone, None), PROBABLE, "perhaps another fault");
        assert_eq!(firmness(alone, Some(19)), PROBABLE);
        assert_eq!(firmness(alone, Some(20)), FIRM, "others had none");
        let of_server = |origin_state, origin_reads| HeldEvidence {
            origin_state,
            origin_reads,
            ..alone
        };
        let back = of_server(OriginState::Fails, 10);
        assert_eq!(firmness(back, None), FIRM);
        assert_eq!(firmness(back, Some(17)), PROBABLE);
        assert_eq!(firmness(of_server(OriginState::Fails, 9), None), PROBABLE);
        assert_eq!(
            firmness(of_server(OriginState::Unknown, 99), None),
            PROBABLE
        );
        let failed_since = HeldEvidence {
            has_origin_failed_since: true,
            ..recovered
        };
        assert_eq!(firmness(failed_since, Some(20)), PROBABLE, "it fails again");
        let of_other_files = HeldEvidence {
            passed_since: false,
            ..back
        };
        assert_eq!(firmness(of_other_files, Some(20)), PROBABLE);
        let sure = HeldEvidence {
            odds: evidence(0.95, 0.9).odds,
            ..back
        };
        assert_eq!(firmness(sure, None), FIRM, "the odds do not weaken it");

        let repaired = HeldEvidence {
            is_perhaps_repaired: true,
            ..recovered
        };
        assert_eq!(firmness(repaired, None), FIRM, "nobody repairs a server so");
        let output = HeldEvidence {
            lacks_output: true,
            ..repaired
        };
        let input = HeldEvidence {
            rule: code_rule(13, 2),
            ..repaired
        };
        for of_job in [output, input] {
            assert_eq!(firmness(of_job, Some(20)), PROBABLE);
            let unrepaired = HeldEvidence {
                is_perhaps_repaired: false,
                ..of_job
            };
            assert_eq!(firmness(unrepaired, None), FIRM);
        }
    }

    #[test]
    fn both_odds_decide() {
        assert_eq!(answer(sure(0.95, 0.9)), (HoldAction::Release, FIRM));
        assert_eq!(answer(evidence(0.8, 0.9)), (HoldAction::Release, PROBABLE));
        assert_eq!(
            answer(evidence(0.6, 0.9)),
            (HoldAction::Probe, None),
            "a try"
        );
        assert_eq!(answer(evidence(0.35, 0.7)), (HoldAction::Probe, None));
        assert_eq!(answer(evidence(0.3, 0.7)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(evidence(0.3, 0.9)), (HoldAction::Later, PROBABLE));
        assert_eq!(answer(evidence(0.2, 0.96)), (HoldAction::Later, FIRM));
        let repaired = HeldEvidence {
            is_mostly_repaired: true,
            ..evidence(0.2, 0.96)
        };
        assert_eq!(answer(repaired), (HoldAction::Later, PROBABLE));
        assert_eq!(answer(evidence(0.3, 0.05)), (HoldAction::Fix, FIRM));
        assert_eq!(answer(evidence(0.05, 0.2)), (HoldAction::Fix, PROBABLE));
        assert_eq!(answer(evidence(0.05, 0.35)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(
            answer(evidence(0.05, 0.45)),
            (HoldAction::Later, POSSIBLE),
            "it may pass"
        );
        for fault in [NamedFault::Server, NamedFault::Machine] {
            let named = |now, later| HeldEvidence {
                rule_key: rule_key(fault),
                ..evidence(now, later)
            };
            assert_eq!(
                answer(named(0.05, 0.35)),
                (HoldAction::Later, POSSIBLE),
                "the words outweigh odds without a promise"
            );
            assert_eq!(answer(named(0.05, 0.2)), (HoldAction::Fix, PROBABLE));
            let again = HeldEvidence {
                failed_again: true,
                ..named(0.05, 0.45)
            };
            let expected = match fault {
                NamedFault::Machine => HoldAction::Fix,
                _ => HoldAction::Later,
            };
            assert_eq!(answer(again), (expected, POSSIBLE), "{fault:?}");
        }
        let often = HeldEvidence {
            holds_for_code: 5,
            ..evidence(0.05, 0.05)
        };
        assert_eq!(answer(often), (HoldAction::Remove, FIRM));
    }

    #[test]
    fn many_held_jobs_are_probed_before_they_are_released() {
        let many = |now| HeldEvidence {
            held_for_cause: 12,
            ..evidence(now, 0.7)
        };
        assert_eq!(answer(many(0.8)), (HoldAction::Probe, None));
        assert_eq!(answer(many(0.12)), (HoldAction::Probe, None));
        assert_eq!(
            answer(many(0.04)),
            (HoldAction::Later, POSSIBLE),
            "half a success of 12"
        );
        assert_eq!(answer(many(0.95)), (HoldAction::Release, PROBABLE));
        let two = HeldEvidence {
            held_for_cause: 2,
            ..evidence(0.25, 0.7)
        };
        assert_eq!(answer(two).0, HoldAction::Later, "a run for half a success");
    }

    #[test]
    fn cause_that_failed_just_now_is_not_probed_again_at_once() {
        let failed = |now, recovered| HeldEvidence {
            failed_just_now: true,
            held_for_cause: 12,
            recovered,
            ..evidence(now, 0.7)
        };
        assert_eq!(answer(failed(0.3, 0)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(failed(0.3, 1)), (HoldAction::Probe, None));
        assert_eq!(answer(failed(0.6, 0)), (HoldAction::Probe, None));
    }

    #[test]
    fn cause_is_probed_once_others_read_from_its_origin() {
        let failed = |later, origin_reads| HeldEvidence {
            failed_just_now: true,
            held_for_cause: 4,
            origin_reads,
            ..evidence(0.01, later)
        };
        assert_eq!(answer(failed(0.7, 1)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(failed(0.7, 2)), (HoldAction::Probe, None));
        assert_eq!(
            answer(failed(0.1, 9)).0,
            HoldAction::Fix,
            "it lacks the file"
        );
    }

    /// Other jobs that read the very file of a held job outweigh a failure of another file of its origin.
    #[test]
    fn readers_of_a_file_show_that_its_fault_has_passed() {
        let mut log = log_with_outages(3);
        let held_s = 13_000;
        log.add_held(7, held_s);
        let asked = |log: &TestLog| {
            let store = log.store();
            let history = HoldHistory::new(&store);
            let learned = learned_test_answers();
            let asked_ms = (held_s + 60) * 1000;
            let holds = history.held_at(asked_ms);
            let found = held_evidence(&history, &learned.model, &holds, asked_ms);
            found.expect("evidence").holds[0]
        };
        let before = asked(&log);
        assert_eq!(before.cause.0, CauseKind::Origin as u8);
        assert_ne!(answer(before).0, HoldAction::Release);
        for at in 0..2 {
            log.add_reader(InputFile { file: 7, origin: 7 }, held_s + 20 + at);
        }
        let after = asked(&log);
        assert_eq!((after.cause.0, after.recovered), (CauseKind::File as u8, 2));
        assert_eq!(answer(after), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn jobs_of_one_cause_are_probed_together() {
        let of_cause = HeldEvidence {
            held_for_cause: 12,
            best_of_cause: 0.3,
            ..evidence(0.01, 0.7)
        };
        assert_eq!(answer(of_cause), (HoldAction::Probe, None));
    }

    #[test]
    fn others_are_released_once_probes_have_succeeded() {
        let after = |held_for_cause, now, recovered| HeldEvidence {
            held_for_cause,
            recovered,
            ..evidence(now, 0.7)
        };
        assert_eq!(answer(after(5, 0.4, 1)), (HoldAction::Probe, None));
        assert_eq!(answer(after(5, 0.5, 1)), (HoldAction::Release, PROBABLE));
        assert_eq!(answer(after(1, 0.5, 1)), (HoldAction::Probe, None), "a try");
        assert_eq!(
            answer(after(12, 0.5, 1)),
            (HoldAction::Probe, None),
            "two of many are probes"
        );
        let two = HeldEvidence {
            passed_since: true,
            ..after(12, 0.2, 2)
        };
        assert_eq!(answer(two), (HoldAction::Release, FIRM));
        let of_other_clusters = HeldEvidence {
            has_cluster_succeeded: false,
            ..two
        };
        assert_eq!(answer(of_other_clusters), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn successes_since_the_last_failure_raise_the_probability() {
        let after = |now, recovered| HeldEvidence {
            recovered,
            ..evidence(now, 0.7)
        };
        assert_eq!(after(0.4, 1).probability_now(), 0.4, "one may be luck");
        assert_eq!(after(0.4, 2).probability_now(), 2.5 / 3.0);
        assert_eq!(after(0.95, 2).probability_now(), 0.95);
    }

    #[test]
    fn owner_without_outcomes_gets_no_release() {
        let untaught = HeldEvidence {
            is_taught: false,
            ..evidence(0.95, 0.9)
        };
        assert_eq!(answer(untaught).0, HoldAction::Probe, "at most a try");
    }

    #[test]
    fn low_odds_without_outcomes_are_no_advice_or_a_probe() {
        let unknown = |now, later, held_for_cause| HeldEvidence {
            is_taught: false,
            has_outcomes: false,
            held_for_cause,
            ..evidence(now, later)
        };
        assert_eq!(answer(unknown(0.3, 0.35, 1)), (HoldAction::None, None));
        assert_eq!(answer(unknown(0.3, 0.35, 4)), (HoldAction::Probe, None));
        assert_eq!(answer(unknown(0.05, 0.35, 4)), (HoldAction::None, None));
        assert_eq!(answer(unknown(0.05, 0.05, 4)), (HoldAction::Fix, FIRM));
        assert_eq!(answer(unknown(0.3, 0.7, 1)), (HoldAction::Later, POSSIBLE));
    }

    #[test]
    fn new_cause_of_several_jobs_is_probed_whatever_other_access_points_know() {
        let new = |held_for_cause| HeldEvidence {
            is_new_cause: true,
            held_for_cause,
            ..elsewhere(0.02, 0.1)
        };
        assert_eq!(answer(new(2)), (HoldAction::Probe, None));
        assert_eq!(answer(new(1)), (HoldAction::Fix, POSSIBLE), "no job to try");
        let tried = HeldEvidence {
            is_new_cause: false,
            ..new(2)
        };
        assert_eq!(answer(tried).0, HoldAction::Fix, "the probe has failed");
    }

    #[test]
    fn answers_from_elsewhere_are_never_firm() {
        let elsewhere = |now, later| HeldEvidence {
            holds_for_code: 9,
            ..elsewhere(now, later)
        };
        assert_eq!(answer(elsewhere(0.05, 0.05)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(answer(elsewhere(0.3, 0.35)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(answer(elsewhere(0.05, 0.9)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(elsewhere(0.95, 0.95)).0, HoldAction::Probe);
        let recovered = HeldEvidence {
            recovered: 2,
            passed_since: true,
            ..elsewhere(0.3, 0.9)
        };
        assert_eq!(
            answer(recovered),
            (HoldAction::Release, FIRM),
            "jobs of this log show it"
        );
    }

    #[test]
    fn odds_of_other_kinds_of_holds_give_no_advice() {
        let of_kind = |now, later, held_for_cause| HeldEvidence {
            odds: HeldOdds {
                learned_from: LearnedFrom::Nothing,
                ..evidence(now, later).odds
            },
            held_for_cause,
            is_new_cause: true,
            ..evidence(now, later)
        };
        for held_for_cause in [1, 12] {
            for (now, later) in [(0.34, 0.5), (0.95, 0.95), (0.02, 0.02)] {
                let unknown = of_kind(now, later, held_for_cause);
                assert_eq!(answer(unknown), (HoldAction::None, None), "{now} {later}");
                assert_eq!(unknown.stated_probability(), None);
                assert_eq!(unknown.stated_later(), None);
            }
        }
        let unknown = of_kind(0.95, 0.95, 1);
        let by_rule = HeldEvidence {
            rule: code_rule(13, 2),
            ..unknown
        };
        assert_eq!(answer(by_rule).0, HoldAction::Fix);
        let by_words = HeldEvidence {
            rule_key: rule_key(NamedFault::Server),
            ..unknown
        };
        assert_eq!(answer(by_words), (HoldAction::Later, POSSIBLE));
        let recovered = HeldEvidence {
            recovered: 2,
            ..unknown
        };
        assert_eq!(answer(recovered), (HoldAction::Release, PROBABLE));
        assert_eq!(recovered.stated_probability(), Some(2.5 / 3.0));
    }

    #[test]
    fn rules_yield_to_a_pass_or_to_a_passing_fault_alone() {
        let missing = |evidence| HeldEvidence {
            rule: code_rule(13, 2),
            ..evidence
        };
        assert_eq!(
            answer(missing(evidence(0.95, 0.2))),
            (HoldAction::Fix, FIRM)
        );
        assert_eq!(answer(missing(evidence(0.95, 0.9))).0, HoldAction::Release);
        let passed = HeldEvidence {
            passed_since: true,
            ..evidence(0.8, 0.4)
        };
        assert_eq!(answer(missing(passed)), (HoldAction::Release, PROBABLE));
        let from_elsewhere = evidence(0.2, 0.9);
        let from_elsewhere = HeldEvidence {
            odds: HeldOdds {
                learned_from: LearnedFrom::OtherLogs,
                ..from_elsewhere.odds
            },
            ..from_elsewhere
        };
        assert_eq!(answer(missing(from_elsewhere)).0, HoldAction::Fix);
        let memory = HeldEvidence {
            rule: code_rule(34, 102),
            passed_since: true,
            ..evidence(0.95, 0.9)
        };
        assert_eq!(answer(memory), (HoldAction::Fix, PROBABLE));
    }

    #[test]
    fn rule_stays_for_a_hold_that_is_older_than_all_that_was_learned() {
        let old = |named_fault| HeldEvidence {
            rule: hold_rule(object_that_is(Outcome::Absent)),
            rule_key: rule_key(named_fault),
            is_beyond_learned: true,
            ..evidence(0.2, 0.9)
        };
        assert_eq!(answer(old(NamedFault::Unknown)).0, HoldAction::Fix);
        assert_eq!(answer(old(NamedFault::Missing)), (HoldAction::Probe, None));
    }

    #[test]
    fn odds_outweigh_no_rule_before_outcomes_of_its_reason_are_known() {
        for stated in [object_that_is(Outcome::Absent), kind_of_code(22, 0)] {
            let learned = HeldEvidence {
                rule: hold_rule(stated),
                rule_key: rule_key(NamedFault::of_kind(stated)),
                ..evidence(0.2, 0.9)
            };
            assert_eq!(answer(learned).0, HoldAction::Later);
            let unknown = HeldEvidence {
                reason: ReasonRecord::default(),
                ..learned
            };
            assert_eq!(answer(unknown).0, HoldAction::Fix);
            let agreed = HeldEvidence {
                odds: evidence(0.2, 0.1).odds,
                ..unknown
            };
            assert_ne!(answer(agreed).1, FIRM, "nothing was learned");
        }
    }

    #[test]
    fn odds_outweigh_no_rule_whose_reason_no_job_ever_got_past() {
        for stated in [object_that_is(Outcome::Denied), kind_of_code(22, 0)] {
            let asked = |failures| HeldEvidence {
                rule: hold_rule(stated),
                rule_key: rule_key(NamedFault::of_kind(stated)),
                reason: ReasonRecord {
                    outcomes: 26,
                    failures,
                    ..ReasonRecord::default()
                },
                ..evidence(0.2, 0.63)
            };
            assert_eq!(answer(asked(26)).0, HoldAction::Fix, "{stated:?}");
            assert_eq!(answer(asked(0)).0, HoldAction::Later, "a job got past it");
        }
    }

    #[test]
    fn no_job_is_released_against_a_limit_of_time() {
        let asked = HeldEvidence {
            rule: code_rule(46, 0),
            passed_since: true,
            recovered: 30,
            ..evidence(0.95, 0.97)
        };
        assert_eq!(answer(asked).0, HoldAction::Fix);
    }

    #[test]
    fn releases_by_hand_show_no_passing_fault_of_an_own_program() {
        let passes = |code: (i32, i32), is_mostly_repaired| HeldEvidence {
            rule: code_rule(code.0, code.1),
            rule_key: RuleKey {
                code,
                ..rule_key(NamedFault::Unknown)
            },
            is_mostly_repaired,
            ..evidence(0.2, 0.96)
        };
        assert_eq!(answer(passes((6, 2), false)), (HoldAction::Later, FIRM));
        assert_eq!(answer(passes((6, 2), true)).0, HoldAction::Fix);
        let of_input = answer(passes((13, 2), true));
        assert_eq!(of_input, (HoldAction::Later, PROBABLE));
    }

    #[test]
    fn file_in_a_missing_directory_is_waited_for() {
        let missing = HeldEvidence {
            rule: code_rule(13, 2),
            origin_state: OriginState::Fails,
            ..evidence(0.01, 0.05)
        };
        assert_eq!(answer(missing), (HoldAction::Later, POSSIBLE));
        let several = HeldEvidence {
            held_for_cause: 4,
            best_of_cause: 0.3,
            ..missing
        };
        assert_eq!(answer(several), (HoldAction::Probe, None));
    }

    #[test]
    fn release_is_firm_only_if_a_job_of_the_cluster_succeeded() {
        let sure = sure(0.95, 0.95);
        assert_eq!(answer(sure), (HoldAction::Release, FIRM));
        let alone = HeldEvidence {
            has_cluster_succeeded: false,
            ..sure
        };
        assert_eq!(answer(alone), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn release_is_firm_for_an_input_only_if_others_got_the_same_file() {
        let of_other_files = evidence(0.98, 0.95);
        assert_eq!(answer(of_other_files), (HoldAction::Release, PROBABLE));
        let same_file = sure(0.98, 0.95);
        assert_eq!(answer(same_file), (HoldAction::Release, FIRM));
        let output = HeldEvidence {
            rule_key: RuleKey {
                code: (12, 256),
                ..of_other_files.rule_key
            },
            ..of_other_files
        };
        assert_eq!(answer(output), (HoldAction::Release, FIRM));
    }

    #[test]
    fn file_that_fails_while_others_get_theirs_from_its_server_is_to_be_repaired() {
        let plugin = |named_fault| HeldEvidence {
            rule_key: RuleKey {
                code: (13, 256),
                ..rule_key(named_fault)
            },
            origin_state: OriginState::Works,
            ..evidence(0.7, 0.7)
        };
        let unnamed = plugin(NamedFault::Unknown);
        assert_eq!(answer(unnamed), (HoldAction::Fix, PROBABLE));
        assert_ne!(answer(plugin(NamedFault::Server)).0, HoldAction::Fix);
        let passed = HeldEvidence {
            passed_since: true,
            ..unnamed
        };
        assert_ne!(answer(passed).0, HoldAction::Fix);
        let full_disk = HeldEvidence {
            rule_key: RuleKey {
                code: (13, 28),
                ..unnamed.rule_key
            },
            ..unnamed
        };
        assert_ne!(answer(full_disk).0, HoldAction::Fix);
    }

    #[test]
    fn file_that_is_missing_where_others_get_theirs_is_to_be_repaired() {
        let missing = HeldEvidence {
            rule: code_rule(13, 2),
            ..evidence(0.7, 0.7)
        };
        assert_eq!(answer(missing), (HoldAction::Release, PROBABLE));
        let others_read = HeldEvidence {
            origin_state: OriginState::Works,
            ..missing
        };
        assert_eq!(answer(others_read), (HoldAction::Fix, FIRM));
        let read_by_others = HeldEvidence {
            passed_since: true,
            ..others_read
        };
        assert_ne!(answer(read_by_others).0, HoldAction::Fix);
    }

    #[test]
    fn rule_is_as_certain_as_its_record() {
        let settings = TestConfig::load(&[]).advice;
        let of_rule = |code: (i32, i32), record: Option<RuleRecord>, later| {
            let asked = HeldEvidence {
                rule: code_rule(code.0, code.1),
                ..evidence(0.1, later)
            };
            Some(rule_firmness(record.as_ref(), &asked, &settings))
        };
        let firmness = |record, later| of_rule((13, 2), record, later);
        assert_eq!(firmness(None, 0.3), FIRM, "nothing says otherwise");
        assert_eq!(firmness(None, 0.31), PROBABLE, "the odds differ");
        assert_eq!(firmness(Some(rule_record(93)), 0.1), FIRM);
        assert_eq!(firmness(Some(rule_record(93)), 0.4), PROBABLE);
        assert_eq!(firmness(Some(rule_record(80)), 0.1), PROBABLE, "was wrong");
        assert_eq!(firmness(Some(rule_record(50)), 0.1), POSSIBLE);
        let never_agreed = RuleRecord {
            agreed: 0,
            agreed_right: 0,
            ..rule_record(80)
        };
        assert_eq!(firmness(Some(never_agreed), 0.1), FIRM);
        assert_eq!(firmness(Some(never_agreed), 0.4), PROBABLE);
        let perhaps_away = HeldEvidence {
            rule: code_rule(13, 2),
            origin_state: OriginState::PerhapsFails,
            ..evidence(0.1, 0.1)
        };
        let unsure = rule_firmness(None, &perhaps_away, &settings);
        assert_eq!(Some(unsure), PROBABLE, "the directory may be away");
        let elsewhere = rule_firmness(None, &elsewhere(0.1, 0.1), &settings);
        assert_eq!(Some(elsewhere), PROBABLE, "known from elsewhere alone");

        let memory = (34, 102);
        assert_eq!(of_rule(memory, None, 0.1), PROBABLE, "the use differs");
        assert_eq!(of_rule(memory, Some(rule_record(93)), 0.1), PROBABLE);
    }

    #[test]
    fn rule_is_firm_for_a_hold_that_outlasts_passing_faults_unless_it_was_wrong() {
        let settings = TestConfig::load(&[]).advice;
        let old = |(code, subcode)| HeldEvidence {
            rule: code_rule(code, subcode),
            rule_key: RuleKey {
                code: (code, subcode),
                ..rule_key(NamedFault::Unknown)
            },
            is_beyond_learned: true,
            ..evidence(0.1, 0.9)
        };
        let firmness = |evidence: &HeldEvidence, record: Option<RuleRecord>| {
            Some(rule_firmness(record.as_ref(), evidence, &settings))
        };
        assert_eq!(firmness(&old((13, 2)), None), FIRM);
        assert_eq!(firmness(&old((13, 2)), Some(rule_record(93))), FIRM);
        assert_eq!(firmness(&old((13, 2)), Some(rule_record(80))), PROBABLE);
        assert_eq!(firmness(&old((34, 102)), None), PROBABLE, "a request");
        let of_plugin = HeldEvidence {
            rule: hold_rule(object_that_is(Outcome::Absent)),
            ..old((13, 256))
        };
        assert_eq!(firmness(&of_plugin, None), PROBABLE, "a server may fail");
        let unlearned = HeldEvidence {
            reason: ReasonRecord::default(),
            ..old((13, 2))
        };
        assert_eq!(firmness(&unlearned, None), PROBABLE);
    }

    #[test]
    fn rule_is_firm_for_a_job_that_failed_after_each_of_its_releases() {
        let settings = TestConfig::load(&[]).advice;
        let asked = evidence(0.1, 0.9);
        let repeated = HeldEvidence {
            rule_key: RuleKey {
                failed: FailedReleases::OfJob,
                ..asked.rule_key
            },
            ..asked
        };
        for code in [(13, 2), (34, 102)] {
            let asked = HeldEvidence {
                rule: code_rule(code.0, code.1),
                ..repeated
            };
            let firmness = |record: Option<RuleRecord>| {
                Some(rule_firmness(record.as_ref(), &asked, &settings))
            };
            assert_eq!(firmness(None), FIRM);
            assert_eq!(firmness(Some(rule_record(93))), FIRM);
            assert_eq!(firmness(Some(rule_record(80))), PROBABLE);
            assert_eq!(firmness(Some(rule_record(50))), POSSIBLE);
        }
    }

    #[test]
    fn rule_of_a_request_is_firm_once_a_job_of_the_cluster_failed_again() {
        let settings = TestConfig::load(&[]).advice;
        let asked = |failed| HeldEvidence {
            rule: code_rule(34, 102),
            rule_key: RuleKey {
                failed,
                ..rule_key(NamedFault::Unknown)
            },
            ..evidence(0.4, 0.4)
        };
        let firmness = |failed, record: Option<RuleRecord>| {
            Some(rule_firmness(record.as_ref(), &asked(failed), &settings))
        };
        assert_eq!(firmness(FailedReleases::Unknown, None), PROBABLE);
        assert_eq!(firmness(FailedReleases::OfCluster, None), FIRM);
        let often_wrong = Some(rule_record(80));
        assert_eq!(firmness(FailedReleases::OfCluster, often_wrong), PROBABLE);
    }

    #[test]
    fn output_that_is_missing_again_after_a_release_needs_a_repair_once_the_hold_is_old() {
        let old_after_failure = HeldEvidence {
            lacks_output: true,
            failed_again: true,
            held_for_cause: 12,
            is_beyond_learned: true,
            ..evidence(0.6, 0.7)
        };
        assert_eq!(answer(old_after_failure), (HoldAction::Fix, POSSIBLE));
        let young = HeldEvidence {
            is_beyond_learned: false,
            ..old_after_failure
        };
        let without_a_failure = HeldEvidence {
            failed_again: false,
            ..old_after_failure
        };
        let of_input = HeldEvidence {
            lacks_output: false,
            ..old_after_failure
        };
        for unsure in [young, without_a_failure, of_input] {
            assert_eq!(answer(unsure), (HoldAction::Probe, None));
        }
    }

    #[test]
    fn answers_beyond_the_learned_ages_promise_nothing() {
        let old = |evidence| HeldEvidence {
            is_beyond_learned: true,
            ..evidence
        };
        let of_odds = |now, later| answer(old(evidence(now, later)));
        assert_eq!(of_odds(0.95, 0.9), (HoldAction::Probe, None), "a try");
        assert_eq!(of_odds(0.6, 0.9), (HoldAction::Probe, None));
        assert_eq!(
            of_odds(0.2, 0.9),
            (HoldAction::Probe, None),
            "it would have passed by now"
        );
        let not_due = [
            HeldEvidence {
                failed_just_now: true,
                ..evidence(0.2, 0.9)
            },
            HeldEvidence {
                origin_state: OriginState::Fails,
                ..evidence(0.2, 0.9)
            },
        ];
        for evidence in not_due {
            assert_eq!(answer(old(evidence)), (HoldAction::Later, POSSIBLE));
        }
        assert_eq!(of_odds(0.05, 0.05), (HoldAction::Fix, POSSIBLE));
        let often = HeldEvidence {
            holds_for_code: 5,
            ..evidence(0.05, 0.05)
        };
        assert_eq!(answer(often).0, HoldAction::Remove);
        assert_eq!(answer(old(often)), (HoldAction::Fix, POSSIBLE));

        let recovered = |recovered| HeldEvidence {
            recovered,
            passed_since: recovered > 0,
            ..evidence(0.6, 0.9)
        };
        assert_eq!(answer(old(recovered(1))), (HoldAction::Probe, None));
        assert_eq!(answer(old(recovered(2))), (HoldAction::Release, FIRM));
        let missing = HeldEvidence {
            rule: code_rule(13, 2),
            ..evidence(0.6, 0.2)
        };
        assert_eq!(
            answer(old(missing)),
            answer(missing),
            "a rule needs no odds"
        );
    }
}
