//! A simulated cluster with an observer, who records waits and snapshots as time moves on.

use super::window_plan::WindowPlan;
use crate::model_inputs::SnapshotSeries;
use crate::replay::SlurmWorld;
use crate::scheduler::SimulatedCluster;
use crate::submission::{StartedWait, WaitRecord};

/// A simulated cluster with its observations.
pub(super) struct ObservedCluster<'a> {
    pub(super) cluster: SimulatedCluster<'a>,
    /// Waits of the jobs that have started.
    pub(super) record: WaitRecord,
    /// Snapshots of the queue, if they are taken.
    pub(super) snapshots: Option<SnapshotSeries>,
    world: &'a SlurmWorld,
    /// Number of job starts in the record.
    observed_starts: usize,
}

impl<'a> ObservedCluster<'a> {
    /// Creates an observer of `cluster` that has seen nothing before `begin_s`.
    pub(super) fn new(
        cluster: SimulatedCluster<'a>,
        begin_s: i64,
        world: &'a SlurmWorld,
        plan: &WindowPlan,
        takes_snapshots: bool,
    ) -> ObservedCluster<'a> {
        ObservedCluster {
            cluster,
            record: WaitRecord::new(plan.nodes, plan.limit_s, &plan.quantiles()),
            snapshots: takes_snapshots.then(|| SnapshotSeries::from(begin_s)),
            world,
            observed_starts: 0,
        }
    }

    /// Simulates and observes all events before `now_s`.
    pub(super) fn advance(&mut self, now_s: i64) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.advance(&mut self.cluster, now_s);
        }
        self.cluster.run_until(now_s - 1);
        for number in &self.cluster.started()[self.observed_starts..] {
            let job = &self.world.jobs[*number as usize];
            let start_s = self.cluster.run(*number).start.unwrap_or(job.since);
            self.record.observe(StartedWait {
                nodes: job.nodes,
                limit_s: job.limit,
                wait_s: start_s - job.since,
            });
        }
        self.observed_starts = self.cluster.started().len();
    }

    /// Returns a copy that continues independently. Jobs that enter at `close` or later do not
    /// enter the copy.
    pub(super) fn branch(&self, close: i64) -> ObservedCluster<'a> {
        ObservedCluster {
            cluster: self.cluster.branch(close),
            record: self.record.clone(),
            snapshots: self.snapshots.as_ref().map(SnapshotSeries::branch),
            world: self.world,
            observed_starts: 0,
        }
    }
}
