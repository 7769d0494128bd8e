//! Decides what to answer about a job that is held now, from its odds, the limits that earlier
//! answers have earned, and the rule for its hold code.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;

use super::action::{AnswerFirmness, HoldAction};
use super::cause_evidence::{
    CauseEvidence, HELD_FOR_TWO_PROBES, ProbeCause, cause_evidence, probe_cause, probe_kind,
};
use super::codes::{HoldRule, hold_rule, reason_names_file};
use crate::answers::{
    AnswerLimits, AnswerModel, CauseKind, HeldOdds, HoldHistory, LearnedAge, LearnedAnswers,
    LimitPair, NamedFault, OriginState, PROGRAM_NOT_STARTED, PastHold, RecoveryKey, RecoveryRecord,
    RuleKey, RuleRecord, TRANSFER_INPUT, ThingState,
};
use crate::config::AdviceConfig;
use crate::training::AnswerThreshold;
use poolcast_base::output;
use poolcast_events::EventStore;
use poolcast_tensors::QueriedHold;

/// Probability of a later success from which on a fault counts as passing. The odds are low for most
/// faults that pass, because they are learned from early releases, which often come before the fault
/// has passed.
const PASSING_FROM: f64 = 0.4;
/// Probability of a later success from which on a rule that expects failure yields to the odds.
const RULE_YIELDS_FROM: f64 = 0.5;
/// Minimum probability of success of a probe.
const MIN_PROBE_PROBABILITY: f64 = 0.05;
/// Expected successes in a cause from which on a probe of it is worth a run.
const MIN_EXPECTED_SUCCESSES: f64 = 0.6;
/// Number of held jobs of a cause up to which each is released by its own probability.
const FEW_HELD: usize = 3;
/// Probability of success from which on many held jobs of a cause are released without a probe.
const RELEASE_MANY_FROM: f64 = 0.9;
/// Probability of success from which on a job that is alone with its cause is released as a try.
const TRY_FROM: f64 = 0.5;
/// Jobs that got past the cause since its last failure from which on it has passed, whatever the
/// odds.
const RECOVERED_WITHOUT_ODDS: usize = 2;
/// Decided outcomes of the owner with the code, or of the named file, without which nobody can say
/// that a release pays.
pub const MIN_TAUGHT_OUTCOMES: usize = 3;

/// The facts that decide the answer about one held job.
#[derive(Debug, Clone, Copy)]
pub struct HeldEvidence {
    /// Index of the hold in the history.
    pub hold: usize,
    /// The record in which answers of a rule for the hold count.
    pub rule_key: RuleKey,
    /// The odds of a release, now and later.
    pub odds: HeldOdds,
    /// The rule for the hold code.
    pub rule: Option<HoldRule>,
    /// True if outcomes of holds whose reasons have the same words are known.
    pub has_outcomes_of_reason: bool,
    /// The state of the directory or server of its file when the hold began.
    pub origin_state: OriginState,
    /// True if a job got past the same named file since this job is held.
    pub passed_since: bool,
    /// True if outcomes of this owner, or of the named file, are known.
    pub is_taught: bool,
    /// True if outcomes of this owner, of the named file or of the cause are known. Without any, low
    /// odds are no evidence of a permanent fault.
    pub has_outcomes: bool,
    /// Jobs that are held now for the cause, this one included.
    pub held_for_cause: usize,
    /// Highest odds now among these jobs: those of the job that a probe would release.
    pub best_of_cause: f64,
    /// True if nothing is known about the cause as it is now: it has not failed within the ages of holds
    /// that were learned from, and nothing was learned here about any of these jobs, because their code
    /// is known from other access points alone, or because they have been held for longer, in a log
    /// with few outcomes.
    pub is_new_cause: bool,
    /// The cause that a probe would be about: its kind and its key.
    pub cause: ProbeCause,
    /// True if this job is one of those that a probe of the cause releases.
    pub is_probe: bool,
    /// Jobs that got past the cause since this job is held, and since the last failure: jobs that were
    /// held for it, or other jobs of the cluster that started the same program.
    pub recovered: usize,
    /// The latter alone; 0 if it was not the program that failed.
    pub started_in_cluster: usize,
    /// True if another job of the cluster succeeded since one failed like this. Nothing else shows that
    /// the job has no further fault.
    pub has_cluster_succeeded: bool,
    /// First runs of jobs that read files of its origin since the last failure there.
    pub origin_reads: usize,
    /// True if a job of the cause was released recently, and its outcome is not known yet.
    pub awaits_outcome: bool,
    /// True if a job failed for the cause so recently that a probe would hardly find another state.
    pub failed_just_now: bool,
    /// Holds of the job for the code and subcode, this one included.
    pub holds_for_code: usize,
    /// True if the hold is older than all that was learned from. Its odds are then a guess.
    pub is_beyond_learned: bool,
}

