//! Exports runs as files of TensorBoard and W&B, without a server.

mod event_record;
mod exported_runs;
mod leveldb_log;
mod tensorboard;
mod wandb_export;

pub use exported_runs::{ExportFormat, ExportedRuns, export_runs};
