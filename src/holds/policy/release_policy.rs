//! Policies that say of each hold whether it is released by itself.

use super::past_hold::PastHold;
use super::release_rule::ReleaseRule;

/// Which holds are released by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleasePolicy {
    /// None.
    Never,
    /// Those of jobs that were held so often at most.
    MostHolds(u32),
    /// All.
    Always,
    /// Those that one of the rules names.
    Rules(Vec<ReleaseRule>),
}

impl ReleasePolicy {
    /// Whether it releases `hold`, which is not one on purpose.
    pub fn releases(&self, hold: &PastHold) -> bool {
        match self {
            ReleasePolicy::Never => false,
            ReleasePolicy::MostHolds(most) => hold.hold_number <= *most,
            ReleasePolicy::Always => true,
            ReleasePolicy::Rules(rules) => rules.iter().any(|rule| rule.releases(hold)),
        }
    }

    /// As tables name it.
    pub fn name(&self) -> String {
        match self {
            ReleasePolicy::Never => "never".to_owned(),
            ReleasePolicy::MostHolds(most) => format!("NumHolds <= {most}"),
            ReleasePolicy::Always => "always".to_owned(),
            ReleasePolicy::Rules(_) => "learned".to_owned(),
        }
    }
}
