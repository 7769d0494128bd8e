//! Submission policies: they decide at each decision time whether to submit the successor of a
//! chained job.

mod history_bound;
mod learned_policy;
mod policies;
mod wait_record;

pub use history_bound::HistoryBound;
pub use learned_policy::{LearnedPolicy, check_features, model_name};
pub use policies::{
    AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan, QueriedTime,
    Reactive, SubmissionChoice, SubmissionPolicy,
};
pub use wait_record::{StartedWait, WaitRecord};
