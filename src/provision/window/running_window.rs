//! A window whose predecessor was submitted. Moments are epoch seconds.

use super::observed_cluster::ObservedCluster;
use super::open_window::OpenWindow;
use super::window_plan::WindowPlan;
use crate::forecast::{EndedRun, QueueMoment, SeenWait};
use crate::model_inputs::{
    CHAIN_COLUMNS, SnapshotSeries, chain_columns, join_snapshots,
};
use crate::replay::SlurmWorld;
use crate::scheduler::{NEVER, QueueJob, SimulatedCluster};
use crate::submission::{StartedWait, WaitRecord};

/// What came of a successor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate) struct SuccessorStart {
    /// When it was submitted.
    pub submit_s: i64,
    /// By how much it was expected to start after its predecessor's end, hours; `None` where it was
    /// submitted without such an expectation.
    pub expected_h: Option<f64>,
    /// When it started.
    pub start_s: i64,
    /// Whether it passed another job.
    pub is_backfilled: bool,
    /// By how much it started after its predecessor's end, seconds; below 0 for an overlap.
    pub gap_s: i64,
}

/// A window at a moment that moves on. When its predecessor starts and ends is known from the outset,
/// so that moments can be chosen; what is seen at a moment does not have it before it is so far.
pub(in crate) struct RunningWindow<'a> {
    world: &'a SlurmWorld,
    plan: &'a WindowPlan,
    /// Jobs that had ended before the predecessor was submitted.
    ended_before: &'a [u32],
    /// Just before the predecessor was submitted.
    before: SimulatedCluster<'a>,
    observed: ObservedCluster<'a>,
    now_s: i64,
    /// When the predecessor is submitted.
    pub(in crate) submit_s: i64,
    /// When it starts.
    pub(in crate) start_s: i64,
    /// When it ends.
    pub(in crate) end_s: i64,
}