impl HeldEvidence {
    /// Returns the key of the record of releases because other jobs got past the cause.
    fn recovery_key(&self) -> RecoveryKey {
        RecoveryKey {
            code: self.rule_key.code,
            has_cluster_succeeded: self.has_cluster_succeeded,
        }
    }

    /// Returns the probability of success now: the odds, or the posterior mean of the chance of
    /// success with Jeffreys' prior if all jobs of the cause since its last failure got past it.
    pub fn probability_now(&self) -> f64 {
        if !self.has_recovered() {
            return self.odds.now;
        }
        let successes = self.recovered as f64;
        self.odds.now.max((successes + 0.5) / (successes + 1.0))
    }

    /// Returns the probability of success now that a page states; `None` if it is unknown.
    pub fn stated_probability(&self) -> Option<f64> {
        (!self.is_beyond_learned).then(|| self.probability_now())
    }

    /// Returns true if the outcomes of other jobs show that the fault has passed: two of two got past
    /// it, or one where the odds agree and the cause is small, as one job is then its probe.
    fn has_recovered(&self) -> bool {
        let is_small = (2..HELD_FOR_TWO_PROBES).contains(&self.held_for_cause);
        let enough = if is_small && self.odds.higher_now() >= TRY_FROM {
            1
        } else {
            RECOVERED_WITHOUT_ODDS
        };
        self.recovered >= enough
    }
}

/// An answer about a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAnswer {
    /// The recommended action.
    pub action: HoldAction,
    /// How certain it is; `None` for rules and for no advice.
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

/// Maximum number of passes of a file that are examined.
const MAX_PASSES: usize = 100;
/// Number of typical hold lengths for which a release without a known outcome counts as a probe.
const PROBE_LASTS: f64 = 4.0;
/// Share of a typical hold length for which an answer is good. Then the fault may have changed.
const GOOD_FOR: f64 = 0.25;

/// The answers about all jobs that are held at one moment.
#[derive(Debug)]
pub struct AskedAnswers {
    /// Evidence by the job and its number of earlier holds.
    evidence: HashMap<(u32, u32), HeldEvidence>,
    limits: AnswerLimits,
    /// The states of the things that failed.
    states: HashMap<ProbeCause, Arc<ThingState>>,
    learned_age: LearnedAge,
    /// Time at which the answers expire, epoch ms.
    pub good_until_ms: i64,
}

impl AskedAnswers {
    /// Asks `answers` about the holds in `asked`, all at `asked_ms`.
    ///
    /// # Errors
    /// Fails if the model cannot compute the odds.
    pub fn new(
        store: &EventStore,
        answers: &LearnedAnswers,
        asked: &[QueriedHold],
        asked_ms: i64,
    ) -> Result<AskedAnswers> {
        let history = HoldHistory::new(store);
        let find = |asked: &QueriedHold| history.find(asked.job, asked.cycle.earlier_holds);
        let holds: Vec<usize> = asked.iter().filter_map(find).collect();
        let AllEvidence {
            holds: evidence,
            states,
            learned_age,
        } = held_evidence(&history, &answers.model, &holds, asked_ms)?;
        let key = |evidence: &HeldEvidence| {
            let hold = &history.holds[evidence.hold];
            (hold.job, hold.cycle.earlier_holds)
        };
        Ok(AskedAnswers {
            evidence: evidence.iter().map(|one| (key(one), *one)).collect(),
            limits: answers.limits.clone(),
            states,
            learned_age,
            good_until_ms: asked_ms + (GOOD_FOR * history.unit_ms(asked_ms)) as i64,
        })
    }

    /// Returns the evidence on a hold.
    pub fn evidence(&self, asked: &QueriedHold) -> Option<&HeldEvidence> {
        self.evidence.get(&(asked.job, asked.cycle.earlier_holds))
    }

