//! Which holds are released by themselves, as ClassAds say it.

use serde::Serialize;

use super::past_hold::{PastHold, ReleaseOutcome};

/// The waits to choose from: 5 min, 30 min, 2 h, 6 h.
pub(super) const WAITS_S: [u32; 4] = [300, 1800, 7200, 21_600];

/// The holds of one code that are released by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReleaseRule {
    /// `HoldReasonCode`.
    pub hold_code: i32,
    /// `HoldReasonSubCode`.
    pub hold_subcode: i32,
    /// How long a job is held before.
    pub wait_s: u32,
    /// A job that was held more often stays held.
    pub most_holds: u32,
}

impl ReleaseRule {
    /// Whether it releases `hold`. Where somebody else did before the wait was over, it has nothing
    /// to do.
    pub fn releases(&self, hold: &PastHold) -> bool {
        let is_held_then = hold
            .outcome
            .is_none_or(|outcome| nearest_wait_s(&outcome) >= self.wait_s);
        (hold.code, hold.subcode) == (self.hold_code, self.hold_subcode)
            && hold.hold_number <= self.most_holds
            && is_held_then
    }

    /// The rule in parentheses. `NumHolds` bounds it and not `NumJobStarts`, which stays as it is
    /// where a job is held again before it starts.
    fn clause(&self) -> String {
        let ReleaseRule {
            hold_code,
            hold_subcode,
            wait_s,
            most_holds,
        } = self;
        format!(
            "(HoldReasonCode == {hold_code} && HoldReasonSubCode == {hold_subcode} && NumHolds <= {most_holds} \
             && (time() - EnteredCurrentStatus) > {wait_s})"
        )
    }
}

/// The longest of the waits that the job was held for. What was released sooner than after the
/// shortest counts there: a fault that passes had less time to pass.
pub(super) fn nearest_wait_s(outcome: &ReleaseOutcome) -> u32 {
    let is_over = |wait_s: &u32| outcome.held_for_ms >= i64::from(*wait_s) * 1000;
    let longest = WAITS_S.into_iter().rev().find(is_over);
    longest.unwrap_or(WAITS_S[0])
}

/// The expression that is true for the jobs that `rules` release; `None` where there is no rule.
pub fn release_expression(rules: &[ReleaseRule]) -> Option<String> {
    let clauses: Vec<String> = rules.iter().map(ReleaseRule::clause).collect();
    (!clauses.is_empty()).then(|| clauses.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_is_made_of_numbers() {
        assert_eq!(release_expression(&[]), None);
        let rule = ReleaseRule {
            hold_code: 12,
            hold_subcode: 256,
            wait_s: 1800,
            most_holds: 2,
        };
        let other = ReleaseRule {
            hold_code: 13,
            hold_subcode: -1,
            wait_s: 300,
            most_holds: 1,
        };
        insta::assert_snapshot!(
            release_expression(&[rule, other]).expect("two rules"),
            @"(HoldReasonCode == 12 && HoldReasonSubCode == 256 && NumHolds <= 2 && (time() - EnteredCurrentStatus) > 1800) || (HoldReasonCode == 13 && HoldReasonSubCode == -1 && NumHolds <= 1 && (time() - EnteredCurrentStatus) > 300)"
        );
    }
}
