//! A rule for automatic releases, and its ClassAd expression.

use serde::Serialize;

use super::policy_hold::{PolicyHold, ReleaseOutcome};

/// The waits to choose from, s: 5 min, 30 min, 2 h, 6 h.
pub(super) const WAITS_S: [u32; 4] = [300, 1800, 7200, 21_600];

/// A rule that releases the holds of one code automatically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReleaseRule {
    /// `HoldReasonCode`.
    pub hold_code: i32,
    /// `HoldReasonSubCode`.
    pub hold_subcode: i32,
    /// The owner whose jobs the rule releases; `None` for the jobs of all owners.
    pub owner: Option<String>,
    /// Minimum duration of the hold before the release, s.
    pub wait_s: u32,
    /// Maximum `NumHolds`: a job with more holds stays held.
    pub most_holds: u32,
}

impl ReleaseRule {
    /// Returns true if the rule releases `hold`. It has no effect if another release came before
    /// the wait was over.
    pub fn releases(&self, hold: &PolicyHold<'_>) -> bool {
        let is_held_then = hold
            .outcome
            .is_none_or(|outcome| nearest_wait_s(&outcome) >= self.wait_s);
        self.names(hold.code, hold.subcode, hold.owner)
            && hold.hold_number <= self.most_holds
            && is_held_then
    }

    /// Returns true if the rule names holds with this code and subcode of this owner's jobs.
    pub(super) fn names(&self, code: i32, subcode: i32, owner: Option<&str>) -> bool {
        (code, subcode) == (self.hold_code, self.hold_subcode)
            && (self.owner.is_none() || self.owner.as_deref() == owner)
    }

    /// The rule as a ClassAd expression in parentheses. It limits `NumHolds`, because
    /// `NumJobStarts` does not grow when a job is held again before it starts.
    fn clause(&self) -> String {
        let ReleaseRule {
            hold_code,
            hold_subcode,
            owner,
            wait_s,
            most_holds,
        } = self;
        let owner = owner
            .as_ref()
            .map_or(String::new(), |name| format!("Owner == \"{name}\" && "));
        format!(
            "({owner}HoldReasonCode == {hold_code} && HoldReasonSubCode == {hold_subcode} && NumHolds <= {most_holds} \
             && (time() - EnteredCurrentStatus) > {wait_s})"
        )
    }
}

/// Returns the longest wait in [`WAITS_S`] that the hold lasted for, s. A shorter hold counts as
/// the shortest wait, because a transient fault had even less time to pass.
pub(super) fn nearest_wait_s(outcome: &ReleaseOutcome) -> u32 {
    let is_over = |wait_s: &u32| outcome.held_for_ms >= i64::from(*wait_s) * 1000;
    let longest = WAITS_S.into_iter().rev().find(is_over);
    longest.unwrap_or(WAITS_S[0])
}

/// Builds the expression that is true for the jobs that `rules` release; `None` if there are no
/// rules.
pub fn release_expression(rules: &[ReleaseRule]) -> Option<String> {
    let clauses: Vec<String> = rules.iter().map(ReleaseRule::clause).collect();
    (!clauses.is_empty()).then(|| clauses.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_is_made_of_numbers_and_plain_names() {
        assert_eq!(release_expression(&[]), None);
        let rule = ReleaseRule {
            hold_code: 12,
            hold_subcode: 256,
            owner: None,
            wait_s: 1800,
            most_holds: 2,
        };
        let other = ReleaseRule {
            hold_code: 3,
            hold_subcode: -1,
            owner: Some("ada".to_owned()),
            wait_s: 300,
            most_holds: 1,
        };
        insta::assert_snapshot!(
            release_expression(&[rule, other]).expect("two rules"),
            @r#"(HoldReasonCode == 12 && HoldReasonSubCode == 256 && NumHolds <= 2 && (time() - EnteredCurrentStatus) > 1800) || (Owner == "ada" && HoldReasonCode == 3 && HoldReasonSubCode == -1 && NumHolds <= 1 && (time() - EnteredCurrentStatus) > 300)"#
        );
    }
}
