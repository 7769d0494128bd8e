//! A log → the hold codes whose jobs HTCondor is to release by itself, as a ClassAd expression, and
//! what that would have come to.
//!
//! `periodic_release` repeats an error as readily as it gets a job over a fault that passes. So a
//! code is named only where releases after a hold with it were shown to pay, and each is bounded by
//! a wait and by how often the job was held.

mod code_finding;
mod past_hold;
mod release_policy;
mod release_rule;
mod release_study;
mod replay;

pub use code_finding::{CodeFinding, CodeVerdict, ReleaseEvidence};
pub use past_hold::{PastHold, ReleaseOutcome, past_holds};
pub use release_policy::ReleasePolicy;
pub use release_rule::{ReleaseRule, release_expression};
pub use release_study::{ReleaseStudy, StudySettings, required_share, study_releases};
pub use replay::{LaterHolds, ReplayedPolicy, SumInterval};