    /// Returns the answer that follows from `evidence`.
    pub fn answer(&self, evidence: &HeldEvidence, settings: &AdviceConfig) -> HeldAnswer {
        held_answer(evidence, &self.limits, settings)
    }

    /// Returns true if the answer would be a release, or at least a probe, if more outcomes were
    /// known.
    pub fn lacks_outcomes(
        &self,
        answer: &HeldAnswer,
        evidence: &HeldEvidence,
        settings: &AdviceConfig,
    ) -> bool {
        let taught = HeldEvidence {
            is_taught: true,
            ..*evidence
        };
        let action = self.answer(&taught, settings).action;
        action != answer.action && matches!(action, HoldAction::Release | HoldAction::Probe)
    }

    /// Returns the record of releases like `answer`, if other jobs got past the cause.
    pub fn recovered(&self, answer: &HeldAnswer) -> Option<RecoveryRecord> {
        self.limits.recovery(answer.recovery?).copied()
    }

    /// Returns the state of the thing that failed; `None` if no outcome is known.
    pub fn state(&self, evidence: &HeldEvidence) -> Option<&Arc<ThingState>> {
        self.states.get(&evidence.cause)
    }

    /// Explains why the odds of a hold that has lasted for `held_for_ms` are unknown; `None` if they
    /// are known.
    pub fn why_no_odds(&self, evidence: &HeldEvidence, held_for_ms: i64) -> Option<String> {
        if !evidence.is_beyond_learned {
            return None;
        }
        let longest_ms = self.learned_age.longest_released_ms;
        let known = if held_for_ms > longest_ms {
            let longest = output::time_span(longest_ms);
            format!("no job in this log was released after more than {longest}")
        } else {
            let max = output::time_span(self.learned_age.max_ms);
            format!("the answers have learned from the first {max} of holds only")
        };
        Some(format!("{known}, so its probability of success is unknown"))
    }

    /// Returns the limit that `answer` reached, with the earlier answers beyond it.
    pub fn limit(&self, answer: &HeldAnswer, evidence: &HeldEvidence) -> Option<AnswerThreshold> {
        if evidence.is_beyond_learned || evidence.odds.is_known_from_elsewhere {
            return None;
        }
        let limits = match answer.action {
            HoldAction::Release => self.limits.release,
            HoldAction::Fix | HoldAction::Remove => self.limits.fix,
            HoldAction::Later => self.limits.later,
            HoldAction::Probe | HoldAction::Leave | HoldAction::None => return None,
        };
        let limit = match answer.firmness? {
            AnswerFirmness::Firm => limits.firm?,
            AnswerFirmness::Probable => limits.probable?,
            AnswerFirmness::Possible => return None,
        };
        // A release may follow from the outcomes of other jobs, without the odds.
        let is_reached =
            answer.action != HoldAction::Release || evidence.odds.now >= limit.probability;
        is_reached.then_some(limit)
    }
}

/// The evidence on all jobs that are held at one moment.
pub(crate) struct AllEvidence {
    /// The evidence on each hold, `[n]`.
    pub holds: Vec<HeldEvidence>,
    /// The states of the things that failed, where an outcome is known.
    states: HashMap<ProbeCause, Arc<ThingState>>,
    learned_age: LearnedAge,
}

