//! The odds of a hold, what such odds were worth before, and like holds → an action.

use super::action::{AnswerFirmness, HoldAction};
use super::job_advice::{AdviceGround, LikeHoldKind, LikeHolds};
use poolcast_config::AdviceConfig;
use poolcast_base::output;
use crate::training::{AnswerThreshold, AnswerThresholds, wilson_lower};

/// The least like holds that show anything.
pub(super) const LEAST_LIKE_HOLDS: usize = 20;

/// From this share of successes of like holds on, a rule that expects failure is not believed.
const SHARE_AGAINST_RULE: f64 = 0.25;

/// From this share of successes of like holds on, odds that are bad now speak of a fault that
/// passes.
const SHARE_OF_PASSING_FAULT: f64 = 0.5;

/// The thresholds that a model's answers have to pass.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecisionThresholds {
    pub(super) firm: AnswerThresholds,
    pub(super) probable: AnswerThresholds,
}

impl DecisionThresholds {
    /// Whether the model was shown to be right often enough for any answer.
    fn has_any(&self) -> bool {
        let sides = [self.firm, self.probable];
        sides
            .iter()
            .any(|side| side.success.is_some() || side.failure.is_some())
    }
}

/// What is known of a hold when it is decided on.
#[derive(Debug, Clone, Copy)]
pub(super) struct HoldOdds {
    /// The model's probability of success.
    pub(super) probability: f64,
    /// What became of holds with the same code and subcode.
    pub(super) like: Option<LikeHolds>,
    /// How often the job was held for this reason.
    pub(super) holds_for_this_reason: usize,
}

/// An action, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AdviceDecision {
    pub(super) action: HoldAction,
    pub(super) ground: AdviceGround,
    pub(super) firmness: Option<AnswerFirmness>,
    /// What answers like this one were worth.
    pub(super) evidence: Option<AnswerThreshold>,
    pub(super) reasons: Vec<String>,
}

/// Whether what became of like holds speaks against a rule that expects failure.
pub(super) fn speaks_against_rule(like: Option<LikeHolds>) -> bool {
    like.is_some_and(|like| like.holds >= LEAST_LIKE_HOLDS && like.rate >= SHARE_AGAINST_RULE)
}

/// The action for a hold that no rule decides. Abstains where there is too little to go by.
pub(super) fn decide_by_odds(
    settings: &AdviceConfig,
    thresholds: &DecisionThresholds,
    odds: HoldOdds,
) -> AdviceDecision {
    if let Some(cost) = settings.cost {
        let release_from = cost.wasted_run / (cost.wasted_run + cost.lost_success);
        return decide_by_cost(settings, release_from, odds);
    }
    if !thresholds.has_any() {
        return decide_by_record(settings, odds);
    }

    let steps = [
        (AnswerFirmness::Firm, thresholds.firm),
        (AnswerFirmness::Probable, thresholds.probable),
    ];
    for (firmness, thresholds) in steps {
        let is_success = |from: &AnswerThreshold| odds.probability >= from.probability;
        let is_failure = |up_to: &AnswerThreshold| odds.probability <= up_to.probability;
        let success = thresholds.success.filter(is_success);
        let failure = thresholds.failure.filter(is_failure);
        // Odds that pass both were never told apart.
        let (action, evidence) = match (success, failure) {
            (Some(success), None) => (HoldAction::Release, success),
            (None, Some(failure)) => (action_on_failure(settings, odds, firmness), failure),
            _ => continue,
        };
        return AdviceDecision {
            action,
            ground: AdviceGround::Model,
            firmness: Some(firmness),
            evidence: Some(evidence),
            reasons: reasons_of(action, odds),
        };
    }
    no_advice("the odds are too even to say: answers to holds like it were wrong too often")
}

/// Where it is known what a mistake costs, every hold gets an answer.
fn decide_by_cost(settings: &AdviceConfig, release_from: f64, odds: HoldOdds) -> AdviceDecision {
    let action = if odds.probability >= release_from {
        HoldAction::Release
    } else {
        action_on_failure(settings, odds, AnswerFirmness::Firm)
    };
    let mut reasons = reasons_of(action, odds);
    reasons.push(format!(
        "by `advice.cost` a release pays from {:.0} % on",
        100.0 * release_from
    ));
    AdviceDecision {
        action,
        ground: AdviceGround::Model,
        firmness: None,
        evidence: None,
        reasons,
    }
}

