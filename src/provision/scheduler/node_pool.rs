//! The nodes of a simulated cluster: which jobs fit on them, now and in a plan.

use super::plan::SlotPlan;
use super::queue_job::QueueJob;
use super::settings::SchedulerSettings;

/// The nodes of a cluster. `number` is the number of a job in its [`super::SimulatedCluster`].
pub trait NodePool: Clone {
    /// Changes the number of nodes, at a step of the capacity.
    fn set_nodes(&mut self, nodes: u32);

    /// Returns true if the job could run on the empty cluster.
    fn could_hold(&self, number: u32, job: &QueueJob) -> bool;

    /// Returns true if the job can start now.
    fn fits(&self, number: u32, job: &QueueJob) -> bool;

    /// Gives nodes to a job that starts at `start`.
    fn hold(&mut self, number: u32, job: &QueueJob, start: i64);

    /// Takes the nodes back from a job that has ended, which had `nodes` nodes.
    fn give_back(&mut self, number: u32, nodes: u32);

    /// Notes that a job has entered or left the queue.
    fn note_queue_change(&mut self);

    /// Begins a new plan at `now`. Each item of `running` is the time at which a running job
    /// reaches its limit, and its number of nodes. Returns false if a plan would start no job,
    /// because nothing has changed since the previous one.
    fn begin_plan(
        &mut self,
        now: i64,
        settings: &SchedulerSettings,
        running: impl Iterator<Item = (i64, u32)>,
    ) -> bool;

    /// Returns true if the job could start now, given the reservations of the plan.
    fn fits_plan(&self, number: u32, job: &QueueJob) -> bool;

    /// Reserves nodes for the job as early as possible. Returns true if it starts now.
    fn reserve(
        &mut self,
        number: u32,
        job: &QueueJob,
        now: i64,
        settings: &SchedulerSettings,
    ) -> bool;
}

/// Nodes without differences, each of which has one job at a time.
#[derive(Debug, Default)]
pub struct WholeNodes {
    /// Number of free nodes; negative if nodes were removed while jobs ran on them.
    pub(super) free: i64,
    pub(super) nodes: u32,
    plan: SlotPlan,
}

impl Clone for WholeNodes {
    /// Copies the nodes without the plan, which is made for each use.
    fn clone(&self) -> WholeNodes {
        WholeNodes {
            plan: SlotPlan::default(),
            ..*self
        }
    }
}

impl NodePool for WholeNodes {
    fn set_nodes(&mut self, nodes: u32) {
        self.free += i64::from(nodes) - i64::from(self.nodes);
        self.nodes = nodes;
    }

    fn could_hold(&self, _: u32, job: &QueueJob) -> bool {
        job.nodes <= self.nodes
    }

    fn fits(&self, _: u32, job: &QueueJob) -> bool {
        i64::from(job.nodes) <= self.free
    }

    fn hold(&mut self, _: u32, job: &QueueJob, _: i64) {
        self.free -= i64::from(job.nodes);
    }

    fn give_back(&mut self, _: u32, nodes: u32) {
        self.free += i64::from(nodes);
    }

    fn note_queue_change(&mut self) {}

    fn begin_plan(
        &mut self,
        now: i64,
        settings: &SchedulerSettings,
        running: impl Iterator<Item = (i64, u32)>,
    ) -> bool {
        let freed = running.map(|(limit_end, nodes)| (limit_end - now, nodes));
        self.plan
            .begin(self.free, settings.slots, settings.slot, freed);
        true
    }

    fn fits_plan(&self, _: u32, job: &QueueJob) -> bool {
        i64::from(job.nodes) <= self.plan.free_now()
    }

    fn reserve(&mut self, _: u32, job: &QueueJob, _: i64, settings: &SchedulerSettings) -> bool {
        let (slot, slots) = (settings.slot, i64::from(settings.slots));
        let length = (job.limit + slot - 1).div_euclid(slot).max(1);
        self.plan.reserve(job.nodes, length.min(slots) as u32) == Some(0)
    }
}
