//! Policies for automatic releases: each decides for a hold whether to release it.

use super::policy_hold::PolicyHold;
use super::release_rule::ReleaseRule;

/// A policy for automatic releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleasePolicy {
    /// Releases no holds.
    Never,
    /// Releases holds of jobs that have been held at most this many times.
    MaxHolds(u32),
    /// Releases all holds.
    Always,
    /// Releases holds that match one of the rules.
    Rules(Vec<ReleaseRule>),
}

impl ReleasePolicy {
    /// Returns true if the policy releases `hold`, which must not be intended.
    pub fn releases(&self, hold: &PolicyHold<'_>) -> bool {
        match self {
            ReleasePolicy::Never => false,
            ReleasePolicy::MaxHolds(most) => hold.hold_number <= *most,
            ReleasePolicy::Always => true,
            ReleasePolicy::Rules(rules) => rules.iter().any(|rule| rule.releases(hold)),
        }
    }

    /// The policy's name in tables.
    pub fn name(&self) -> String {
        match self {
            ReleasePolicy::Never => "never".to_owned(),
            ReleasePolicy::MaxHolds(most) => format!("NumHolds <= {most}"),
            ReleasePolicy::Always => "always".to_owned(),
            ReleasePolicy::Rules(_) => "learned".to_owned(),
        }
    }
}
