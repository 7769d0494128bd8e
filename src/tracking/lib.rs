//! Sends runs, sweeps and DAGs to experiment trackers, or exports them as the trackers' files.
//!
//! Training never talks to a tracker. A sender reads the results on disk and sends what the server
//! lacks. To follow a run, it repeats this until the run ends. So jobs need no key and no network.

mod export;
mod mlflow;
mod runs;
mod sending;
mod server;
mod wandb;
#[cfg(test)]
#[path = "../../tests/cmd/wandb_server.rs"]
mod wandb_server;

pub use export::{ExportFormat, ExportedRuns, export_runs};
pub use mlflow::preview_to_mlflow;
pub use runs::{TrackedEpoch, TrackedOutcome, TrackedRun, TrackedSource};
pub use sending::{SendTime, TrackingThread, missing_under_dagman, send_runs};
pub use server::{SentSummary, TrackerState, ask_urls, post_document, tracker_states};
pub use wandb::preview_to_wandb;
