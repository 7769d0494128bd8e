//! Finds the hold codes whose jobs HTCondor should release automatically, as a ClassAd expression,
//! and estimates the effect of such a policy on later holds.
//!
//! `periodic_release` repeats permanent errors as readily as it retries after transient faults. A
//! rule therefore names a code only if past releases after holds with it paid. Each rule has a
//! minimum wait and a maximum number of holds. Owners give some codes a meaning in submit files:
//! rules with these codes name the owner.

mod code_finding;
mod contradiction;
mod owner_names;
mod policy_hold;
mod release_policy;
mod release_rule;
mod release_study;
mod replay;

pub use code_finding::{CodeFinding, CodeVerdict, ReleaseEvidence};
pub use contradiction::{AdviceContradiction, contradictions};
pub use owner_names::OwnerNames;
pub use policy_hold::{PolicyHold, ReleaseOutcome, past_holds};
pub use release_policy::ReleasePolicy;
pub use release_rule::{ReleaseRule, release_expression};
pub use release_study::{ReleaseStudy, StudySettings, required_share, study_releases};
pub use replay::{LaterHolds, ReplayedPolicy, SumInterval};
