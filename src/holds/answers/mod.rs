//! Answers about jobs that are held now: learned from moments in the middle of holds, for two
//! questions. Does the job succeed if it is released now, unrepaired? Does it later?

mod answer_calibration;
mod answer_limits;
mod answer_model;
mod cause_kind;
mod cluster_runs;
mod coarse_rows;
mod columns;
mod contribution;
mod failed_reads;
mod hold_history;
mod input_runs;
mod learned_age;
mod learned_answers;
mod learned_member;
mod member_files;
mod member_fit;
mod member_mean;
mod missing_outputs;
mod named_fault;
mod origin_state;
mod past_hold;
mod prior;
mod prior_model;
mod reason_record;
mod server_faults;
mod shared_row;
mod taught_rows;
mod visible_repair;
mod thing_state;

pub use answer_calibration::AnswerCalibration;
pub(crate) use answer_calibration::{CalibrationTrials, MIN_MOMENTS};
pub use answer_limits::{
    AnswerLimits, AnswerThreshold, FailedReleases, LimitPair, RecoveryKey, RecoveryRecord, RuleKey,
    RuleRecord,
};
pub(crate) use answer_limits::{
    GroupShares, SettledAnswer, SettledRecord, SettledRelease, SettledRule,
};
pub use answer_model::{AnswerModel, HeldOdds, LearnedFrom, MemberOdds};
pub(crate) use cause_kind::CauseKind;
pub use cluster_runs::ClusterKey;
pub use contribution::{
    CONTRIBUTION_FORMAT, Contribution, ContributionSummary, HoldQuestion, MIN_OWNERS, SharedGroup,
};
pub use hold_history::{FRAME_S, HoldHistory};
pub(crate) use learned_age::LearnedAge;
#[cfg(test)]
pub(crate) use learned_answers::learned_test_answers;
pub use learned_answers::{ANSWERS_FORMAT, LearnedAnswers};
pub(crate) use member_mean::log_loss;
pub use named_fault::{NamedFault, stated_kind};
pub use origin_state::OriginState;
pub(crate) use past_hold::PastHold;
pub use past_hold::{FAILED_RELEASES, MAX_COUNTED, RELEASES_UNTIL_PASSED};
pub use prior::Prior;
pub use prior_model::PriorModel;
pub use reason_record::{MIN_TAUGHT_OUTCOMES, ReasonRecord};
pub(crate) use taught_rows::{label_later, settled_outcome};
pub(crate) use thing_state::is_corrected_by_owner;
pub use thing_state::{ThingKind, ThingState};
pub use visible_repair::is_visibly_repaired;
