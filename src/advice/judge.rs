//! The judgement on each held job: by rule where the code decides, else by the model where it may.

use anyhow::{Result, ensure};

use super::action::HoldAction;
use super::codes::{code_meaning, code_rule};
use super::held_jobs::{HeldJob, JobSelection, check_selections, held_jobs};
use super::job_advice::{AdviceGround, JobAdvice, LikeHolds, ModelSkill};
use crate::config;
use crate::error::hinted;
use crate::eventlog::HELD;
use crate::events::{EventStore, StoreSummary};
use crate::output;
use crate::training::{HoldModel, SuccessRates, TrainingRun};

/// Judges the held jobs of `store` that `selections` name, or all of them if it is empty: those
/// that are held when the log ends, or at `at_ms` by what was known then.
///
/// # Errors
/// Fails for a job that is not in the log, or is not held then, for a moment outside of the log,
/// and for any but its end where the model sees what comes after.
pub fn advise(
    store: &EventStore,
    run: &TrainingRun,
    skill: Option<ModelSkill>,
    settings: &config::AdviceConfig,
    selections: &[JobSelection],
    at_ms: Option<i64>,
) -> Result<Vec<JobAdvice>> {
    let window = run.summary.tensors.window;
    if let Some(at_ms) = at_ms {
        check_moment(store, window, at_ms)?;
    }
    let held = held_jobs(store, window, at_ms);
    check_selections(store, &held, selections, at_ms)?;

    let judge = HoldJudge {
        store,
        run,
        skill,
        settings,
        model: HoldModel::new(store, run),
        held: &held,
        asked_ms: at_ms.unwrap_or(store.summary.end_ms),
    };
    held.iter()
        .filter(|held| held.is_selected(selections))
        .map(|held| judge.advise_on(held))
        .collect()
}

struct HoldJudge<'a> {
    store: &'a EventStore,
    run: &'a TrainingRun,
    skill: Option<ModelSkill>,
    settings: &'a config::AdviceConfig,
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

/// A judgement, before it is put beside what is known of the job.
struct Judgement {
    action: HoldAction,
    ground: AdviceGround,
    reasons: Vec<String>,
    command: Option<String>,
    probability: Option<f64>,
    like_cases: Option<LikeHolds>,
}

impl HoldJudge<'_> {
    /// Judges one job, and puts beside it what is known of the job.
    fn advise_on(&self, held: &HeldJob<'_>) -> Result<JobAdvice> {
        let (hold_code, hold_subcode) = held.reason();
        let history = held.job.history;
        let holds_for_this_reason = (0..=held.asked.cycle.hold)
            .filter(|&at| {
                history.number[at] == HELD
                    && history.hold_code[at] == hold_code
                    && history.hold_subcode[at] == hold_subcode
            })
            .count();
        let siblings_held = self
            .held
            .iter()
            .filter(|other| other.is_sibling_of(held))
            .count();

        let judgement = match code_rule(hold_code, hold_subcode) {
            Some(rule) => Judgement {
                action: rule.action,
                ground: AdviceGround::Rule,
                reasons: vec![rule.why.to_owned()],
                command: Some(rule.command.replace("JOB", &held.job.id())),
                probability: None,
                like_cases: None,
            },
            None => self.judge_by_model(held, holds_for_this_reason)?,
        };

        let held_since_ms = history.time_ms[held.asked.cycle.hold];
        Ok(JobAdvice {
            job: held.job.id(),
            ap: self.store.summary.aps[held.job.ap as usize].clone(),
            action: judgement.action,
            ground: judgement.ground,
            reasons: judgement.reasons,
            command: judgement.command,
            then: (judgement.action == HoldAction::Fix)
                .then(|| format!("condor_release {}", held.job.id())),
            hold_code,
            hold_subcode,
            meaning: code_meaning(hold_code, hold_subcode),
            held_since_ms,
            held_for_ms: self.asked_ms - held_since_ms,
            holds: held.asked.cycle.earlier_holds + 1,
            holds_for_this_reason,
            siblings_held,
            probability: judgement.probability,
            like_cases: judgement.like_cases,
            skill: self.skill.filter(|_| judgement.probability.is_some()),
        })
    }

    /// Judges a job whose hold code has no rule.
    fn judge_by_model(
        &self,
        held: &HeldJob<'_>,
        holds_for_this_reason: usize,
    ) -> Result<Judgement> {
        let probability = self.probability(held)?;
        let like_cases = like_holds(&self.run.summary.rates, held.reason());
        let (action, reason) = decide_by_odds(
            self.settings,
            self.skill,
            probability,
            like_cases,
            holds_for_this_reason,
        );

        let id = held.job.id();
        let command = match action {
            HoldAction::Release => Some(format!("condor_release {id}")),
            HoldAction::Fix => Some(format!("condor_q -hold {id}")),
            HoldAction::Remove => Some(format!("condor_rm {id}")),
            HoldAction::Wait | HoldAction::None => None,
        };
        let ground = if action == HoldAction::None {
            AdviceGround::Nothing
        } else {
            AdviceGround::Model
        };
        Ok(Judgement {
            action,
            ground,
            reasons: vec![reason],
            command,
            probability: Some(probability),
            like_cases,
        })
    }

    /// The model's probability that the job ends well if it is released unchanged.
    fn probability(&self, held: &HeldJob<'_>) -> Result<f64> {
        Ok(self.model.probabilities(&[held.asked])?[0])
    }
}

