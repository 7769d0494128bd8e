//! Learns from past releases whether HTCondor should release holds with one code automatically,
//! after which wait, and up to which number of holds.

use std::collections::HashSet;

use serde::Serialize;

use super::policy_hold::PolicyHold;
use super::release_rule::{ReleaseRule, WAITS_S, nearest_wait_s};
use poolcast_base::stats::wilson_lower;
use poolcast_holds::decision::{HoldAction, code_rule};

/// Maximum `NumHolds` up to which a rule may release a job.
const MAX_HOLDS_OF_RULE: u32 = 5;

/// Minimum number of outcomes that count as evidence.
const MIN_OUTCOMES: usize = 20;

/// Hold code of `SYSTEM_PERIODIC_HOLD`.
const ACCESS_POINT_POLICY: i32 = 26;

/// Hold code of `periodic_hold` and `on_exit_hold` in a submit file.
const JOB_POLICY: i32 = 3;

/// The key by which holds are studied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CodeKey<'a> {
    hold_code: i32,
    hold_subcode: i32,
    /// The owner, if each owner gives the code a meaning and the name is known.
    owner: Option<&'a str>,
}

impl<'a> CodeKey<'a> {
    pub(super) fn from_hold(hold: &PolicyHold<'a>) -> CodeKey<'a> {
        CodeKey {
            hold_code: hold.code,
            hold_subcode: hold.subcode,
            owner: hold.owner.filter(|_| is_defined_by_owner(hold.code)),
        }
    }
}

/// Returns true if each owner gives the subcodes of `code` a meaning, in submit files.
fn is_defined_by_owner(code: i32) -> bool {
    code == JOB_POLICY
}

/// The findings about the holds with one code and subcode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeFinding {
    /// `HoldReasonCode`.
    pub hold_code: i32,
    /// `HoldReasonSubCode`.
    pub hold_subcode: i32,
    /// The owner of all the jobs, if each owner gives the code a meaning, as with code 3, and the
    /// name is known.
    pub owner: Option<String>,
    /// Number of holds.
    pub holds: usize,
    /// Outcomes of the holds that were released.
    pub released: ReleaseEvidence,
    /// The verdict that follows from the outcomes.
    pub verdict: CodeVerdict,
}

/// Outcome counts of releases, with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ReleaseEvidence {
    /// Number of releases with an outcome.
    pub outcomes: usize,
    /// Number of successes among these outcomes.
    pub successes: usize,
    /// Clusters that the jobs belong to.
    pub clusters: usize,
    /// Lower end of the 95 % interval of the share of successes. Jobs of one cluster share their
    /// fate, so a cluster counts as one release (Wilson 1927, over clusters).
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
}

/// The verdict on automatic releases of holds with one code.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by_itself")]
pub enum CodeVerdict {
    /// HTCondor should release such holds by a rule.
    Yes {
        /// The wait and the maximum number of holds.
        rule: ReleaseRule,
        /// Outcomes of past releases that are like the releases by the rule.
        evidence: ReleaseEvidence,
    },
    /// A person holds such jobs on purpose, or HTCondor releases them once their files have
    /// arrived.
    OnPurpose,
    /// A person must fix something first. The outcomes of releases after a fix are no evidence for
    /// automatic releases.
    #[serde(rename = "to-be-mended")]
    NeedsRepair,
    /// Each owner gives the code a meaning, and the name of the owner is not known.
    OwnerUnknown,
    /// Too few releases have an outcome.
    TooFew,
    /// The outcomes do not prove that enough automatic releases would succeed.
    NotShown,
}

