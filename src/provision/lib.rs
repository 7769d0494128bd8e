//! Advice for chained Slurm jobs: when to submit the next job, learned from the cluster's
//! accounting.
//!
//! Under a wall time limit, a long training runs as a chain of jobs. The next job is to be
//! submitted while its predecessor runs, so that it starts when the predecessor ends.

pub mod config;
pub mod forecast;
pub mod gap_scores;
pub mod model_inputs;
pub mod replay;
pub mod samples;
pub mod scheduler;
pub mod slurm_number;
pub mod submission;
pub mod trace;
pub mod validation;
pub mod wait_model;
pub mod window;
