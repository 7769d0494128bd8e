//! Held jobs: what is learned about them, and the decisions that follow from it.
//!
//! ```text
//! training ──▶ answers ──▶ decision ──▶ rehearsal
//! ```
//!
//! Each module imports only modules above it.

pub mod config;
#[cfg(test)]
mod test_config;
pub mod job_ads;
pub mod past_jobs;
pub mod training;
pub mod answers;
pub mod decision;
pub mod rehearsal;
