//! When the successor of a chained job is submitted: policies, which answer at each moment of
//! decision whether that is now.

mod history_bound;
mod learned_policy;
mod policies;
mod wait_record;

pub use history_bound::HistoryBound;
pub use learned_policy::{LearnedPolicy, check_features, model_name};
pub use policies::{
    AskedMoment, AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan,
    Reactive, SubmissionChoice, SubmissionPolicy,
};
pub use wait_record::{StartedWait, WaitRecord};
