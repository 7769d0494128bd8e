//! The answer by the rule for the hold code, and its certainty.

use super::action::AnswerFirmness;
use super::codes::HoldRule;
use super::held_answer::{HeldAnswer, HeldQuestion};
use super::held_evidence::HeldEvidence;
use crate::answers::{FailedReleases, OriginState, RuleRecord};
use crate::config::AdviceConfig;

/// Probability of a later success from which on a rule that expects failure yields to the odds.
const RULE_YIELDS_FROM: f64 = 0.6;

/// Applies if there is a rule for the hold code, and nothing outweighs it: it is knowledge about HTCondor.
pub(super) fn code_rule(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let rule = evidence
        .hold
        .rule
        .filter(|rule| rule_decides(rule, evidence))?;
    let firmness = match evidence.origin.state {
        // Others get what is there, so what this job names is not.
        OriginState::Works => AnswerFirmness::Firm,
        _ => {
            let record = question.limits.rule(evidence.hold.rule_key);
            rule_firmness(record, evidence, question.settings)
        }
    };
    // A rule that leaves a job alone claims nothing about its success.
    let firmness = rule.expects_failure().then_some(firmness);
    Some(HeldAnswer {
        is_by_rule: true,
        ..HeldAnswer::new(rule.action, firmness)
    })
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
    let is_firm = if evidence.hold.rule_key.failed != FailedReleases::Unknown {
        record.is_none() || earned == AnswerFirmness::Firm
    } else {
        let agreed = record.and_then(RuleRecord::agreed_precision);
        let is_wrong = match agreed {
            Some(precision) => precision < settings.precision,
            None => earned == AnswerFirmness::Possible,
        };
        evidence.agrees_with_rule()
            && !is_wrong
            && evidence.origin.state != OriginState::PerhapsFails
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
        !evidence.learned.is_hold_too_old || evidence.hold.rule_key.named_fault.is_of_file();
    let is_learned = evidence.learned.reason.is_known() && is_of_learned_age;
    // A file that is missing where others get theirs stays missing, whatever became of other files.
    let passes = evidence.learned.odds.later >= RULE_YIELDS_FROM
        && is_learned
        && evidence.is_learned_here()
        && !evidence.learned.reason.never_passed()
        && evidence.origin.state != OriginState::Works
        && !is_probably_repaired(evidence);
    evidence.origin.state != OriginState::Fails
        && !evidence.origin.file_passed_since
        && !evidence.has_recovered()
        && !passes
}

/// Returns true if the jobs that got past such holds were probably repaired before, so that the odds, which count them,
/// say nothing about this job: most were released by hand, and the fault is one of the program that a job brings along, or
/// of its container; or one person released them all, after a server had lacked files that this person had named.
fn is_probably_repaired(evidence: &HeldEvidence) -> bool {
    let is_own_program = evidence.hold.stated.is_program_start();
    is_own_program && evidence.learned.is_mostly_repaired || evidence.origin.is_corrected_by_owner
}

#[cfg(test)]
mod tests {
    use htcondor_holdreasons::{Outcome, kind_of_code, read_reason};

    use super::super::codes::{code_rule, hold_rule};
    use super::super::test_evidence::{
        FIRM, POSSIBLE, PROBABLE, elsewhere, evidence, object_that_is, rule_record,
    };
    use super::*;
    use crate::answers::ReasonRecord;
    use crate::test_config::TestConfig;

    #[test]
    fn rule_is_as_certain_as_its_record() {
        let settings = TestConfig::load(&[]).advice;
        let of_rule = |code: (i32, i32), record: Option<RuleRecord>, later| {
            let asked = evidence(0.1, later).with(|one| one.hold.rule = code_rule(code.0, code.1));
            Some(rule_firmness(record.as_ref(), &asked, &settings))
        };
        let firmness = |record, later| of_rule((13, 2), record, later);
        assert_eq!(firmness(None, 0.3), FIRM, "nothing says otherwise");
        assert_eq!(firmness(None, 0.4), PROBABLE, "the odds differ");
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
        let perhaps_away = evidence(0.1, 0.1).with(|one| {
            one.hold.rule = code_rule(13, 2);
            one.origin.state = OriginState::PerhapsFails;
        });
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
        let old = |(code, subcode)| {
            evidence(0.1, 0.9).with(|one| {
                one.hold.rule = code_rule(code, subcode);
                one.hold.stated = kind_of_code(code, subcode);
                one.learned.is_hold_too_old = true;
            })
        };
        let firmness = |evidence: &HeldEvidence, record: Option<RuleRecord>| {
            Some(rule_firmness(record.as_ref(), evidence, &settings))
        };
        assert_eq!(firmness(&old((13, 2)), None), FIRM);
        assert_eq!(firmness(&old((13, 2)), Some(rule_record(93))), FIRM);
        assert_eq!(firmness(&old((13, 2)), Some(rule_record(80))), PROBABLE);
        assert_eq!(firmness(&old((34, 102)), None), PROBABLE, "a request");
        let of_plugin =
            old((13, 256)).with(|one| one.hold.rule = hold_rule(object_that_is(Outcome::Absent)));
        assert_eq!(firmness(&of_plugin, None), PROBABLE, "a server may fail");
        let upload = "Transfer output files failure at execution point slot1@e using protocol https. Details: The requested URL returned error: 404 ( URL file = https://a.example/x )|";
        let of_upload =
            old((13, 2)).with(|one| one.hold.stated = read_reason(upload, Some((13, 2))).kind);
        assert_eq!(firmness(&of_upload, None), PROBABLE, "whatever the code");
        let unlearned = old((13, 2)).with(|one| one.learned.reason = ReasonRecord::default());
        assert_eq!(firmness(&unlearned, None), PROBABLE);
    }

    #[test]
    fn rule_is_firm_for_a_job_that_failed_after_each_of_its_releases() {
        let settings = TestConfig::load(&[]).advice;
        let asked = evidence(0.1, 0.9);
        let repeated = asked.with(|one| one.hold.rule_key.failed = FailedReleases::OfJob);
        for code in [(13, 2), (34, 102)] {
            let asked = repeated.with(|one| one.hold.rule = code_rule(code.0, code.1));
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
        let asked = |failed| {
            evidence(0.4, 0.4).with(|one| {
                one.hold.rule = code_rule(34, 102);
                one.hold.rule_key.failed = failed;
            })
        };
        let firmness = |failed, record: Option<RuleRecord>| {
            Some(rule_firmness(record.as_ref(), &asked(failed), &settings))
        };
        assert_eq!(firmness(FailedReleases::Unknown, None), PROBABLE);
        assert_eq!(firmness(FailedReleases::OfCluster, None), FIRM);
        let often_wrong = Some(rule_record(80));
        assert_eq!(firmness(FailedReleases::OfCluster, often_wrong), PROBABLE);
    }
}
