//! What runs, sweeps and DAGs have left → the same in experiment trackers, sent or as their files.
//!
//! Training never talks to a tracker. A sender reads what is on disk and sends what the server
//! lacks; to follow a run is to do that again and again. So jobs need no key and no network.

mod event_record;
mod export;
mod extended_json;
mod leveldb_log;
#[cfg(test)]
mod recorded_run;
mod source;
mod sweep_space;
mod tensorboard;
mod tracked_run;
mod tracked_trial;
mod wandb_export;
mod wandb_record;

pub use export::{ExportFormat, ExportedRuns, export_runs};
pub use source::TrackedSource;
pub use tracked_run::{RunOutcome, TrackedEpoch, TrackedRun};
