//! A growing series of queue snapshots.

use super::queue_snapshot::{QUEUE_COLUMNS, SNAPSHOT_STEP_S, SNAPSHOTS, SnapshotTaker};
use crate::scheduler::SimulatedCluster;

/// Snapshots of a queue at each multiple of ten minutes since the epoch.
#[derive(Debug)]
pub struct SnapshotSeries {
    taker: SnapshotTaker,
    /// Time of the next snapshot, in epoch seconds.
    next_s: i64,
    /// Snapshots `[t, 34]`.
    snapshots: Vec<f32>,
}

impl SnapshotSeries {
    /// Creates a series that begins at `begin_s`. The day before it counts as an empty cluster.
    pub fn from(begin_s: i64) -> SnapshotSeries {
        let steps = (begin_s + SNAPSHOT_STEP_S - 1).div_euclid(SNAPSHOT_STEP_S);
        SnapshotSeries {
            taker: SnapshotTaker::default(),
            next_s: steps * SNAPSHOT_STEP_S,
            snapshots: vec![0.0; SNAPSHOTS * QUEUE_COLUMNS],
        }
    }

    /// Advances `cluster` to `now_s` and takes its snapshots. A snapshot at a time contains the
    /// events before that time.
    pub fn advance(&mut self, cluster: &mut SimulatedCluster<'_>, now_s: i64) {
        while self.next_s <= now_s {
            cluster.run_until(self.next_s - 1);
            self.taker.take(cluster, self.next_s, &mut self.snapshots);
            self.next_s += SNAPSHOT_STEP_S;
        }
    }

    /// Returns all snapshots, `[t, 34]`; at least one day.
    pub fn all(&self) -> &[f32] {
        &self.snapshots
    }

    /// Returns a copy of the last day that continues independently.
    pub fn branch(&self) -> SnapshotSeries {
        let before = self.snapshots.len() - SNAPSHOTS * QUEUE_COLUMNS;
        SnapshotSeries {
            taker: SnapshotTaker::default(),
            next_s: self.next_s,
            snapshots: self.snapshots[before..].to_vec(),
        }
    }
}