/// The action for a hold that no rule decides, and why. Abstains where there is too little to go
/// by.
fn decide_by_odds(
    settings: &config::AdviceConfig,
    skill: Option<ModelSkill>,
    probability: f64,
    cases: Option<LikeHolds>,
    holds_for_this_reason: usize,
) -> (HoldAction, String) {
    let config::AdviceConfig {
        release_from,
        fix_below,
        remove_from_holds,
        min_like_cases,
    } = *settings;
    let like = cases.map_or(0, |cases| cases.holds);
    if like < min_like_cases {
        let reason = format!(
            "the model learned from only {} like this one; {min_like_cases} are needed",
            output::counted(like, "hold")
        );
        return (HoldAction::None, reason);
    }
    if skill.is_some_and(|skill| skill.interval.0 <= 0.5) {
        return (
            HoldAction::None,
            "on later holds this model did no better than chance".to_owned(),
        );
    }
    if probability >= release_from {
        return (
            HoldAction::Release,
            "holds like this one more often than not ended well after a release".to_owned(),
        );
    }
    if probability >= fix_below {
        return (HoldAction::None, "the odds are too even to say".to_owned());
    }
    if holds_for_this_reason >= remove_from_holds {
        let times = format!("it was held {holds_for_this_reason} times for this one reason");
        return (
            HoldAction::Remove,
            format!("{times}, and another release will hardly help"),
        );
    }
    (
        HoldAction::Fix,
        "released unchanged it will probably be held again or fail".to_owned(),
    )
}

/// What training saw of holds with this code and subcode.
fn like_holds(rates: &SuccessRates, (hold_code, hold_subcode): (i32, i32)) -> Option<LikeHolds> {
    let rate = rates.get(hold_code, hold_subcode)?;
    let (from_ms, to_ms) = (rates.from_ms, rates.to_ms);
    Some(LikeHolds {
        holds: rate.holds,
        successes: rate.successes,
        rate: rate.share(),
        from_ms,
        to_ms,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: config::AdviceConfig = config::AdviceConfig {
        release_from: 0.5,
        fix_below: 0.3,
        remove_from_holds: 5,
        min_like_cases: 20,
    };

    fn action(skill_low: f64, probability: f64, like: usize, holds: usize) -> HoldAction {
        let skill = ModelSkill {
            roc_auc: 0.7,
            interval: (skill_low, 0.8),
        };
        let cases = LikeHolds {
            holds: like,
            successes: 0,
            rate: 0.0,
            from_ms: 0,
            to_ms: 0,
        };
        decide_by_odds(&SETTINGS, Some(skill), probability, Some(cases), holds).0
    }

    #[test]
    fn odds_decide_only_where_there_is_something_to_go_by() {
        assert_eq!(action(0.6, 0.5, 20, 1), HoldAction::Release);
        assert_eq!(action(0.6, 0.49, 20, 1), HoldAction::None, "too even");
        assert_eq!(action(0.6, 0.3, 20, 9), HoldAction::None, "too even");
        assert_eq!(action(0.6, 0.29, 20, 4), HoldAction::Fix);
        assert_eq!(action(0.6, 0.29, 20, 5), HoldAction::Remove);
        assert_eq!(
            action(0.6, 0.9, 19, 1),
            HoldAction::None,
            "too few like cases"
        );
        assert_eq!(
            action(0.5, 0.9, 20, 1),
            HoldAction::None,
            "no better than chance"
        );
        assert_eq!(
            decide_by_odds(&SETTINGS, None, 0.9, None, 1).0,
            HoldAction::None,
            "no like case at all"
        );
    }
}
