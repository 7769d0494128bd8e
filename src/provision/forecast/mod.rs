//! Forecasts the wait of one more job in a queue. Run times are drawn from the runs of earlier
//! jobs, and the scheduler is simulated for each draw.

mod queue_moment;
mod run_history;
mod wait_forecast;

pub use queue_moment::{QueueTime, SeenRun, SeenWait};
pub use run_history::{EndedRun, RunHistory};
pub use wait_forecast::{WaitForecast, WaitSpan};
