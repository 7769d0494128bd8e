//! Snapshots of a queue, one after another.

use super::queue_snapshot::{QUEUE_COLUMNS, SNAPSHOT_STEP_S, SNAPSHOTS, SnapshotTaker};
use crate::scheduler::SimulatedCluster;

/// Snapshots of a queue at each full ten minutes of the epoch.
#[derive(Debug)]
pub struct SnapshotSeries {
    taker: SnapshotTaker,
    /// The moment of the next one.
    next_s: i64,
    /// `[t, 34]`.
    snapshots: Vec<f32>,
}

impl SnapshotSeries {
    /// Those from `begin_s` on; before that the cluster is taken to have been empty for a day.
    pub fn from(begin_s: i64) -> SnapshotSeries {
        let steps = (begin_s + SNAPSHOT_STEP_S - 1).div_euclid(SNAPSHOT_STEP_S);
        SnapshotSeries {
            taker: SnapshotTaker::default(),
            next_s: steps * SNAPSHOT_STEP_S,
            snapshots: vec![0.0; SNAPSHOTS * QUEUE_COLUMNS],
        }
    }

    /// Takes those of `cluster` up to `now_s`, as it goes on. One at `now_s` has what happened before.
    pub fn advance(&mut self, cluster: &mut SimulatedCluster<'_>, now_s: i64) {
        while self.next_s <= now_s {
            cluster.run_until(self.next_s - 1);
            self.taker.take(cluster, self.next_s, &mut self.snapshots);
            self.next_s += SNAPSHOT_STEP_S;
        }
    }

    /// All of them, `[t, 34]`: those of a day at least.
    pub fn all(&self) -> &[f32] {
        &self.snapshots
    }

    /// A series that goes on by itself from those of the last day.
    pub fn branch(&self) -> SnapshotSeries {
        let before = self.snapshots.len() - SNAPSHOTS * QUEUE_COLUMNS;
        SnapshotSeries {
            taker: SnapshotTaker::default(),
            next_s: self.next_s,
            snapshots: self.snapshots[before..].to_vec(),
        }
    }
}
