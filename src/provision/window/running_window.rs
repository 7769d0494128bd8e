//! A window whose predecessor has been submitted. Times are epoch seconds.

use super::observed_cluster::ObservedCluster;
use super::open_window::OpenWindow;
use super::window_plan::WindowPlan;
use crate::forecast::{EndedRun, QueueTime, SeenWait};
use crate::model_inputs::{CHAIN_COLUMNS, SnapshotSeries, chain_columns, join_snapshots};
use crate::replay::SlurmWorld;
use crate::scheduler::{NEVER, QueueJob, SimulatedCluster};
use crate::submission::{StartedWait, WaitRecord};

/// Outcome of a successor's submission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SuccessorStart {
    /// Time of the submission.
    pub submit_s: i64,
    /// Expected gap between the predecessor's end and the successor's start, in hours. `None` if
    /// the policy had no expectation.
    pub expected_h: Option<f64>,
    /// Time of the start.
    pub start_s: i64,
    /// True if the successor started before a job that was ahead of it.
    pub is_backfilled: bool,
    /// Gap between the predecessor's end and the successor's start, in seconds; negative for an
    /// overlap.
    pub gap_s: i64,
}

/// A window at a point in time that moves forward. The predecessor's start and end are known in
/// advance, for choosing decision times. Observations do not contain them before they happen.
pub(crate) struct RunningWindow<'a> {
    world: &'a SlurmWorld,
    plan: &'a WindowPlan,
    /// Jobs that had ended before the predecessor was submitted.
    ended_before: &'a [u32],
    /// Cluster in which the predecessor has been submitted, but nothing later has happened.
    before: SimulatedCluster<'a>,
    observed: ObservedCluster<'a>,
    now_s: i64,
    /// Submission of the predecessor.
    pub(crate) submit_s: i64,
    /// Start of the predecessor.
    pub(crate) start_s: i64,
    /// End of the predecessor.
    pub(crate) end_s: i64,
}

impl<'a> RunningWindow<'a> {
    /// Submits the predecessor of `window`. `ended` are the jobs whose end the window's opener has
    /// seen. Returns `None` if the predecessor never starts.
    pub(crate) fn new(
        window: OpenWindow<'a>,
        world: &'a SlurmWorld,
        ended: &'a [u32],
        plan: &'a WindowPlan,
    ) -> Option<RunningWindow<'a>> {
        let mut observed = window.observed;
        let submit_s = window.begin_s + plan.warmup_s;
        let predecessor = observed.cluster.submit(&chained_job(plan, world, submit_s));
        let before = observed.cluster.clone();
        // A copy runs ahead to the predecessor's start. The observed cluster stays at the
        // submission.
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

    /// Simulates all events before `now_s`, which must not be earlier than in the previous call.
    pub(crate) fn advance(&mut self, now_s: i64) {
        let starts_now = self.now_s <= self.start_s && self.start_s < now_s;
        if starts_now {
            // Record the predecessor's wait after the waits of jobs that started before it.
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

    /// Returns the current time.
    pub(crate) fn now_s(&self) -> i64 {
        self.now_s
    }

    /// Returns the queue. The predecessor's end is known once it runs.
    pub(crate) fn queue(&self) -> QueueTime {
        let mut queue = QueueTime::from_cluster(&self.observed.cluster, self.now_s);
        for run in &mut queue.running {
            if run.user == self.world.users as u32 {
                run.end_s = Some(self.end_s);
            }
        }
        queue
    }

    /// Returns the start of the job `number`, if the simulation has reached it.
    #[cfg(test)]
    pub(crate) fn started_at(&self, number: u32) -> Option<i64> {
        self.observed.cluster.started_at(number)
    }

    /// Returns the waits of jobs that have started.
    pub(crate) fn record(&self) -> &WaitRecord {
        &self.observed.record
    }

    /// Returns a successor that is submitted now.
    pub(crate) fn successor(&self) -> SeenWait {
        SeenWait {
            since_s: self.now_s,
            limit_s: self.plan.limit_s,
            nodes: self.plan.nodes,
            user: self.world.users as u32,
        }
    }

    /// Returns the last runs that have ended, the oldest first.
    pub(crate) fn ended_runs(&self) -> Vec<EndedRun> {
        // Runs from before the branch are in the opener's list, later ones in the cluster's own.
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

    /// Returns the queue's snapshots since a day before the predecessor's submission, `[t, 34]`.
    /// Empty if no snapshots are taken.
    pub(crate) fn snapshots(&self) -> &[f32] {
        let snapshots = self.observed.snapshots.as_ref();
        snapshots.map_or(&[], SnapshotSeries::all)
    }

    /// Returns the snapshots of the last day as models read them, `[144, 42]`. Empty if no
    /// snapshots are taken.
    pub(crate) fn model_snapshots(&self) -> Vec<f32> {
        if self.observed.snapshots.is_none() {
            return Vec::new();
        }
        join_snapshots(self.snapshots(), &self.chain())
    }

    /// Returns the snapshot columns of the chained jobs.
    pub(crate) fn chain(&self) -> [f32; CHAIN_COLUMNS] {
        let waited_s = self.start_s.min(self.now_s) - self.submit_s;
        let elapsed_s = (self.now_s - self.start_s).max(0);
        chain_columns(self.plan.limit_s, self.plan.nodes, waited_s, elapsed_s)
    }

    /// Returns the times of the probes, in order.
    pub(crate) fn probe_times_s(&self) -> Vec<i64> {
        let first_s = self.submit_s + 60;
        let gaps = self.plan.probes.max(2) as i64 - 1;
        let span_s = (self.end_s - first_s).max(0);
        (0..=gaps)
            .map(|probe| first_s + span_s * probe / gaps)
            .collect()
    }

    /// Returns the outcome of a submission now.
    pub(crate) fn submit_now(&self) -> Option<SuccessorStart> {
        self.submit(&self.observed.cluster, self.now_s)
    }

    /// Returns the outcome of a submission at `submit_s`, which must not be before the
    /// predecessor's submission.
    pub(crate) fn submit_at(&self, submit_s: i64) -> Option<SuccessorStart> {
        self.submit(&self.before, submit_s)
    }

    /// Returns the outcome of a submission at `submit_s` to `cluster`, whose simulation must not be
    /// later. `None` if the successor never starts.
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

/// Creates a chained job, predecessor or successor, that is submitted at `submit_s`.
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
