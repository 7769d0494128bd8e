//! What a Slurm cluster's accounting says → when the successor of a chained job is to be submitted.
//!
//! Under a limit of wall time a long training is a chain of jobs. While one runs, the next is to be
//! submitted so that it starts when the first ends.

pub mod chain;
pub mod forecast;
pub mod gap_scores;
pub mod live;
pub mod model_inputs;
pub mod replay;
pub mod samples;
pub mod scheduler;
mod slurm_number;
pub mod submission;
pub mod trace;
pub mod validation;
pub mod wait_model;
pub mod window;
