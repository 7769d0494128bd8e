//! What all who share a queue must agree on.

use serde::{Deserialize, Serialize};

use poolcast_base::shard::ArtefactFormat;

/// Queues.
pub const QUEUE: ArtefactFormat = ArtefactFormat {
    name: "queue",
    version: 2,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

/// What all who share a queue must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// How often a worker writes its heartbeat.
    pub heartbeat_s: f64,
    /// A lease is lost after so long without a heartbeat. Network file systems show a change up to
    /// a minute late.
    pub lease_s: f64,
    /// A trial is given up after so many lost leases.
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
