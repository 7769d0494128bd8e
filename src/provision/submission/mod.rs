//! When the successor of a chained job is submitted: policies, which answer at each moment of
//! decision whether that is now.

mod history_bound;
mod policies;
mod wait_record;

pub use history_bound::HistoryBound;
pub use policies::{
    AskedMoment, AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan,
    Reactive, SubmissionChoice, SubmissionPolicy, cost_quantile,
};
pub use wait_record::{StartedWait, WaitRecord};
