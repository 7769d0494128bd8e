//! Snapshots of a queue, the published input of models: statistics of the queue every ten minutes
//! of the last day.

use crate::scheduler::SimulatedCluster;
use poolcast_base::stats::interpolated_quantile;

/// Interval between snapshots, in seconds.
pub(super) const SNAPSHOT_STEP_S: i64 = 600;

/// Snapshots per input: one day.
pub const SNAPSHOTS: usize = 144;

/// Columns of a snapshot that describe the queue.
pub const QUEUE_COLUMNS: usize = 34;

/// Columns of a snapshot that describe the chained jobs, predecessor and successor.
pub const CHAIN_COLUMNS: usize = 8;

/// All columns of a snapshot.
pub const SNAPSHOT_COLUMNS: usize = QUEUE_COLUMNS + CHAIN_COLUMNS;

/// Percentiles per quantity: minimum, quartiles and maximum.
const PERCENTILES: usize = 5;

/// Takes snapshots of clusters, and reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct SnapshotTaker {
    limits_min: Vec<f64>,
    waits_s: Vec<f64>,
    elapsed_s: Vec<f64>,
}

impl SnapshotTaker {
    /// Appends the snapshot of `cluster` at `now_s` to `snapshots`: [`QUEUE_COLUMNS`] numbers.
    ///
    /// The first half describes the waiting jobs: their number, their nodes, and the percentiles 0,
    /// 25, 50, 75 and 100 of their limits in minutes, of their waits, and of their run times, which
    /// are 0. The second half contains the same numbers for the running jobs. Durations are in
    /// seconds unless noted.
    pub(super) fn take(
        &mut self,
        cluster: &SimulatedCluster<'_>,
        now_s: i64,
        snapshots: &mut Vec<f32>,
    ) {
        self.clear();
        let mut nodes = 0.0;
        for job in cluster.waiting() {
            nodes += f64::from(job.nodes);
            self.add(job.limit, now_s - job.since, 0);
        }
        self.push_group(nodes, snapshots);

        self.clear();
        nodes = 0.0;
        for (job, start_s) in cluster.running() {
            nodes += f64::from(job.nodes);
            // A job that runs at the beginning of the simulation may have started as it arrived.
            let wait_s = (start_s - job.since).max(0);
            self.add(job.limit, wait_s, now_s - start_s);
        }
        self.push_group(nodes, snapshots);
    }

    fn clear(&mut self) {
        self.limits_min.clear();
        self.waits_s.clear();
        self.elapsed_s.clear();
    }

    fn add(&mut self, limit_s: i64, wait_s: i64, elapsed_s: i64) {
        self.limits_min.push(limit_s as f64 / 60.0);
        self.waits_s.push(wait_s as f64);
        self.elapsed_s.push(elapsed_s as f64);
    }

    fn push_group(&mut self, nodes: f64, snapshots: &mut Vec<f32>) {
        snapshots.push(self.limits_min.len() as f32);
        snapshots.push(nodes as f32);
        for values in [&mut self.limits_min, &mut self.waits_s, &mut self.elapsed_s] {
            push_percentiles(values, snapshots);
        }
    }
}

/// Appends the percentiles of `values`. They are interpolated linearly, like NumPy's; without
/// values they are 0.
fn push_percentiles(values: &mut [f64], snapshots: &mut Vec<f32>) {
    values.sort_unstable_by(f64::total_cmp);
    for part in 0..PERCENTILES {
        let q = part as f64 / (PERCENTILES - 1) as f64;
        snapshots.push(interpolated_quantile(values, q) as f32);
    }
}

/// Returns the snapshot columns of the chained jobs at a decision time. For the predecessor, then
/// for the successor: limit in minutes, nodes, wait and run time in seconds. The successor has
/// neither waited nor run.
pub fn chain_columns(
    limit_s: i64,
    nodes: u32,
    waited_s: i64,
    elapsed_s: i64,
) -> [f32; CHAIN_COLUMNS] {
    let limit_min = (limit_s as f64 / 60.0) as f32;
    let nodes = nodes as f32;
    [
        limit_min,
        nodes,
        waited_s as f32,
        elapsed_s as f32,
        limit_min,
        nodes,
        0.0,
        0.0,
    ]
}

/// Builds the input of a model, `[144, 42]`: the last day of `queue`, `[t, 34]`, with `chain`
/// appended to each row.
pub fn join_snapshots(queue: &[f32], chain: &[f32]) -> Vec<f32> {
    let before = queue.len() - SNAPSHOTS * QUEUE_COLUMNS;
    let mut joined = Vec::with_capacity(SNAPSHOTS * SNAPSHOT_COLUMNS);
    for snapshot in queue[before..].chunks_exact(QUEUE_COLUMNS) {
        joined.extend_from_slice(snapshot);
        joined.extend_from_slice(chain);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{NEVER, QueueJob, SchedulerSettings};

    #[test]
    fn snapshots_have_the_published_columns() {
        let settings = SchedulerSettings::small_cluster(4);
        let job = |enter: i64, nodes: u32, limit_min: i64| QueueJob {
            enter,
            since: enter,
            cancel: NEVER,
            run: 60 * limit_min,
            limit: 60 * limit_min,
            nodes,
            user: 0,
        };
        let jobs = [job(0, 3, 100), job(100, 2, 60), job(200, 4, 120)];
        let mut cluster = SimulatedCluster::new(&settings, &jobs, 1);
        let mut snapshots = Vec::new();
        let mut taker = SnapshotTaker::default();
        taker.take(&cluster, 0, &mut snapshots);
        assert_eq!(snapshots, [0.0; QUEUE_COLUMNS]);

        cluster.run_until(999);
        snapshots.clear();
        taker.take(&cluster, 1000, &mut snapshots);
        let (waiting, running) = snapshots.split_at(QUEUE_COLUMNS / 2);
        assert_eq!(
            waiting,
            [
                2.0, 6.0, 60.0, 75.0, 90.0, 105.0, 120.0, 800.0, 825.0, 850.0, 875.0, 900.0, 0.0,
                0.0, 0.0, 0.0, 0.0
            ]
        );
        let alike = |value: f32| [value; PERCENTILES];
        assert_eq!(running[..2], [1.0, 3.0]);
        assert_eq!(running[2..7], alike(100.0));
        assert_eq!(running[7..12], alike(0.0));
        assert_eq!(running[12..], alike(1000.0));
    }

    #[test]
    fn the_last_day_is_joined_with_the_chained_jobs() {
        let chain = chain_columns(7200, 3, 60, 10);
        assert_eq!(chain, [120.0, 3.0, 60.0, 10.0, 120.0, 3.0, 0.0, 0.0]);
        let mut queue = vec![9.0; QUEUE_COLUMNS];
        queue.extend([7.0; SNAPSHOTS * QUEUE_COLUMNS]);
        let joined = join_snapshots(&queue, &chain);
        assert_eq!(joined.len(), SNAPSHOTS * SNAPSHOT_COLUMNS);
        assert_eq!(joined[..QUEUE_COLUMNS], [7.0; QUEUE_COLUMNS]);
        assert_eq!(joined[QUEUE_COLUMNS..SNAPSHOT_COLUMNS], chain);
        assert!(!joined.contains(&9.0));
    }
}