impl<'a> RunningWindow<'a> {
    /// Submits the predecessor of `window`. `ended` are the jobs that its opener saw end. `None` where
    /// it never starts.
    pub(in crate) fn new(
        window: OpenWindow<'a>,
        world: &'a SlurmWorld,
        ended: &'a [u32],
        plan: &'a WindowPlan,
    ) -> Option<RunningWindow<'a>> {
        let mut observed = window.observed;
        let submit_s = window.begin_s + plan.warmup_s;
        let predecessor = observed.cluster.submit(&chained_job(plan, world, submit_s));
        let before = observed.cluster.clone();
        let start_s = before.clone().run_until_start(predecessor, NEVER - 1)?;
        Some(RunningWindow {
            world,
            plan,
            ended_before: &ended[window.ended],
            before,
            observed,
            now_s: submit_s,
            submit_s,
            start_s,
            end_s: start_s + plan.length_s,
        })
    }

    /// Simulates all that happens before `now_s`, which is not earlier than the last such moment.
    pub(in crate) fn advance(&mut self, now_s: i64) {
        let starts_now = self.now_s <= self.start_s && self.start_s < now_s;
        if starts_now {
            // Its wait comes after those of the jobs that started before it.
            self.observed.advance(self.start_s + 1);
            self.observed.record.observe(StartedWait {
                nodes: self.plan.nodes,
                limit_s: self.plan.limit_s,
                wait_s: self.start_s - self.submit_s,
            });
        }
        self.observed.advance(now_s);
        self.now_s = now_s;
    }

    /// The moment.
    pub(in crate) fn now_s(&self) -> i64 {
        self.now_s
    }

    /// The queue. Of the predecessor, once it runs, it is known when it ends.
    pub(in crate) fn queue(&self) -> QueueMoment {
        let mut queue = QueueMoment::of_cluster(&self.observed.cluster, self.now_s);
        for run in &mut queue.running {
            if run.user == self.world.users as u32 {
                run.end_s = Some(self.end_s);
            }
        }
        queue
    }

    /// When the job `number` started, as far as the simulation knows of it.
    #[cfg(test)]
    pub(in crate) fn started_at(&self, number: u32) -> Option<i64> {
        self.observed.cluster.started_at(number)
    }

    /// The waits of jobs that have started.
    pub(in crate) fn record(&self) -> &WaitRecord {
        &self.observed.record
    }

    /// A successor that is submitted now.
    pub(in crate) fn successor(&self) -> SeenWait {
        SeenWait {
            since_s: self.now_s,
            limit_s: self.plan.limit_s,
            nodes: self.plan.nodes,
            user: self.world.users as u32,
        }
    }

    /// The last runs that have ended, the oldest first.
    pub(in crate) fn ended_runs(&self) -> Vec<EndedRun> {
        let since = self.observed.cluster.ended();
        let before = self.plan.history_runs.saturating_sub(since.len());
        let before = &self.ended_before[self.ended_before.len().saturating_sub(before)..];
        let since = &since[since.len().saturating_sub(self.plan.history_runs)..];
        let ended_run = |number: &u32| {
            let job = &self.world.jobs[*number as usize];
            EndedRun {
                user: job.user,
                limit_s: job.limit,
                run_s: job.run,
            }
        };
        before.iter().chain(since).map(ended_run).collect()
    }

    /// Snapshots of the queue from a day before the predecessor's submission on, `[t, 34]`; none if they
    /// are not taken.
    pub(in crate) fn snapshots(&self) -> &[f32] {
        let snapshots = self.observed.snapshots.as_ref();
        snapshots.map_or(&[], SnapshotSeries::all)
    }

    /// The snapshots of the last day as models take them, `[144, 42]`; none if they are not taken.
    pub(in crate) fn model_snapshots(&self) -> Vec<f32> {
        if self.observed.snapshots.is_none() {
            return Vec::new();
        }
        join_snapshots(self.snapshots(), &self.chain())
    }

    /// What snapshots say of the chained jobs.
    pub(in crate) fn chain(&self) -> [f32; CHAIN_COLUMNS] {
        let waited_s = self.start_s.min(self.now_s) - self.submit_s;
        let elapsed_s = (self.now_s - self.start_s).max(0);
        chain_columns(self.plan.limit_s, self.plan.nodes, waited_s, elapsed_s)
    }

    /// The moments of the probes, in order.
    pub(in crate) fn probe_moments_s(&self) -> Vec<i64> {
        let first_s = self.submit_s + 60;
        let gaps = self.plan.probes.max(2) as i64 - 1;
        let span_s = (self.end_s - first_s).max(0);
        (0..=gaps)
            .map(|probe| first_s + span_s * probe / gaps)
            .collect()
    }

    /// What comes of a successor that is submitted now.
    pub(in crate) fn submit_now(&self) -> Option<SuccessorStart> {
        self.submit(&self.observed.cluster, self.now_s)
    }

    /// What comes of one that is submitted at `submit_s`, the predecessor's submission at the earliest.
    pub(in crate) fn submit_at(&self, submit_s: i64) -> Option<SuccessorStart> {
        self.submit(&self.before, submit_s)
    }

    /// What comes of one that is submitted at `submit_s` to `cluster`, which was simulated up to some
    /// moment before. `None` where it never starts.
    fn submit(&self, cluster: &SimulatedCluster<'_>, submit_s: i64) -> Option<SuccessorStart> {
        let mut cluster = cluster.branch(NEVER);
        cluster.run_until(submit_s - 1);
        let successor = cluster.submit(&chained_job(self.plan, self.world, submit_s));
        let start_s = cluster.run_until_start(successor, NEVER - 1)?;
        Some(SuccessorStart {
            submit_s,
            expected_h: None,
            start_s,
            is_backfilled: cluster.added_run(successor).is_backfilled,
            gap_s: start_s - self.end_s,
        })
    }
}

fn chained_job(plan: &WindowPlan, world: &SlurmWorld, submit_s: i64) -> QueueJob {
    QueueJob {
        enter: submit_s,
        since: submit_s,
        cancel: NEVER,
        run: plan.length_s,
        limit: plan.limit_s,
        nodes: plan.nodes,
        user: world.users as u32,
    }
}
