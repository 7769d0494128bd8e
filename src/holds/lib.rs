//! Held jobs: from the events of logs to advice.
//!
//! ```text
//! events ──▶ tensors ──▶ training ──▶ answers ──▶ advice ──▶ rehearsal
//!                                                └──▶ policy
//! ```
//!
//! Each module imports only modules above it.

pub mod config;
#[cfg(test)]
mod test_config;
mod job_ads;
pub mod past_jobs;
pub mod events;
pub mod tensors;
pub mod training;
pub mod answers;
pub mod advice;
pub mod policy;
pub mod rehearsal;
