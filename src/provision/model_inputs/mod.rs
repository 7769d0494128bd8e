//! Inputs of a wait model at a decision time: features and snapshots of the queue.

mod moment_features;
mod queue_snapshot;
mod snapshot_series;

pub use moment_features::{KnownTime, MAX_WAIT_BY_LIMITS_S, feature_names};
pub use queue_snapshot::{
    CHAIN_COLUMNS, QUEUE_COLUMNS, SNAPSHOT_COLUMNS, SNAPSHOTS, chain_columns, join_snapshots,
};
pub use snapshot_series::SnapshotSeries;
