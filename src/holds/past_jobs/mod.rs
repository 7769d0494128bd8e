//! Jobs that have left the queue, from HTCondor's history: turns their ads into an event log.
//!
//! The ad of an ended job has its last hold and its end. The ads of its runs, which HTCondor keeps
//! for a while (`condor_history -epochs`), have each hold that ended a run.

mod stated_end;
mod history_log;
mod job_key;
mod past_event;
mod past_job;
mod stated_run;

pub use history_log::{HISTORY_ATTRIBUTES, HistoryCounts, PastJobs, RUN_ATTRIBUTES, history_files};
