//! The runs, trials and sweeps that are sent or exported, read from the results on disk.

mod best_files;
#[cfg(test)]
mod recorded_run;
mod run_data;
mod source;
mod sweep_run;
mod sweep_space;
mod tracked_run;
mod tracked_trial;

pub(crate) use best_files::BestFiles;
#[cfg(test)]
pub(crate) use recorded_run::recorded_run;
pub(crate) use run_data::{DATA, DIGEST};
pub use source::TrackedSource;
pub use tracked_run::{TrackedEpoch, TrackedOutcome, TrackedRun};
pub(crate) use tracked_trial::{JUDGED, TRAIN, VALIDATION, metric_names};