/// Returns the evidence on each of `holds`, which last at `asked_ms`, `[n]`.
///
/// # Errors
/// Fails if the model cannot compute the odds.
pub(crate) fn held_evidence(
    history: &HoldHistory<'_>,
    model: &AnswerModel,
    holds: &[usize],
    asked_ms: i64,
) -> Result<AllEvidence> {
    let odds = model.odds(history, holds, asked_ms)?;
    let learned_age = LearnedAge::new(model, history, asked_ms);
    let good_for_ms = (GOOD_FOR * history.unit_ms(asked_ms)) as i64;
    let succeeded: Vec<usize> = holds
        .iter()
        .map(|&index| history.succeeded_in_cluster(index, asked_ms))
        .collect();
    let kinds: Vec<CauseKind> = holds
        .iter()
        .zip(&succeeded)
        .map(|(&index, &succeeded)| asked_kind(history, index, succeeded, asked_ms))
        .collect();
    let causes = cause_evidence(history, holds, &kinds, &odds, asked_ms, &learned_age);
    let mut evidence = Vec::with_capacity(holds.len());
    for (at, (&index, &odds)) in holds.iter().zip(&odds).enumerate() {
        let hold = &history.holds[index];
        let cause_key = probe_cause(kinds[at], hold);
        let cause = &causes[&cause_key];
        let is_taught = is_taught(history, hold, asked_ms);
        let (origin_state, reads_since) = history.origin_state(hold, asked_ms);
        let started_in_cluster = started_in_cluster(hold, succeeded[at]);
        evidence.push(HeldEvidence {
            hold: index,
            rule_key: RuleKey::of(hold),
            odds,
            rule: hold_rule(hold.code, hold.subcode, hold.named_fault),
            has_outcomes_of_reason: has_outcomes_of_reason(history, hold, asked_ms),
            origin_state,
            passed_since: has_passed_since(history, hold, asked_ms),
            is_taught,
            has_outcomes: is_taught || cause.outcomes >= MIN_TAUGHT_OUTCOMES,
            held_for_cause: cause.held.len(),
            best_of_cause: cause.best_odds,
            is_new_cause: cause.is_new(asked_ms - learned_age.max_ms),
            cause: cause_key,
            recovered: cause.recovered().max(started_in_cluster),
            started_in_cluster,
            has_cluster_succeeded: succeeded[at] > 0,
            origin_reads: cause
                .state
                .map_or(reads_since, |state| state.reads_since.max(reads_since)),
            awaits_outcome: awaits_outcome(history, hold, asked_ms),
            is_probe: cause.probes.contains(&index),
            failed_just_now: cause.last_failure_ms > Some(asked_ms - good_for_ms),
            holds_for_code: hold.earlier_for_code as usize + 1,
            is_beyond_learned: learned_age.is_exceeded_by(asked_ms - hold.hold_ms),
        });
    }
    let state_of = |(key, cause): (ProbeCause, CauseEvidence)| Some((key, Arc::new(cause.state?)));
    Ok(AllEvidence {
        holds: evidence,
        states: causes.into_iter().filter_map(state_of).collect(),
        learned_age,
    })
}

/// Returns how many of the `succeeded` jobs of the cluster show that the program of `hold` starts: all,
/// if it is held for that, and else none.
fn started_in_cluster(hold: &PastHold, succeeded: usize) -> usize {
    if hold.code == PROGRAM_NOT_STARTED {
        succeeded
    } else {
        0
    }
}

/// Returns the kind of cause that an answer about hold `index` is for, of whose cluster `succeeded` other
/// jobs succeeded. Where these started the program, it needs no probe of the same program in other
/// clusters. Where others got its input file, it needs none of other files of the origin.
fn asked_kind(
    history: &HoldHistory<'_>,
    index: usize,
    succeeded: usize,
    asked_ms: i64,
) -> CauseKind {
    let hold = &history.holds[index];
    if started_in_cluster(hold, succeeded) >= RECOVERED_WITHOUT_ODDS {
        return CauseKind::ClusterReason;
    }
    let kind = probe_kind(hold);
    if kind != CauseKind::Origin || hold.code != TRANSFER_INPUT {
        return kind;
    }
    match ThingState::known(history, CauseKind::File, hold, asked_ms) {
        Some(state) if state.successes_since >= RECOVERED_WITHOUT_ODDS => CauseKind::File,
        _ => kind,
    }
}

/// Returns true if a job of the cause was released within the last few typical hold lengths, and
/// its outcome is not known yet. It is then the probe.
fn awaits_outcome(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let within_ms = (PROBE_LASTS * history.unit_ms(asked_ms)) as i64;
    let kind = probe_kind(hold);
    history.awaits_outcome(kind, &hold.causes, asked_ms, within_ms)
}

/// Returns true if a job that was held for the same named file got past it since `hold` began.
fn has_passed_since(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let kind = if hold.causes.names_file() {
        CauseKind::File
    } else if reason_names_file(hold.code) {
        CauseKind::Reason
    } else {
        return false;
    };
    let known = history.known_cause(kind, &hold.causes, asked_ms);
    let latest = known.passes.iter().rev().take(MAX_PASSES);
    latest
        .map(|pass| pass.released_ms)
        .any(|released_ms| released_ms > hold.hold_ms)
}

/// Returns true if enough outcomes of holds whose reasons have the same words are decided.
fn has_outcomes_of_reason(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let known = history.known_cause(CauseKind::Template, &hold.causes, asked_ms);
    known.outcomes.len() >= MIN_TAUGHT_OUTCOMES
}

