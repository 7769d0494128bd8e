//! Collects a live, rotating global event log into an archive. The archive only grows, has one file
//! per generation, and neither loses nor duplicates data.
//!
//! A generation is identified by its header, because its name changes with each rotation. Each file
//! of the archive is a prefix of its generation, up to the last whole record. The data is written
//! first. The manifest, which has the number of valid bytes, is written last. The next run cuts off
//! what a killed run has left beyond that. HTCondor's writers never wait: this takes none of their
//! locks.

mod archive;
mod collection;
mod condor_text;
mod find_logs;
mod live_log;
mod log_error;
mod log_state;
mod whole_records;

pub use archive::{ArchivedGeneration, LogArchive, LostEvents, read_archive};
pub use collection::{CollectOutcome, collect};
pub use condor_text::{CondorText, introduced_reason};
pub use find_logs::{find_generations, found_beside, has_event_logs, is_log, skipped_note};
pub use log_error::{explain, explain_beginning, sink_error};
pub use log_state::{LogState, inspect_log};
