//! Settings of the simulated scheduler.

/// Number of nodes from a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityStep {
    /// The time, in ticks.
    pub from: i64,
    /// Number of nodes.
    pub nodes: u32,
}

/// Settings of the scheduler. Times and durations are in ticks of the simulated clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// Start of the simulation. The scheduler plans ahead then, and every `backfill_interval`
    /// after.
    pub begin: i64,
    /// Number of nodes over time, in order of time.
    pub capacity: Vec<CapacityStep>,
    /// Maximum number of running jobs per user.
    pub max_jobs_per_user: Option<u32>,
    /// Interval between plans: `bf_interval`.
    pub backfill_interval: i64,
    /// Length of a slot of the plan: `bf_resolution`.
    pub slot: i64,
    /// Number of slots of the plan: `bf_window` / `bf_resolution`.
    pub slots: u32,
    /// Maximum number of jobs in a plan: `bf_max_job_test`.
    pub max_job_test: usize,
    /// Time after the end of a job during which its nodes accept no other job.
    pub turnaround: i64,
    /// Weight of the job's age: `PriorityWeightAge`.
    pub age_weight: i64,
    /// Age at which a job has the full age weight: `PriorityMaxAge`.
    pub max_age: i64,
    /// Weight of the job's share of the cluster: `PriorityWeightJobSize`.
    pub size_weight: i64,
}

impl SchedulerSettings {
    /// Returns settings of a small cluster with `nodes` nodes, for tests. A tick is a second.
    #[cfg(test)]
    pub fn small_cluster(nodes: u32) -> SchedulerSettings {
        SchedulerSettings {
            begin: 0,
            capacity: vec![CapacityStep { from: 0, nodes }],
            max_jobs_per_user: None,
            backfill_interval: 60,
            slot: 600,
            slots: 288,
            max_job_test: 100,
            turnaround: 0,
            age_weight: 7000,
            max_age: 7 * 86_400,
            size_weight: 100,
        }
    }

    /// Returns the maximum number of nodes over time.
    pub fn most_nodes(&self) -> u32 {
        let nodes = self.capacity.iter().map(|step| step.nodes);
        nodes.max().unwrap_or(0)
    }

    /// Returns the sort key of a job in the queue: its priority at some fixed time, times a
    /// constant. All jobs age equally fast, so their order never changes.
    pub(super) fn priority(&self, since: i64, nodes: u32) -> i128 {
        let size = i128::from(self.size_weight) * i128::from(nodes) * i128::from(self.max_age);
        let age_per_tick = i128::from(self.age_weight) * i128::from(self.most_nodes());
        size - age_per_tick * i128::from(since - self.begin)
    }
}
