//! Held jobs: from samples and the histories of jobs to advice.
//!
//! ```text
//! training ──▶ answers ──▶ advice ──▶ rehearsal
//!                         └──▶ policy
//! ```
//!
//! Each module imports only modules above it.

pub mod config;
#[cfg(test)]
mod test_config;
mod job_ads;
pub mod past_jobs;
pub mod training;
pub mod answers;
pub mod advice;
pub mod policy;
pub mod rehearsal;
