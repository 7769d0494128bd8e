//! Sends runs, sweeps and DAGs to experiment trackers, or exports them as the trackers' files.
//!
//! Training never talks to a tracker. A sender reads the results on disk and sends what the server
//! lacks. To follow a run, it repeats this until the run ends. So jobs need no key and no network.

mod best_files;
mod dagman_keys;
mod event_record;
mod export;
mod extended_json;
mod http_sender;
mod judged_metric;
mod leveldb_log;
mod mlflow_batch;
mod mlflow_runs;
mod mlflow_sender;
mod mlflow_settings;
#[cfg(test)]
mod recorded_run;
mod request_pace;
mod run_sender;
mod send_runs;
mod sender_clock;
mod sender_lock;
mod sent_note;
mod sent_summary;
mod server_address;
mod source;
mod sweep_control;
mod sweep_space;
mod tensorboard;
mod tracked_run;
mod tracked_trial;
mod tracker_key;
mod tracker_state;
mod tracking_thread;
mod wandb_agents;
mod wandb_client;
mod wandb_export;
mod wandb_files;
mod wandb_preview;
mod wandb_record;
mod wandb_requests;
mod wandb_sender;
#[cfg(test)]
#[path = "../../tests/cmd/wandb_server.rs"]
mod wandb_server;
mod wandb_settings;
mod wandb_sweep;
mod wandb_text;

pub use dagman_keys::missing_under_dagman;
pub use export::{ExportFormat, ExportedRuns, export_runs};
pub use mlflow_sender::preview_to_mlflow;
pub use send_runs::{SendTime, send_runs};
pub use sent_summary::SentSummary;
pub use source::TrackedSource;
pub use tracked_run::{TrackedEpoch, TrackedOutcome, TrackedRun};
pub use tracker_state::{TrackerState, tracker_states};
pub use tracking_thread::TrackingThread;
pub use wandb_preview::preview_to_wandb;
