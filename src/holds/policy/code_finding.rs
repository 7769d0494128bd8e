//! What releases after holds with one code came to → whether they are to be released by themselves,
//! after how long, and how often.

use std::collections::HashSet;

use serde::Serialize;

use super::past_hold::PastHold;
use super::release_rule::{ReleaseRule, WAITS_S, nearest_wait_s};
use crate::advice::{HoldAction, code_rule};
use crate::training::wilson_lower;

/// A job is released by itself after so many holds at most.
const MOST_HOLDS: u32 = 5;

/// The least outcomes that show anything.
const LEAST_OUTCOMES: usize = 20;

/// The code of holds by `SYSTEM_PERIODIC_HOLD`.
const ACCESS_POINT_POLICY: i32 = 26;

/// What was learned of the holds of one code and subcode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeFinding {
    /// `HoldReasonCode`.
    pub hold_code: i32,
    /// `HoldReasonSubCode`.
    pub hold_subcode: i32,
    /// How many holds there were.
    pub holds: usize,
    /// What came of those that were released.
    pub released: ReleaseEvidence,
    /// What follows from it.
    pub verdict: CodeVerdict,
}

/// What came of some releases.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ReleaseEvidence {
    /// How many there were.
    pub outcomes: usize,
    /// How many of them succeeded.
    pub successes: usize,
    /// Of how many clusters their jobs were.
    pub clusters: usize,
    /// The lower end of the 95 % interval of the share of successes. Jobs of one cluster share
    /// their fate, so that a cluster counts as one release (Wilson 1927, over clusters).
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

/// Whether the holds of a code are to be released by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by_itself")]
pub enum CodeVerdict {
    /// They are, by this rule.
    Yes {
        /// The wait and the bound.
        rule: ReleaseRule,
        /// What came of releases like those that it makes.
        evidence: ReleaseEvidence,
    },
    /// Somebody holds such jobs on purpose, or they are released when their files have arrived.
    OnPurpose,
    /// Somebody has to mend something first; what came of the releases of those who did says
    /// nothing of a release by itself.
    ToBeMended,
    /// Too few releases have an outcome.
    TooFew,
    /// It was not shown that enough of them would succeed.
    NotShown,
}

impl CodeFinding {
    /// What follows from `holds`, which have this code and subcode, for a code of which as large a
    /// share as `required_share` has to succeed.
    pub(super) fn new(code: (i32, i32), holds: &[PastHold], required_share: f64) -> CodeFinding {
        let (hold_code, hold_subcode) = code;
        let released = ReleaseEvidence::of(holds);
        let verdict = verdict_without_odds(hold_code, hold_subcode)
            .or_else(|| learn_rule(code, holds, required_share))
            .unwrap_or(if released.outcomes < LEAST_OUTCOMES {
                CodeVerdict::TooFew
            } else {
                CodeVerdict::NotShown
            });
        CodeFinding {
            hold_code,
            hold_subcode,
            holds: holds.len(),
            released,
            verdict,
        }
    }
}

/// The verdict where what a code means decides it.
fn verdict_without_odds(code: i32, subcode: i32) -> Option<CodeVerdict> {
    if is_on_purpose(code, subcode) {
        return Some(CodeVerdict::OnPurpose);
    }
    let has_to_be_mended =
        code_rule(code, subcode).is_some_and(|rule| rule.action == HoldAction::Fix);
    has_to_be_mended.then_some(CodeVerdict::ToBeMended)
}

/// Whether holds with this code are somebody's will: a person's, the submit file's, or that of the
/// access point's administrator.
pub(super) fn is_on_purpose(code: i32, subcode: i32) -> bool {
    let is_left = code_rule(code, subcode).is_some_and(|rule| rule.action == HoldAction::Leave);
    is_left || code == ACCESS_POINT_POLICY
}

/// The rule with the shortest wait from which on releases pay. Those after just this wait must not be
/// shown to succeed less often than those after longer ones.
fn learn_rule(code: (i32, i32), holds: &[PastHold], required_share: f64) -> Option<CodeVerdict> {
    for wait_s in WAITS_S {
        let mut from_then = Vec::new();
        let mut just_then = Vec::new();
        let mut longer = Vec::new();
        for hold in holds {
            let waited_s = hold.outcome.as_ref().map(nearest_wait_s);
            if waited_s >= Some(wait_s) {
                from_then.push(*hold);
            }
            if waited_s == Some(wait_s) {
                just_then.push(*hold);
            }
            if waited_s > Some(wait_s) {
                longer.push(*hold);
            }
        }

        let just_then = ReleaseEvidence::of(&just_then);
        let is_shown_worse = just_then.upper < ReleaseEvidence::of(&longer).lower;
        if just_then.outcomes == 0 || just_then.share() < required_share || is_shown_worse {
            continue;
        }
        if let Some((most_holds, evidence)) = most_holds_that_pay(&from_then, required_share) {
            let rule = ReleaseRule {
                hold_code: code.0,
                hold_subcode: code.1,
                wait_s,
                most_holds,
            };
            return Some(CodeVerdict::Yes { rule, evidence });
        }
    }
    None
}

