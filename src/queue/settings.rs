//! The settings that all processes of a queue share.

use serde::{Deserialize, Serialize};

use poolcast_base::shard::ArtefactFormat;

/// The format of queue folders.
pub const QUEUE: ArtefactFormat = ArtefactFormat {
    name: "queue",
    version: 3,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

/// The settings that all processes of a queue share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Interval between a worker's heartbeats, in seconds.
    pub heartbeat_s: f64,
    /// Time without a heartbeat after which a lease is lost, in seconds. Network file systems show
    /// a change up to a minute late.
    pub lease_s: f64,
    /// Number of lost leases after which a trial is given up.
    pub tries: u32,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            heartbeat_s: 10.0,
            lease_s: 120.0,
            tries: 5,
        }
    }
}
