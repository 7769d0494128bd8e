//! An answer that a rehearsal gave.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::answers::{FailedReleases, LearnedFrom, NamedFault};
use crate::answers::{HeldOdds, MemberOdds, RecoveryKey, RuleKey};
use crate::decision::{AnswerFirmness, HoldAction};

/// An answer about one held job at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RehearsedAnswer {
    /// Index of the moment.
    pub moment: u32,
    /// Time of the moment, epoch ms.
    pub asked_ms: i64,
    /// Odds that the model gave.
    pub odds: HeldOdds,
    /// Odds of every member; empty if the base is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) members: Vec<MemberOdds>,
    /// Probability of success now that the page states; `None` if it is unknown.
    pub stated: Option<f64>,
    /// The action.
    pub action: HoldAction,
    /// The certainty of the action.
    pub firmness: Option<AnswerFirmness>,
    /// Number of holds of the job so far, this one included.
    pub holds: u32,
    /// Index of the hold in the history.
    pub(crate) hold: usize,
    /// Index of the first hold that is asked about for the same cause at the moment.
    pub(crate) first_of_cause: usize,
    /// Jobs that are held for the cause, this one included.
    pub(crate) held_for_cause: usize,
    /// True if a probe of the cause releases this job.
    pub(crate) is_probe: bool,
    /// The record in which answers of a rule for the hold count.
    pub(crate) rule_key: RuleKey,
    /// The action of the rule for the hold code, if there is one.
    pub(crate) rule: Option<HoldAction>,
    /// True if that rule decided.
    pub(crate) is_by_rule: bool,
    /// True if the evidence in the log agreed with it.
    pub(crate) agrees_with_rule: bool,
    /// The record that a release counts in which follows because other jobs got past the cause.
    pub(crate) recovery: Option<RecoveryKey>,
}

/// Returns a probable answer about hold 0, asked at second 1.
#[cfg(test)]
pub(super) fn test_answer(action: HoldAction, stated: Option<f64>) -> RehearsedAnswer {
    RehearsedAnswer {
        moment: 0,
        asked_ms: 1_000,
        odds: HeldOdds {
            now: 0.5,
            uncalibrated: 0.5,
            later: 0.5,
            learned_from: LearnedFrom::ThisLog,
        },
        members: Vec::new(),
        stated,
        action,
        firmness: Some(AnswerFirmness::Probable),
        holds: 1,
        hold: 0,
        first_of_cause: 0,
        held_for_cause: 1,
        is_probe: false,
        rule_key: RuleKey {
            code: (13, 2),
            named_fault: NamedFault::Unknown,
            failed: FailedReleases::Unknown,
        },
        rule: None,
        is_by_rule: false,
        agrees_with_rule: false,
        recovery: None,
    }
}