/// Up to which `NumHolds` releases like `holds` pay, and what came of those. Each further hold has to
/// pay by itself, too.
fn most_holds_that_pay(holds: &[PastHold], required_share: f64) -> Option<(u32, ReleaseEvidence)> {
    let mut paying = None;
    for most_holds in 1..=MOST_HOLDS {
        let mut up_to = Vec::new();
        let mut last = Vec::new();
        for hold in holds {
            if hold.hold_number <= most_holds {
                up_to.push(*hold);
            }
            if hold.hold_number == most_holds {
                last.push(*hold);
            }
        }
        let evidence = ReleaseEvidence::of(&up_to);
        let of_last = ReleaseEvidence::of(&last);
        let pays = of_last.outcomes >= LEAST_OUTCOMES
            && of_last.share() >= required_share
            && evidence.lower >= required_share;
        if !pays {
            break;
        }
        paying = Some((most_holds, evidence));
    }
    paying
}

impl ReleaseEvidence {
    /// Of those of `holds` whose release has an outcome.
    pub(super) fn of(holds: &[PastHold]) -> ReleaseEvidence {
        let mut evidence = ReleaseEvidence::default();
        let mut clusters = HashSet::new();
        for hold in holds {
            if let Some(outcome) = hold.outcome {
                evidence.outcomes += 1;
                evidence.successes += usize::from(outcome.is_success);
                clusters.insert(hold.cluster);
            }
        }

        evidence.clusters = clusters.len();
        evidence.lower = wilson_lower(evidence.share(), evidence.clusters);
        evidence.upper = 1.0 - wilson_lower(1.0 - evidence.share(), evidence.clusters);
        evidence
    }

    /// The share of successes; 0 of none.
    pub fn share(&self) -> f64 {
        self.successes as f64 / self.outcomes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::past_hold::tests::{DAY_MS, past_hold};
    use super::*;

    /// `count` holds of clusters of their own, each the job's `hold_number`th, released after
    /// `held_for_s`; as large a `share` of them as possible succeeded.
    fn holds(count: i32, hold_number: u32, held_for_s: i64, share: f64) -> Vec<PastHold> {
        let mut holds = Vec::new();
        for cluster in 0..count {
            let is_success = f64::from(cluster) < share * f64::from(count);
            let hold = past_hold((12, 256), cluster, DAY_MS, Some((held_for_s, is_success)));
            holds.push(PastHold {
                hold_number,
                ..hold
            });
        }
        holds
    }

    fn rule(holds: &[PastHold]) -> Option<(u32, u32)> {
        match CodeFinding::new((12, 256), holds, 0.75).verdict {
            CodeVerdict::Yes { rule, .. } => Some((rule.wait_s, rule.most_holds)),
            _ => None,
        }
    }

    #[test]
    fn the_shortest_wait_is_taken_unless_a_longer_one_is_better() {
        assert_eq!(rule(&holds(100, 1, 20, 0.95)), Some((300, 1)));
        assert_eq!(rule(&holds(100, 1, 2000, 0.95)), Some((1800, 1)));

        let alike = [holds(100, 1, 400, 0.93), holds(100, 1, 9000, 0.96)].concat();
        assert_eq!(rule(&alike), Some((300, 1)));
        let few_soon = [holds(5, 1, 400, 1.0), holds(100, 1, 9000, 0.96)].concat();
        assert_eq!(rule(&few_soon), Some((300, 1)), "nothing speaks against it");
        let better = [holds(400, 1, 400, 0.82), holds(400, 1, 9000, 0.99)].concat();
        assert_eq!(rule(&better), Some((7200, 1)));
        let fails_soon = [holds(100, 1, 400, 0.3), holds(100, 1, 90_000, 0.96)].concat();
        assert_eq!(rule(&fails_soon), Some((21_600, 1)));
    }

    #[test]
    fn each_further_hold_has_to_pay() {
        let first = holds(100, 1, 400, 0.95);
        let paying = [first.clone(), holds(40, 2, 400, 0.9)].concat();
        assert_eq!(rule(&paying), Some((300, 2)));
        let failing = [first.clone(), holds(40, 2, 400, 0.5)].concat();
        assert_eq!(rule(&failing), Some((300, 1)));
        let few = [first.clone(), holds(10, 2, 400, 1.0)].concat();
        assert_eq!(rule(&few), Some((300, 1)));
        assert_eq!(
            rule(&holds(100, 2, 400, 0.95)),
            None,
            "first holds come first"
        );

        let mut many = Vec::new();
        for hold_number in 1..9 {
            many.extend(holds(40, hold_number, 400, 1.0));
        }
        assert_eq!(rule(&many), Some((300, MOST_HOLDS)));
    }

    #[test]
    fn what_does_not_pay_has_a_reason() {
        let verdict = |code, holds: &[PastHold]| CodeFinding::new(code, holds, 0.75).verdict;
        let good = holds(100, 1, 400, 1.0);
        for code in [(1, 0), (15, 0), (16, 0), (26, 0)] {
            assert_eq!(verdict(code, &good), CodeVerdict::OnPurpose, "{code:?}");
        }
        for code in [(13, 2), (34, 102), (6, 8), (4, 0)] {
            assert_eq!(verdict(code, &good), CodeVerdict::ToBeMended, "{code:?}");
        }
        // A connection that timed out has a rule, too: later.
        assert!(matches!(verdict((6, 110), &good), CodeVerdict::Yes { .. }));
        assert_eq!(verdict((12, 2), &good[..19]), CodeVerdict::TooFew);
        assert_eq!(
            verdict((12, 2), &holds(100, 1, 400, 0.75)),
            CodeVerdict::NotShown
        );
    }

    #[test]
    fn jobs_of_one_cluster_are_one_release() {
        let mut one_cluster = holds(500, 1, 400, 1.0);
        for hold in &mut one_cluster {
            hold.cluster = (0, 7);
        }
        assert_eq!(rule(&one_cluster), None);
    }
}
