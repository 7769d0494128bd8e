//! A queue at a moment, and how long jobs ran that had ended by then → how long one more job may
//! wait in it: run times are drawn, the scheduler is simulated, again and again.

mod queue_moment;
mod run_history;
mod wait_forecast;

pub use queue_moment::{QueueMoment, SeenRun, SeenWait};
pub use run_history::{EndedRun, RunHistory};
pub use wait_forecast::{WaitForecast, WaitSpan};
