//! The judgement on each held job: by rule where the code decides, else by the model where it may.

use anyhow::{Result, ensure};

use super::action::HoldAction;
use super::codes::{HoldRule, code_meaning, code_rule};
use super::decide::{
    AdviceDecision, DecisionThresholds, HoldOdds, LEAST_LIKE_HOLDS, decide_by_odds, like_words,
    speaks_against_rule,
};
use super::held_jobs::{HeldJob, JobSelection, check_selections, held_jobs};
use super::job_advice::{AdviceGround, JobAdvice, LikeHoldKind, LikeHolds, ModelSkill};
use crate::config;
use crate::error::hinted;
use crate::events::{EventStore, StoreSummary};
use crate::output;
use crate::tensors::{AskedHold, HoldRecordKind, HoldRecords, OutcomeCounts, OutcomeRecord};
use crate::training::{HoldModel, TrainedModel};

/// Judges the held jobs of `store` that `selections` name, or all of them if it is empty: those
/// that are held when the log ends, or at `at_ms` by what was known then.
///
/// # Errors
/// Fails for a job that is not in the log, or is not held then, for a moment outside of the log,
/// and for any but its end where the model sees what comes after.
pub fn advise(
    store: &EventStore,
    model: &TrainedModel,
    skill: Option<ModelSkill>,
    settings: &config::AdviceConfig,
    selections: &[JobSelection],
    at_ms: Option<i64>,
) -> Result<Vec<JobAdvice>> {
    let window = model.tensors.window;
    if let Some(at_ms) = at_ms {
        check_moment(store, window, at_ms)?;
    }
    let held = held_jobs(store, window, at_ms);
    check_selections(store, &held, selections, at_ms)?;

    let precisions = [settings.precision, settings.probable_precision];
    let [firm, probable] = model.answer_thresholds(precisions)?;
    let judge = HoldJudge {
        store,
        skill,
        settings,
        thresholds: DecisionThresholds { firm, probable },
        model: HoldModel::new(store, model),
        held: &held,
        asked_ms: at_ms.unwrap_or(store.summary.end_ms),
    };
    let selected: Vec<&HeldJob<'_>> = held
        .iter()
        .filter(|held| held.is_selected(selections))
        .collect();
    let asked: Vec<AskedHold> = selected.iter().map(|held| held.asked).collect();
    let probabilities = judge.model.probabilities(&asked)?;

    let mut advice = Vec::with_capacity(selected.len());
    for (held, probability) in selected.into_iter().zip(probabilities) {
        advice.push(judge.advise_on(held, probability));
    }
    Ok(advice)
}

struct HoldJudge<'a> {
    store: &'a EventStore,
    skill: Option<ModelSkill>,
    settings: &'a config::AdviceConfig,
    thresholds: DecisionThresholds,
    model: HoldModel<'a>,
    held: &'a [HeldJob<'a>],
    /// When it is asked, epoch ms.
    asked_ms: i64,
}

/// Refuses moments of which the log does not tell, and those whose future the model would see.
fn check_moment(store: &EventStore, window: config::WindowPlace, at_ms: i64) -> Result<()> {
    let StoreSummary {
        begin_ms, end_ms, ..
    } = store.summary;
    ensure!(
        (begin_ms..=end_ms).contains(&at_ms),
        hinted(
            format!("the log does not tell of {}", output::utc_time(at_ms)),
            format!(
                "name a moment from {} to {}",
                output::utc_time(begin_ms),
                output::utc_time(end_ms)
            )
        )
    );
    ensure!(
        window != config::WindowPlace::Life,
        hinted(
            "the model sees the whole record of a job, and so what came after that moment",
            "train a model with `window: release` or `hold`"
        )
    );
    Ok(())
}

