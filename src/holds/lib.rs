//! Held jobs: from a store of events to advice.
//!
//! ```text
//! tensors ──▶ training ──▶ answers ──▶ advice ──▶ rehearsal
//!                                     └──▶ policy
//! ```
//!
//! Each module imports only modules above it.

pub mod config;
#[cfg(test)]
mod test_config;
#[cfg(test)]
mod test_store;
mod job_ads;
pub mod past_jobs;
pub mod tensors;
pub mod training;
pub mod answers;
pub mod advice;
pub mod policy;
pub mod rehearsal;
