//! Evidence, and the limits and records of earlier answers, for tests.

use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::{Outcome, Thing, kind_of_code};

use super::action::AnswerFirmness;
use super::held_evidence::{
    CauseEvidence, HeldEvidence, HoldEvidence, LearnedEvidence, OriginEvidence,
};
use crate::answers::{
    AnswerLimits, AnswerThreshold, FailedReleases, HeldOdds, LearnedFrom, LimitPair, NamedFault,
    ReasonRecord, RuleKey, RuleRecord,
};

pub(super) const FIRM: Option<AnswerFirmness> = Some(AnswerFirmness::Firm);
pub(super) const PROBABLE: Option<AnswerFirmness> = Some(AnswerFirmness::Probable);
pub(super) const POSSIBLE: Option<AnswerFirmness> = Some(AnswerFirmness::Possible);

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
pub(super) fn object_that_is(outcome: Outcome) -> ReasonKind {
    ReasonKind {
        thing: Thing::Object,
        outcome,
        ..ReasonKind::default()
    }
}

/// The key of a hold for an input file.
pub(super) fn rule_key(named_fault: NamedFault) -> RuleKey {
    RuleKey {
        code: (13, 2),
        named_fault,
        failed: FailedReleases::Unknown,
    }
}

/// Returns the record of a rule, where the odds always agreed.
pub(super) fn rule_record(right: usize) -> RuleRecord {
    RuleRecord {
        key: rule_key(NamedFault::Unknown),
        answers: 100,
        right,
        agreed: 100,
        agreed_right: right,
    }
}

pub(super) fn limits() -> AnswerLimits {
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

/// Returns evidence with these odds on a job that is alone with the cause of its hold for an input file, of a cluster
/// and an owner with successes.
pub(super) fn evidence(now: f64, later: f64) -> HeldEvidence {
    HeldEvidence {
        hold: HoldEvidence {
            index: 0,
            stated: kind_of_code(13, 2),
            rule_key: rule_key(NamedFault::Unknown),
            rule: None,
            lacks_output: false,
            never_writes_output: false,
            holds_for_code: 1,
        },
        cause: CauseEvidence {
            held: 1,
            best_odds: now,
            is_probe: true,
            has_cluster_succeeded: true,
            ..CauseEvidence::default()
        },
        origin: OriginEvidence::default(),
        learned: LearnedEvidence {
            odds: HeldOdds {
                now,
                uncalibrated: now,
                later,
                learned_from: LearnedFrom::ThisLog,
            },
            reason: ReasonRecord {
                outcomes: 3,
                ..ReasonRecord::default()
            },
            is_taught: true,
            has_outcomes: true,
            is_mostly_repaired: false,
            is_hold_too_old: false,
        },
    }
}

impl HeldEvidence {
    /// Returns the evidence with a `change`.
    pub(super) fn with(mut self, change: impl FnOnce(&mut HeldEvidence)) -> HeldEvidence {
        change(&mut self);
        self
    }
}

/// Returns evidence with these odds, where another job got the same file since.
pub(super) fn sure(now: f64, later: f64) -> HeldEvidence {
    evidence(now, later).with(|one| one.origin.file_passed_since = true)
}

/// Returns evidence with these odds, which are known from other access points alone.
pub(super) fn elsewhere(now: f64, later: f64) -> HeldEvidence {
    evidence(now, later).with(|one| {
        one.learned.odds.learned_from = LearnedFrom::OtherLogs;
        one.learned.is_taught = false;
        one.learned.has_outcomes = false;
    })
}
