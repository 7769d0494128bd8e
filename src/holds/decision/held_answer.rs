//! The question about a job that is held now, and the answer to it.

use super::action::{AnswerFirmness, HoldAction};
use super::held_evidence::{HeldEvidence, PASSING_FROM};
use crate::answers::{AnswerLimits, AnswerThreshold, RecoveryKey};
use crate::config::AdviceConfig;

/// An answer about a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAnswer {
    /// The recommended action.
    pub action: HoldAction,
    /// Certainty of the action; `None` for rules and for no advice.
    pub firmness: Option<AnswerFirmness>,
    /// Name of the answer rule that applied.
    pub because: &'static str,
    /// True if the rule for the hold code decided.
    pub is_by_rule: bool,
    /// The record that a release counts in which follows because other jobs got past the cause.
    pub recovery: Option<RecoveryKey>,
}

impl HeldAnswer {
    /// Creates an answer, which the list of rules gives the name of its rule.
    pub(super) fn new(action: HoldAction, firmness: Option<AnswerFirmness>) -> HeldAnswer {
        HeldAnswer {
            action,
            firmness,
            because: NOTHING_IS_KNOWN,
            is_by_rule: false,
            recovery: None,
        }
    }
}

/// Name of the answer to which no rule leads.
pub(super) const NOTHING_IS_KNOWN: &str = "nothing_is_known";

/// The question about one held job.
pub(super) struct HeldQuestion<'a> {
    pub(super) evidence: &'a HeldEvidence,
    /// The limits that earlier answers have earned.
    pub(super) limits: &'a AnswerLimits,
    pub(super) settings: &'a AdviceConfig,
}

impl HeldQuestion<'_> {
    /// Returns true if the odds say that the fault passes.
    pub(super) fn is_passing(&self) -> bool {
        self.evidence.learned.odds.later >= PASSING_FROM
    }

    /// Returns true if the odds of a release reach `limit`, for an owner or a file with known outcomes.
    pub(super) fn reaches(&self, limit: Option<AnswerThreshold>) -> bool {
        let learned = &self.evidence.learned;
        learned.is_taught && limit.is_some_and(|limit| learned.odds.now >= limit.probability)
    }
}