/// Where the model was not shown to be right often enough, the record of like holds answers.
fn decide_by_record(settings: &AdviceConfig, odds: HoldOdds) -> AdviceDecision {
    let unproven = "the model's answers were not right often enough on later holds";
    let Some(like) = odds.like.filter(|like| like.holds >= LEAST_LIKE_HOLDS) else {
        return no_advice(&format!(
            "{unproven}, and too few holds like this one are known"
        ));
    };

    let wanted = settings.probable_precision;
    let action = if wilson_lower(like.rate, like.holds) >= wanted {
        HoldAction::Release
    } else if wilson_lower(1.0 - like.rate, like.holds) >= wanted {
        action_on_failure(settings, odds, AnswerFirmness::Probable)
    } else {
        return no_advice(&format!(
            "{unproven}, and of holds like it {}",
            like_words(like)
        ));
    };
    AdviceDecision {
        action,
        ground: AdviceGround::Record,
        firmness: Some(AnswerFirmness::Probable),
        evidence: None,
        reasons: vec![
            format!("of holds like it {}", like_words(like)),
            unproven.to_owned(),
        ],
    }
}

fn no_advice(why: &str) -> AdviceDecision {
    AdviceDecision {
        action: HoldAction::None,
        ground: AdviceGround::Nothing,
        firmness: None,
        evidence: None,
        reasons: vec![why.to_owned()],
    }
}

/// What to do with a job that would fail if it were released now. Nobody gets back what was removed,
/// so that has to be firm.
fn action_on_failure(
    settings: &AdviceConfig,
    odds: HoldOdds,
    firmness: AnswerFirmness,
) -> HoldAction {
    let is_firm = firmness == AnswerFirmness::Firm;
    if is_firm && odds.holds_for_this_reason >= settings.remove_from_holds {
        return HoldAction::Remove;
    }
    let passes = odds
        .like
        .is_some_and(|like| like.holds >= LEAST_LIKE_HOLDS && like.rate >= SHARE_OF_PASSING_FAULT);
    if passes {
        HoldAction::Later
    } else {
        HoldAction::Fix
    }
}

/// Why, in numbers.
fn reasons_of(action: HoldAction, odds: HoldOdds) -> Vec<String> {
    let percent = percent_words(odds.probability);
    let first = match action {
        HoldAction::Remove => format!(
            "it was held {} times for this one reason, and released unchanged it succeeds with {percent}",
            odds.holds_for_this_reason
        ),
        HoldAction::Later => {
            format!("released now it succeeds with {percent}, and the fault passes")
        }
        _ => format!("released unchanged it succeeds with {percent}"),
    };
    let mut reasons = vec![first];
    if let Some(like) = odds.like {
        reasons.push(like_words(like));
    }
    reasons
}

/// A probability in words: nothing is certain.
pub(super) fn percent_words(probability: f64) -> String {
    match probability {
        p if p < 0.01 => "less than 1 %".to_owned(),
        p if p > 0.99 => "more than 99 %".to_owned(),
        p => format!("{:.0} %", 100.0 * p),
    }
}

