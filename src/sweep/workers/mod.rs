//! Runs all trials: prepares what they share, gives them to workers and follows them.

mod extend;
mod fill_queue;
mod local;
mod manager;
mod prepare;
mod retry;
mod status;
mod trials_at_work;
mod worker;

pub use local::{LocalWorkers, run_locally};
pub use manager::manage_trials;
pub use prepare::{
    EarlierSweep, PrepareListener, PrepareStep, begin_sweep, make_tensors, prepare_events,
    prepare_tables,
};
pub use retry::retry_failed;
pub use status::{LiveProcess, RunningTrial, SweepStatus, TrialFailure, sweep_status};
pub use trials_at_work::{TrialAtWork, trials_at_work};
pub use worker::work_trials;
