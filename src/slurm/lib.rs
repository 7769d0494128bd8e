//! A live Slurm: its jobs and nodes as they are now, advice on the successor of a job, and chains of
//! jobs that are submitted by this advice.
//!
//! ```text
//! live ──▶ chain
//! ```

pub mod live;
pub mod chain;