/// How many of some holds succeeded, in words.
pub(super) fn like_words(like: LikeHolds) -> String {
    let kind = match like.kind {
        LikeHoldKind::Reason => "for this reason",
        LikeHoldKind::Code => "with this code",
    };
    let mut words = format!(
        "of {} {kind} {} succeeded once released",
        output::counted(like.holds, "earlier hold"),
        output::with_commas(like.successes as u64)
    );
    if like.holds > 10 {
        words.push_str(&format!(", of the last ten {}", like.last_10_successes));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_config::AdviceCost;

    const SETTINGS: AdviceConfig = AdviceConfig {
        precision: 0.9,
        probable_precision: 0.75,
        cost: None,
        remove_from_holds: 5,
    };

    fn threshold(probability: f64) -> Option<AnswerThreshold> {
        Some(AnswerThreshold {
            probability,
            answers: 100,
            right: 95,
            clusters: 100,
            coverage: 0.3,
            lower: 0.88,
        })
    }

    fn thresholds() -> DecisionThresholds {
        DecisionThresholds {
            firm: AnswerThresholds {
                success: threshold(0.9),
                failure: threshold(0.1),
            },
            probable: AnswerThresholds {
                success: threshold(0.7),
                failure: threshold(0.3),
            },
        }
    }

    fn like(holds: usize, successes: usize) -> Option<LikeHolds> {
        Some(LikeHolds {
            kind: LikeHoldKind::Code,
            holds,
            successes,
            rate: successes as f64 / holds as f64,
            last_10_successes: 0,
        })
    }

    fn odds(probability: f64) -> HoldOdds {
        HoldOdds {
            probability,
            like: like(100, 20),
            holds_for_this_reason: 1,
        }
    }

    fn decide(odds: HoldOdds) -> (HoldAction, Option<AnswerFirmness>) {
        let decision = decide_by_odds(&SETTINGS, &thresholds(), odds);
        (decision.action, decision.firmness)
    }

    #[test]
    fn answers_are_as_firm_as_their_evidence() {
        use AnswerFirmness::{Firm, Probable};
        assert_eq!(decide(odds(0.9)), (HoldAction::Release, Some(Firm)));
        assert_eq!(decide(odds(0.89)), (HoldAction::Release, Some(Probable)));
        assert_eq!(decide(odds(0.69)), (HoldAction::None, None));
        assert_eq!(decide(odds(0.3)), (HoldAction::Fix, Some(Probable)));
        assert_eq!(decide(odds(0.1)), (HoldAction::Fix, Some(Firm)));
    }

    #[test]
    fn what_failed_often_is_removed_and_what_passes_waits() {
        let often = HoldOdds {
            holds_for_this_reason: 5,
            ..odds(0.05)
        };
        assert_eq!(decide(often).0, HoldAction::Remove);
        // Of what is only probable nothing is removed.
        let uncertain = HoldOdds {
            probability: 0.25,
            ..often
        };
        assert_eq!(
            decide(uncertain),
            (HoldAction::Fix, Some(AnswerFirmness::Probable))
        );
        let passing = HoldOdds {
            like: like(100, 60),
            ..odds(0.05)
        };
        assert_eq!(decide(passing).0, HoldAction::Later);
    }

    #[test]
    fn without_a_model_the_record_answers() {
        let none = DecisionThresholds::default();
        let by_record = |like| {
            let odds = HoldOdds { like, ..odds(0.9) };
            let decision = decide_by_odds(&SETTINGS, &none, odds);
            (decision.action, decision.ground)
        };
        assert_eq!(
            by_record(like(100, 2)),
            (HoldAction::Fix, AdviceGround::Record)
        );
        assert_eq!(
            by_record(like(100, 95)),
            (HoldAction::Release, AdviceGround::Record)
        );
        assert_eq!(
            by_record(like(100, 50)),
            (HoldAction::None, AdviceGround::Nothing)
        );
        assert_eq!(
            by_record(like(19, 0)),
            (HoldAction::None, AdviceGround::Nothing)
        );
        assert_eq!(by_record(None), (HoldAction::None, AdviceGround::Nothing));
    }

    #[test]
    fn nothing_is_certain() {
        assert_eq!(
            [0.0, 0.012, 0.5, 1.0].map(percent_words),
            ["less than 1 %", "1 %", "50 %", "more than 99 %"]
        );
    }

    #[test]
    fn costs_decide_alone() {
        let settings = AdviceConfig {
            cost: Some(AdviceCost {
                wasted_run: 1.0,
                lost_success: 4.0,
            }),
            ..SETTINGS
        };
        let action = |probability| {
            decide_by_odds(&settings, &DecisionThresholds::default(), odds(probability)).action
        };
        assert_eq!(
            (action(0.2), action(0.19)),
            (HoldAction::Release, HoldAction::Fix)
        );
    }

    #[test]
    fn a_record_of_successes_speaks_against_a_rule() {
        assert!(speaks_against_rule(like(20, 5)));
        assert!(!speaks_against_rule(like(19, 19)));
        assert!(!speaks_against_rule(like(100, 24)));
        assert!(!speaks_against_rule(None));
    }
}