/// Returns true if enough outcomes of the owner with this code, or of the named file, are decided.
fn is_taught(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let decided = |kind| {
        history
            .known_cause(kind, &hold.causes, asked_ms)
            .outcomes
            .len()
    };
    // A log without owners cannot tell whose outcomes they are.
    let own = if hold.owner == 0 {
        CauseKind::Code
    } else {
        CauseKind::OwnerCode
    };
    decided(own).max(decided(CauseKind::File)) >= MIN_TAUGHT_OUTCOMES
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
            _ => rule_firmness(&rule, record, evidence, settings),
        };
        // A rule that leaves a job alone claims nothing about its success.
        let firmness = rule.expects_failure().then_some(firmness);
        return HeldAnswer {
            is_by_rule: true,
            ..HeldAnswer::new(rule.action, firmness)
        };
    }
    let answer = success_answer(evidence, limits, settings)
        .unwrap_or_else(|| failure_answer(evidence, limits, settings.remove_from_holds));
    answer_within_learned(answer, evidence)
}

/// Returns `answer`, without its promise if it follows from odds that nothing was learned for here. A
/// removal, which cannot be undone, then becomes a repair, and a release the try of one job.
fn answer_within_learned(answer: HeldAnswer, evidence: &HeldEvidence) -> HeldAnswer {
    let is_learned = !evidence.is_beyond_learned && !evidence.odds.is_known_from_elsewhere;
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
/// knowledge about HTCondor and not about this pool, where missing files may come back by themselves,
/// so it is probable. Outcomes are known only for owners who release jobs, so the record alone makes
/// no answer firm: the odds later must agree, and where they did, the rule must have been right. A
/// rule that raises a request is not firm then, because what a job uses differs from run to run. If the
/// job itself failed again after several releases, the answer is firm unless such answers were wrong.
fn rule_firmness(
    rule: &HoldRule,
    record: Option<&RuleRecord>,
    evidence: &HeldEvidence,
    settings: &AdviceConfig,
) -> AnswerFirmness {
    let is_repeated = evidence.rule_key.is_repeated;
    let Some(record) = record else {
        return if is_repeated {
            AnswerFirmness::Firm
        } else {
            AnswerFirmness::Probable
        };
    };
    let agreed = record.agreed_precision(evidence.odds.later);
    let is_sure = |precision: f64| precision >= settings.precision;
    let is_firm = if is_repeated {
        is_sure(record.precision())
    } else {
        agreed.is_some_and(is_sure) && !rule.raises_request()
    };
    if is_firm {
        AnswerFirmness::Firm
    } else if record.precision() >= settings.probable_precision {
        AnswerFirmness::Probable
    } else {
        AnswerFirmness::Possible
    }
}

/// Returns true if `rule` decides. It yields only to a job that got past the same file since, to other
/// owners who miss files in the same directory, or to odds that say that the fault passes. What other
/// access points know, or what nobody has learned about so old a hold, does not outweigh a rule.
fn rule_decides(rule: &HoldRule, evidence: &HeldEvidence) -> bool {
    if !rule.expects_failure() || !rule.can_be_outweighed() {
        return true;
    }
    let HeldOdds {
        later,
        is_known_from_elsewhere,
        ..
    } = evidence.odds;
    let is_learned = if evidence.rule_key.named_fault.is_of_file() {
        // Its code is that of servers that fail, too, so the odds count once the reason is known. Then
        // they count at any age, because a server may lose a whole bucket for a while.
        evidence.has_outcomes_of_reason
    } else {
        !evidence.is_beyond_learned
    };
    // A file that is missing where others get theirs stays missing, whatever became of other files.
    let passes = later >= RULE_YIELDS_FROM
        && is_learned
        && !is_known_from_elsewhere
        && evidence.origin_state != OriginState::Works;
    evidence.origin_state != OriginState::Fails
        && !evidence.passed_since
        && !evidence.has_recovered()
        && !passes
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
    let may_be_firm = evidence.has_cluster_succeeded;
    if is_passing && evidence.is_taught && reaches(limits.release.firm) {
        return release(release_firmness(may_be_firm));
    }
    if evidence.has_recovered() {
        let key = evidence.recovery_key();
        let is_sure = |record: &RecoveryRecord| record.lower >= settings.precision;
        let firmness = release_firmness(may_be_firm && limits.recovery(key).is_some_and(is_sure));
        return Some(HeldAnswer {
            recovery: Some(key),
            ..HeldAnswer::new(HoldAction::Release, Some(firmness))
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
    let is_try =
        held == 1 && is_passing && evidence.is_taught && evidence.best_of_cause >= TRY_FROM;
    is_try.then(|| HeldAnswer::new(HoldAction::Probe, None))
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
        let firmness = firmness_of(limits.later, |limit| later >= limit.probability);
        return HeldAnswer::new(HoldAction::Later, Some(firmness));
    }
    let firmness = firmness_of(limits.fix, |limit| later <= limit.probability);
    // The words of the reason outweigh odds that have earned no promise.
    let passes = evidence.origin_state == OriginState::Fails
        || evidence.rule_key.named_fault == NamedFault::Server
            && firmness == AnswerFirmness::Possible;
    if passes {
        return HeldAnswer::new(HoldAction::Later, Some(AnswerFirmness::Possible));
    }
    let has_outcomes = evidence.has_outcomes || evidence.odds.is_known_from_elsewhere;
    if firmness == AnswerFirmness::Possible && !has_outcomes {
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
mod tests {
    use super::super::codes::code_rule;
    use super::*;
    use crate::answers::learned_test_answers;
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

    /// The key of a hold for an input file.
    fn rule_key(named_fault: NamedFault) -> RuleKey {
        RuleKey {
            code: (13, 2),
            named_fault,
            is_repeated: false,
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

    fn limits() -> AnswerLimits {
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

    fn evidence(now: f64, later: f64) -> HeldEvidence {
        HeldEvidence {
            hold: 0,
            rule_key: rule_key(NamedFault::Unknown),
            odds: HeldOdds {
                now,
                uncalibrated: now,
                later,
                is_known_from_elsewhere: false,
            },
            rule: None,
            has_outcomes_of_reason: true,
            origin_state: OriginState::Unknown,
            passed_since: false,
            is_taught: true,
            has_outcomes: true,
            held_for_cause: 1,
            best_of_cause: now,
            is_new_cause: false,
            cause: (0, 0),
            is_probe: true,
            awaits_outcome: false,
            failed_just_now: false,
            recovered: 0,
            started_in_cluster: 0,
            has_cluster_succeeded: true,
            origin_reads: 0,
            holds_for_code: 1,
            is_beyond_learned: false,
        }
    }

    /// Returns evidence with these odds, which are known from other access points alone.
    fn elsewhere(now: f64, later: f64) -> HeldEvidence {
        let evidence = evidence(now, later);
        HeldEvidence {
            odds: HeldOdds {
                is_known_from_elsewhere: true,
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
    fn release_after_others_got_past_is_firm_once_such_releases_succeeded() {
        let evidence = HeldEvidence {
            recovered: 3,
            ..evidence(0.4, 0.3)
        };
        let record = |lower| RecoveryRecord {
            key: evidence.recovery_key(),
            releases: 50,
            successes: 48,
            lower,
        };
        let firmness = |lower: Option<f64>| {
            let limits = AnswerLimits {
                recovered: lower.into_iter().map(record).collect(),
                ..limits()
            };
            let answer = held_answer(&evidence, &limits, &TestConfig::load(&[]).advice);
            assert_eq!(answer.recovery, Some(evidence.recovery_key()));
            assert_eq!(answer.action, HoldAction::Release);
            answer.firmness
        };
        assert_eq!(firmness(None), PROBABLE);
        assert_eq!(firmness(Some(0.89)), PROBABLE);
        assert_eq!(firmness(Some(0.9)), FIRM);
    }

    #[test]
    fn both_odds_decide() {
        assert_eq!(answer(evidence(0.95, 0.9)), (HoldAction::Release, FIRM));
        assert_eq!(answer(evidence(0.8, 0.9)), (HoldAction::Release, PROBABLE));
        assert_eq!(
            answer(evidence(0.6, 0.9)),
            (HoldAction::Probe, None),
            "a try"
        );
        assert_eq!(answer(evidence(0.4, 0.7)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(evidence(0.4, 0.9)), (HoldAction::Later, PROBABLE));
        assert_eq!(answer(evidence(0.2, 0.96)), (HoldAction::Later, FIRM));
        assert_eq!(answer(evidence(0.3, 0.05)), (HoldAction::Fix, FIRM));
        assert_eq!(answer(evidence(0.05, 0.2)), (HoldAction::Fix, PROBABLE));
        assert_eq!(answer(evidence(0.05, 0.35)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(
            answer(evidence(0.05, 0.45)),
            (HoldAction::Later, POSSIBLE),
            "it may pass"
        );
        let words_of_server = |now, later| HeldEvidence {
            rule_key: rule_key(NamedFault::Server),
            ..evidence(now, later)
        };
        assert_eq!(
            answer(words_of_server(0.05, 0.35)),
            (HoldAction::Later, POSSIBLE),
            "the words outweigh odds without a promise"
        );
        assert_eq!(
            answer(words_of_server(0.05, 0.2)),
            (HoldAction::Fix, PROBABLE)
        );
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
        assert_eq!(answer(many(0.95)), (HoldAction::Release, FIRM));
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
        assert_eq!(answer(after(12, 0.2, 2)), (HoldAction::Release, PROBABLE));
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
        assert_eq!(answer(untaught).0, HoldAction::Later);
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
        assert_eq!(answer(elsewhere(0.95, 0.95)).0, HoldAction::Later);
        let recovered = HeldEvidence {
            recovered: 2,
            ..elsewhere(0.3, 0.9)
        };
        assert_eq!(answer(recovered), (HoldAction::Release, PROBABLE));
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
                is_known_from_elsewhere: true,
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
            rule: hold_rule(13, 256, NamedFault::Missing),
            rule_key: rule_key(named_fault),
            is_beyond_learned: true,
            ..evidence(0.2, 0.9)
        };
        assert_eq!(answer(old(NamedFault::Unknown)).0, HoldAction::Fix);
        assert_eq!(
            answer(old(NamedFault::Missing)),
            (HoldAction::Later, POSSIBLE)
        );
        let without_outcomes = HeldEvidence {
            has_outcomes_of_reason: false,
            ..old(NamedFault::Missing)
        };
        assert_eq!(answer(without_outcomes).0, HoldAction::Fix);
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
        let sure = evidence(0.95, 0.95);
        assert_eq!(answer(sure), (HoldAction::Release, FIRM));
        let alone = HeldEvidence {
            has_cluster_succeeded: false,
            ..sure
        };
        assert_eq!(answer(alone), (HoldAction::Release, PROBABLE));
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
            let rule = code_rule(code.0, code.1).expect("a rule");
            let asked = evidence(0.1, later);
            Some(rule_firmness(&rule, record.as_ref(), &asked, &settings))
        };
        let firmness = |record, later| of_rule((13, 2), record, later);
        assert_eq!(firmness(None, 0.1), PROBABLE, "nothing earned");
        assert_eq!(firmness(Some(rule_record(93)), 0.1), FIRM);
        assert_eq!(
            firmness(Some(rule_record(93)), 0.4),
            PROBABLE,
            "the odds differ"
        );
        assert_eq!(firmness(Some(rule_record(50)), 0.4), POSSIBLE);

        let memory = (34, 102);
        assert_eq!(of_rule(memory, None, 0.1), PROBABLE, "the use differs");
        assert_eq!(of_rule(memory, Some(rule_record(93)), 0.1), PROBABLE);
    }

    #[test]
    fn rule_is_firm_for_a_job_that_failed_after_each_of_its_releases() {
        let settings = TestConfig::load(&[]).advice;
        let asked = evidence(0.1, 0.9);
        let repeated = HeldEvidence {
            rule_key: RuleKey {
                is_repeated: true,
                ..asked.rule_key
            },
            ..asked
        };
        for code in [(13, 2), (34, 102)] {
            let rule = code_rule(code.0, code.1).expect("a rule");
            let firmness = |record: Option<RuleRecord>| {
                Some(rule_firmness(&rule, record.as_ref(), &repeated, &settings))
            };
            assert_eq!(firmness(None), FIRM);
            assert_eq!(firmness(Some(rule_record(93))), FIRM);
            assert_eq!(firmness(Some(rule_record(80))), PROBABLE);
            assert_eq!(firmness(Some(rule_record(50))), POSSIBLE);
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
        assert_eq!(of_odds(0.2, 0.9), (HoldAction::Later, POSSIBLE));
        assert_eq!(of_odds(0.05, 0.05), (HoldAction::Fix, POSSIBLE));
        let often = HeldEvidence {
            holds_for_code: 5,
            ..evidence(0.05, 0.05)
        };
        assert_eq!(answer(often).0, HoldAction::Remove);
        assert_eq!(answer(old(often)), (HoldAction::Fix, POSSIBLE));

        let recovered = |recovered| HeldEvidence {
            recovered,
            ..evidence(0.6, 0.9)
        };
        assert_eq!(answer(old(recovered(1))), (HoldAction::Probe, None));
        assert_eq!(answer(old(recovered(2))), (HoldAction::Release, PROBABLE));
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

    /// Returns the answers about the jobs that are held at second 16,500 of `log`, which is a log of
    /// six outages with more jobs. The model has learned up to second 16,000.
    fn asked_answers(log: &TestLog) -> (AskedAnswers, Vec<QueriedHold>) {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let asked_ms = 16_500_000;
        let holds = history.held_at(asked_ms);
        let asked: Vec<QueriedHold> = holds
            .iter()
            .map(|&hold| history.asked(hold, asked_ms))
            .collect();
        let model = AnswerModel::learn(&history, 16_000_000, 1, None, &|| false);
        let answers = LearnedAnswers {
            model: model.expect("learned").expect("outcomes"),
            limits: limits(),
            known_ms: 16_000_000,
        };
        let answers = AskedAnswers::new(&store, &answers, &asked, asked_ms);
        (answers.expect("asked"), asked)
    }

    #[test]
    fn jobs_of_one_thing_share_its_state() {
        let mut log = log_with_outages(6);
        log.add_held(7, 15_990);
        log.add_held(7, 16_000);
        log.add_held(8, 16_010);
        let (answers, asked) = asked_answers(&log);
        assert_eq!(asked.len(), 3);
        let state = |at: usize| {
            let evidence = answers.evidence(&asked[at]).expect("evidence");
            answers.state(evidence).map(|state| **state)
        };
        let known = state(0).expect("a state");
        assert_eq!(known.last_failure_ms, 16_000_000);
        assert_eq!(state(1), Some(known));
        assert_eq!(state(2), None, "no outcome of file 8 is known");
    }

    #[test]
    fn held_for_longer_than_any_release_has_no_odds() {
        let mut log = log_with_outages(6);
        log.add_held(7, 11_000);
        log.add_held(7, 16_490);
        let (answers, asked) = asked_answers(&log);
        let why = |at: usize, held_for_ms| {
            let evidence = answers.evidence(&asked[at]).expect("evidence");
            answers.why_no_odds(evidence, held_for_ms)
        };
        let of_old = why(0, 5_500_000).expect("too old");
        assert!(
            of_old.starts_with("no job in this log was released after more than 1 min 21 s,"),
            "{of_old}"
        );
        let of_younger = why(0, 80_000).expect("too old");
        assert!(of_younger.starts_with("the answers have learned from the first"));
        assert_eq!(why(1, 10_000), None);
    }

    #[test]
    fn cause_is_new_if_neither_its_jobs_nor_a_late_failure_teach_anything() {
        let mut log = log_with_outages(2);
        log.add_held(8, 11_000);
        log.add_held(8, 11_010);
        log.add_held(7, 11_000);
        log.add_held(7, 16_490);
        let (answers, asked) = asked_answers(&log);
        let is_new = |at: usize| answers.evidence(&asked[at]).expect("evidence").is_new_cause;
        assert_eq!([0, 1, 2, 3].map(is_new), [true, true, false, false]);
    }

    #[test]
    fn lack_of_outcomes_is_named_only_where_it_decides() {
        let mut log = log_with_outages(6);
        log.add_held(7, 16_000);
        let (answers, _) = asked_answers(&log);
        let settings = TestConfig::load(&[]).advice;
        let lacks = |now, later| {
            let untaught = HeldEvidence {
                is_taught: false,
                ..evidence(now, later)
            };
            let answer = answers.answer(&untaught, &settings);
            answers.lacks_outcomes(&answer, &untaught, &settings)
        };
        assert!(lacks(0.95, 0.9), "else a release");
        assert!(lacks(0.6, 0.9), "else a try");
        assert!(!lacks(0.05, 0.2), "a permanent fault");
        let taught = evidence(0.95, 0.9);
        let answer = answers.answer(&taught, &settings);
        assert!(!answers.lacks_outcomes(&answer, &taught, &settings));
    }
}