impl HoldJudge<'_> {
    /// Judges one job, which the model gives this probability of success if it is released
    /// unchanged, and puts beside it what is known of the job.
    fn advise_on(&self, held: &HeldJob<'_>, probability: f64) -> JobAdvice {
        let (hold_code, hold_subcode) = held.reason();
        let history = held.job.history;
        let holds_for_this_reason = held.holds_for_this_reason();
        let siblings_held = self
            .held
            .iter()
            .filter(|other| other.is_sibling_of(held))
            .count();

        let odds = HoldOdds {
            probability,
            like: like_holds(&self.model.facts(&held.asked).records),
            holds_for_this_reason,
        };
        let judgement = self.judge(held, odds);
        let is_by_odds = judgement.decision.ground != AdviceGround::Rule;

        let held_since_ms = history.time_ms[held.asked.cycle.hold];
        JobAdvice {
            job: held.job.id(),
            ap: self.store.summary.aps[held.job.ap as usize].clone(),
            action: judgement.decision.action,
            ground: judgement.decision.ground,
            firmness: judgement.decision.firmness,
            evidence: judgement.decision.evidence,
            reasons: judgement.decision.reasons,
            command: judgement.command,
            then: judgement.then,
            hold_code,
            hold_subcode,
            meaning: code_meaning(hold_code, hold_subcode),
            held_since_ms,
            held_for_ms: self.asked_ms - held_since_ms,
            holds: held.asked.cycle.earlier_holds + 1,
            holds_for_this_reason,
            siblings_held,
            probability: is_by_odds.then_some(odds.probability),
            like_cases: odds.like.filter(|_| is_by_odds),
            skill: self.skill.filter(|_| is_by_odds),
        }
    }

    /// By rule where the code has one that its record does not speak against, else by the odds.
    fn judge(&self, held: &HeldJob<'_>, odds: HoldOdds) -> Judgement {
        let (hold_code, hold_subcode) = held.reason();
        if !held.is_known {
            return Judgement::unknown();
        }
        match code_rule(hold_code, hold_subcode) {
            Some(rule) if !(rule.expects_failure() && speaks_against_rule(odds.like)) => {
                Judgement::by_rule(&rule, held, odds.like)
            }
            _ => Judgement::by_odds(decide_by_odds(self.settings, &self.thresholds, odds), held),
        }
    }
}

/// A decision, and what to type.
struct Judgement {
    decision: AdviceDecision,
    command: Option<String>,
    then: Option<String>,
}

impl Judgement {
    fn by_rule(rule: &HoldRule, held: &HeldJob<'_>, like: Option<LikeHolds>) -> Judgement {
        let mut reasons = vec![rule.why.to_owned()];
        if let Some(like) = like.filter(|_| rule.expects_failure()) {
            reasons.push(like_words(like));
        }
        let release = format!("condor_release {}", held.job.id());
        Judgement {
            decision: AdviceDecision {
                action: rule.action,
                ground: AdviceGround::Rule,
                firmness: None,
                evidence: None,
                reasons,
            },
            command: rule.remedy.command(&held.job),
            then: rule.is_released_by_hand.then_some(release),
        }
    }

    fn by_odds(decision: AdviceDecision, held: &HeldJob<'_>) -> Judgement {
        let id = held.job.id();
        let release = format!("condor_release {id}");
        let (command, then) = match decision.action {
            HoldAction::Release => (Some(release), None),
            HoldAction::Fix => (Some(format!("condor_q -hold {id}")), Some(release)),
            HoldAction::Remove => (Some(format!("condor_rm {id}")), None),
            HoldAction::Later => (None, Some(release)),
            HoldAction::Leave | HoldAction::None => (None, None),
        };
        Judgement {
            decision,
            command,
            then,
        }
    }

    /// Events are missing after the hold: the log does not tell whether the job is still held.
    fn unknown() -> Judgement {
        Judgement {
            decision: AdviceDecision {
                action: HoldAction::None,
                ground: AdviceGround::Nothing,
                firmness: None,
                evidence: None,
                reasons: vec![
                    "events are missing after its hold, so that the log does not tell whether it is still held"
                        .to_owned(),
                ],
            },
            command: None,
            then: None,
        }
    }
}

/// What had become of holds for the same reason; where few of them are known, of those with the same
/// code and subcode.
fn like_holds(records: &HoldRecords) -> Option<LikeHolds> {
    let of_reason =
        LikeHolds::of_record(LikeHoldKind::Reason, records.holds(HoldRecordKind::Reason));
    let of_code = LikeHolds::of_record(LikeHoldKind::Code, records.holds(HoldRecordKind::Code));
    let is_enough = of_reason.holds >= LEAST_LIKE_HOLDS || of_reason.holds == of_code.holds;
    let like = if is_enough { of_reason } else { of_code };
    (like.holds > 0).then_some(like)
}

impl LikeHolds {
    fn of_record(kind: LikeHoldKind, record: &OutcomeRecord) -> LikeHolds {
        let OutcomeCounts { successes, .. } = record.outcomes;
        let holds = record.outcomes.decided();
        LikeHolds {
            kind,
            holds: holds as usize,
            successes: successes as usize,
            rate: f64::from(successes) / f64::from(holds.max(1)),
            last_10_successes: record.last_10.successes as usize,
        }
    }
}

/// The exit code for several pieces of advice: what they agree on, else that of no advice.
pub fn exit_code(advice: &[JobAdvice]) -> u8 {
    let first = advice
        .first()
        .map_or(HoldAction::None, |advice| advice.action);
    let agreed = advice.iter().all(|advice| advice.action == first);
    if agreed {
        first.exit_code()
    } else {
        HoldAction::None.exit_code()
    }
}
