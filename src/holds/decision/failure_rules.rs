//! The rules by which a held job fails if it is released now: it is to wait, to be repaired, or to be removed.

use super::action::{AnswerFirmness, HoldAction};
use super::held_answer::{HeldAnswer, HeldQuestion};
use super::held_evidence::HeldEvidence;
use crate::answers::{AnswerThreshold, LimitPair, OriginState};

/// Applies if a released job failed for the cause again, so that the fault of this one stays, too.
pub(super) fn release_failed_again(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let applies = question.evidence.stays_after_failed_release();
    applies.then(|| HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Possible)))
}

/// Applies if no job of the cluster ended well by itself, and output files are missing on several machines where other jobs
/// end well, so that the program is at fault.
pub(super) fn outputs_missing_on_several_machines(
    question: &HeldQuestion<'_>,
) -> Option<HeldAnswer> {
    let applies = question.evidence.hold.never_writes_output;
    applies.then(|| HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Probable)))
}

/// Applies if other jobs got their files from the place where this one did not, so that its file is at fault.
pub(super) fn others_read_their_files(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let applies = question.evidence.failed_while_others_read();
    applies.then(|| HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Probable)))
}

/// Applies if the odds are of other kinds of holds, and what failed is known to pass.
pub(super) fn unknown_kind_may_pass(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let passes = evidence.origin.state == OriginState::Fails
        || evidence.hold.rule_key.named_fault.may_pass();
    (is_kind_unknown(evidence) && passes).then(wait)
}

/// Applies if the odds are of other kinds of holds: they say nothing about this one.
pub(super) fn kind_is_unknown(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    is_kind_unknown(question.evidence).then(|| HeldAnswer::new(HoldAction::None, None))
}

fn is_kind_unknown(evidence: &HeldEvidence) -> bool {
    evidence.is_of_unknown_kind() && !evidence.has_recovered()
}

/// Returns the answer to wait, without a promise.
fn wait() -> HeldAnswer {
    HeldAnswer::new(HoldAction::Later, Some(AnswerFirmness::Possible))
}

/// Applies if the odds of a later release say that the fault passes.
pub(super) fn fault_may_pass(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let learned = &question.evidence.learned;
    let earned = firmness_of(question.limits.later, |limit| {
        learned.odds.later >= limit.probability
    });
    // Repairs that the log does not show look like faults that pass.
    let firmness = if learned.is_mostly_repaired {
        earned.max(AnswerFirmness::Probable)
    } else {
        earned
    };
    let applies = question.is_passing();
    applies.then(|| HeldAnswer::new(HoldAction::Later, Some(firmness)))
}

/// Applies if the place of the file fails, or if the words of the reason name a fault that passes. The words outweigh
/// odds that have earned no promise.
pub(super) fn reason_names_a_passing_fault(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let is_named = evidence.hold.rule_key.named_fault.may_pass() && !is_promised(question);
    (evidence.origin.state == OriginState::Fails || is_named).then(wait)
}

/// Applies if the odds are firmly against a job that was held for the same often.
pub(super) fn fault_returns(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let firmness = fix_firmness(question);
    let is_often_held =
        question.evidence.hold.holds_for_code >= question.settings.remove_from_holds;
    let applies = firmness == AnswerFirmness::Firm && is_often_held;
    applies.then(|| HeldAnswer::new(HoldAction::Remove, Some(firmness)))
}

/// Applies if the odds are against the job, and have earned a promise or follow from outcomes that concern it.
pub(super) fn fault_stays(question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
    let evidence = question.evidence;
    let has_outcomes = evidence.learned.has_outcomes || !evidence.is_learned_here();
    let applies = is_promised(question) || has_outcomes;
    applies.then(|| HeldAnswer::new(HoldAction::Fix, Some(fix_firmness(question))))
}

/// Returns true if answers with such odds were right often enough for a promise.
fn is_promised(question: &HeldQuestion<'_>) -> bool {
    fix_firmness(question) != AnswerFirmness::Possible
}

/// Returns the certainty that the job needs a repair.
fn fix_firmness(question: &HeldQuestion<'_>) -> AnswerFirmness {
    let later = question.evidence.learned.odds.later;
    firmness_of(question.limits.fix, |limit| later <= limit.probability)
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