impl CodeFinding {
    /// Derives the verdict from `holds`, which all have the key `key`. Automatic releases pay if at
    /// least `required_share` of them succeed.
    pub(super) fn new(
        key: CodeKey<'_>,
        holds: &[PolicyHold<'_>],
        required_share: f64,
    ) -> CodeFinding {
        let released = ReleaseEvidence::of(holds);
        let verdict = verdict_by_meaning(key)
            .or_else(|| learn_rule(key, holds, required_share))
            .unwrap_or(if released.outcomes < MIN_OUTCOMES {
                CodeVerdict::TooFew
            } else {
                CodeVerdict::NotShown
            });
        CodeFinding {
            hold_code: key.hold_code,
            hold_subcode: key.hold_subcode,
            owner: key.owner.map(str::to_owned),
            holds: holds.len(),
            released,
            verdict,
        }
    }
}

/// Returns the verdict for codes whose meaning decides it, regardless of the outcomes.
fn verdict_by_meaning(key: CodeKey<'_>) -> Option<CodeVerdict> {
    let (code, subcode) = (key.hold_code, key.hold_subcode);
    if is_on_purpose(code, subcode) {
        return Some(CodeVerdict::OnPurpose);
    }
    if is_defined_by_owner(code) && key.owner.is_none() {
        return Some(CodeVerdict::OwnerUnknown);
    }
    let must_be_fixed = code_rule(code, subcode).is_some_and(|rule| rule.action == HoldAction::Fix);
    must_be_fixed.then_some(CodeVerdict::NeedsRepair)
}

/// Returns true if holds with this code are intended: by a person, by the submit file, or by the
/// administrator of the access point.
pub(super) fn is_on_purpose(code: i32, subcode: i32) -> bool {
    let is_left = code_rule(code, subcode).is_some_and(|rule| rule.action == HoldAction::Leave);
    is_left || code == ACCESS_POINT_POLICY
}

/// Finds the rule with the shortest wait from which releases pay. Releases after just this wait
/// must not be proven to succeed less often than releases after longer waits.
fn learn_rule(
    key: CodeKey<'_>,
    holds: &[PolicyHold<'_>],
    required_share: f64,
) -> Option<CodeVerdict> {
    for wait_s in WAITS_S {
        let mut waited_at_least = Vec::new();
        let mut waited_exactly = Vec::new();
        let mut longer = Vec::new();
        for hold in holds {
            let waited_s = hold.outcome.as_ref().map(nearest_wait_s);
            if waited_s >= Some(wait_s) {
                waited_at_least.push(*hold);
            }
            if waited_s == Some(wait_s) {
                waited_exactly.push(*hold);
            }
            if waited_s > Some(wait_s) {
                longer.push(*hold);
            }
        }

        // A few early failures must not hide behind many late successes, so check this wait alone.
        let waited_exactly = ReleaseEvidence::of(&waited_exactly);
        let is_proven_worse = waited_exactly.upper < ReleaseEvidence::of(&longer).lower;
        if waited_exactly.outcomes == 0
            || waited_exactly.share() < required_share
            || is_proven_worse
        {
            continue;
        }
        if let Some((most_holds, evidence)) = max_paying_holds(&waited_at_least, required_share) {
            let rule = ReleaseRule {
                hold_code: key.hold_code,
                hold_subcode: key.hold_subcode,
                owner: key.owner.map(str::to_owned),
                wait_s,
                most_holds,
            };
            return Some(CodeVerdict::Yes { rule, evidence });
        }
    }
    None
}

/// Finds the highest `NumHolds` up to which releases like `holds` pay, and counts the outcomes of
/// these releases. The releases at each number of holds must pay on their own, too.
fn max_paying_holds(
    holds: &[PolicyHold<'_>],
    required_share: f64,
) -> Option<(u32, ReleaseEvidence)> {
    let mut paying = None;
    for most_holds in 1..=MAX_HOLDS_OF_RULE {
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
        let from_last = ReleaseEvidence::of(&last);
        let pays = from_last.outcomes >= MIN_OUTCOMES
            && from_last.share() >= required_share
            && evidence.lower >= required_share;
        if !pays {
            break;
        }
        paying = Some((most_holds, evidence));
    }
    paying
}

impl ReleaseEvidence {
    /// Counts the releases in `holds` that have an outcome.
    pub(super) fn of(holds: &[PolicyHold<'_>]) -> ReleaseEvidence {
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

    /// Share of successes; 0 if there are no outcomes.
    pub fn share(&self) -> f64 {
        self.successes as f64 / self.outcomes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy_hold::tests::policy_hold;
    use super::*;
    use poolcast_base::moment::DAY_MS;

    /// Creates `count` holds, each in its own cluster and each the `hold_number`th of its job. They
    /// are released after `held_for_s`, and `share` of them succeed, rounded up.
    fn holds(
        count: i32,
        hold_number: u32,
        held_for_s: i64,
        share: f64,
    ) -> Vec<PolicyHold<'static>> {
        let mut holds = Vec::new();
        for cluster in 0..count {
            let is_success = f64::from(cluster) < share * f64::from(count);
            let hold = policy_hold((12, 256), cluster, DAY_MS, Some((held_for_s, is_success)));
            holds.push(PolicyHold {
                hold_number,
                ..hold
            });
        }
        holds
    }

    fn verdict(code: (i32, i32), holds: &[PolicyHold<'_>]) -> CodeVerdict {
        let key = CodeKey {
            hold_code: code.0,
            hold_subcode: code.1,
            owner: None,
        };
        CodeFinding::new(key, holds, 0.75).verdict
    }

    fn rule(holds: &[PolicyHold<'_>]) -> Option<(u32, u32)> {
        match verdict((12, 256), holds) {
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
    fn each_further_hold_must_pay() {
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
        assert_eq!(rule(&many), Some((300, MAX_HOLDS_OF_RULE)));
    }

    #[test]
    fn verdicts_without_a_rule_name_the_reason() {
        let good = holds(100, 1, 400, 1.0);
        for code in [(1, 0), (15, 0), (16, 0), (26, 0)] {
            assert_eq!(verdict(code, &good), CodeVerdict::OnPurpose, "{code:?}");
        }
        for code in [(13, 2), (34, 102), (6, 8), (4, 0)] {
            assert_eq!(verdict(code, &good), CodeVerdict::NeedsRepair, "{code:?}");
        }
        // The code of a connection timeout has a rule, too, but its action is `Later`.
        assert!(matches!(verdict((6, 110), &good), CodeVerdict::Yes { .. }));
        assert_eq!(verdict((3, 75), &good), CodeVerdict::OwnerUnknown);
        assert_eq!(verdict((12, 2), &good[..19]), CodeVerdict::TooFew);
        assert_eq!(
            verdict((12, 2), &holds(100, 1, 400, 0.75)),
            CodeVerdict::NotShown
        );
    }

    #[test]
    fn jobs_of_one_cluster_count_as_one_release() {
        let mut one_cluster = holds(500, 1, 400, 1.0);
        for hold in &mut one_cluster {
            hold.cluster = (0, 7);
        }
        assert_eq!(rule(&one_cluster), None);
    }
}
