//! The rules by which a held job is to be released now, or one job of its cause as a try.

use super::action::{AnswerFirmness, HoldAction};
use super::held_answer::{HeldAnswer, HeldQuestion};
use super::held_evidence::{HeldEvidence, RECOVERED_WITHOUT_ODDS, RUN_PAYS_FROM};
use crate::answers::{OriginState, RecoveryRecord};
use crate::config::AdviceConfig;

/// Applies if the odds reach the limit of firm releases. Where others got past the cause, it applies only if the fault
/// is gone, because the record of such releases may make this one more certain than the odds do.
pub(super) fn odds_are_nearly_sure(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let is_gone = is_fault_gone(evidence);
    let applies = question.is_passing()
        && question.reaches(question.limits.release.firm)
        && (is_gone || !evidence.has_recovered());
    applies.then(|| release(release_firmness(is_gone)))
}

/// Applies if other jobs got past the cause since it failed last, which shows more than any odds.
pub(super) fn others_got_past_the_cause(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    if !evidence.has_recovered() {
        return None;
    }
    let key = evidence.recovery_key();
    let is_sure = is_recovery_sure(evidence, question.limits.recovery(key), question.settings);
    Some(HeldAnswer {
        recovery: Some(key),
        ..release(release_firmness(is_sure))
    })
}

/// Applies if the odds of a job that is alone with its cause reach the limit of probable releases. Of several jobs, one
/// is tried first.
pub(super) fn odds_reach_the_limit(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let applies = evidence.cause.held <= 1 && question.reaches(question.limits.release.probable);
    applies.then(|| release(AnswerFirmness::Probable))
}

/// Applies if a run of one of several jobs of a cause that may pass is worth its cost. It is about all jobs of the
/// cause, so they get one answer. Where this log knows nothing, the run teaches more than the odds of other access
/// points do.
pub(super) fn probe_of_cause(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let cause = &evidence.cause;
    let pays = cause.is_new
        || does_origin_answer(evidence)
        || cause.best_odds * cause.held as f64 >= RUN_PAYS_FROM;
    let may_pass = question.is_passing()
        || evidence.origin.state == OriginState::Fails
        || !evidence.learned.has_outcomes
        || cause.is_new;
    let applies = cause.held >= 2 && may_pass && pays && is_due(evidence);
    applies.then(|| HeldAnswer::new(HoldAction::Probe, None))
}

/// Applies if a job that is alone with a passing cause is worth a run: its odds are high enough, or it has
/// been held for longer than faults that pass. If its fault passes, it has passed by now, and to wait shows
/// nothing. Outcomes of its owner need not be known, because no other job depends on the answer.
pub(super) fn try_of_lone_job(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let outlasts_outages = evidence.learned.is_hold_too_old
        && is_due(evidence)
        && evidence.origin.state != OriginState::Fails;
    let is_worth_a_run = outlasts_outages || evidence.cause.best_odds >= RUN_PAYS_FROM;
    let applies = evidence.cause.held == 1 && question.is_passing() && is_worth_a_run;
    applies.then(|| HeldAnswer::new(HoldAction::Probe, None))
}

/// Returns true if a probe may find another state than the last job that failed did.
fn is_due(evidence: &HeldEvidence) -> bool {
    !evidence.cause.failed_just_now
        || does_origin_answer(evidence)
        || evidence.cause.recovered > 0
        || evidence.cause.best_odds >= RUN_PAYS_FROM
}

/// Returns true if the origin answers others again, though perhaps it lacks the file.
fn does_origin_answer(evidence: &HeldEvidence) -> bool {
    evidence.origin.reads >= RECOVERED_WITHOUT_ODDS
}

fn release(firmness: AnswerFirmness) -> HeldAnswer {
    HeldAnswer::new(HoldAction::Release, Some(firmness))
}

/// Returns the certainty of a release that follows from limits or outcomes of other jobs.
fn release_firmness(is_sure: bool) -> AnswerFirmness {
    if is_sure {
        AnswerFirmness::Firm
    } else {
        AnswerFirmness::Probable
    }
}

/// Returns true if a release because other jobs got past the cause is firm: another job of the cluster ended well, and
/// no record of such releases contradicts it, or enough of them ended well. That others got past the cause, or that its
/// server is back, does not show that the job has no further fault. It is not firm if the directory or server has
/// failed for two clusters since, or if others got other files from there alone.
fn is_recovery_sure(
    evidence: &HeldEvidence,
    record: Option<&RecoveryRecord>,
    settings: &AdviceConfig,
) -> bool {
    if evidence.cause.recovered < RECOVERED_WITHOUT_ODDS
        || evidence.may_need_repair()
        || evidence.rests_on_other_files()
        || evidence.origin.has_failed_since
    {
        return false;
    }
    let Some(record) = record else {
        return evidence.cause.has_cluster_succeeded;
    };
    let share = if evidence.cause.has_cluster_succeeded {
        record.precision()
    } else {
        record.lower_precision()
    };
    share >= settings.precision
}

/// Returns true if outcomes of other jobs show enough about this one for a firm release. Another job of
/// the cluster must have succeeded, as this job may have a further fault, and got the same file if one did not arrive.
fn is_fault_gone(evidence: &HeldEvidence) -> bool {
    evidence.cause.has_cluster_succeeded
        && !evidence.may_need_repair()
        && !evidence.rests_on_other_files()
}
