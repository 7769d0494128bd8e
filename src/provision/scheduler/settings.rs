//! How a scheduler decides.

/// Nodes from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityStep {
    /// The moment, in ticks.
    pub from: i64,
    /// How many nodes there are.
    pub nodes: u32,
}

/// How a scheduler decides. Moments and spans are ticks of the simulated clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// When the simulation begins; jobs are planned ahead then, and every `backfill_interval` after it.
    pub begin: i64,
    /// How many nodes there are, from when on; in order.
    pub capacity: Vec<CapacityStep>,
    /// How many jobs of one user may run at once.
    pub max_jobs_per_user: Option<u32>,
    /// How often jobs are planned ahead: `bf_interval`.
    pub backfill_interval: i64,
    /// How long a slot of the plan is: `bf_resolution`.
    pub slot: i64,
    /// How many slots the plan has: `bf_window` / `bf_resolution`.
    pub slots: u32,
    /// How many jobs are planned at most: `bf_max_job_test`.
    pub max_job_test: usize,
    /// How long after a job's end its nodes take no other job.
    pub turnaround: i64,
    /// What the age of a job counts: `PriorityWeightAge`.
    pub age_weight: i64,
    /// In how long an age counts so much: `PriorityMaxAge`.
    pub max_age: i64,
    /// What the share of the cluster that a job asks for counts: `PriorityWeightJobSize`.
    pub size_weight: i64,
}

impl SchedulerSettings {
    /// A small cluster of `nodes` nodes whose ticks are seconds, for tests.
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

    /// The most nodes that there ever are.
    pub fn most_nodes(&self) -> u32 {
        let nodes = self.capacity.iter().map(|step| step.nodes);
        nodes.max().unwrap_or(0)
    }

    /// What a job's place in the queue goes by: its priority at any one moment, times a constant. The
    /// age of all jobs grows alike, so that their order never changes.
    pub(super) fn priority(&self, since: i64, nodes: u32) -> i128 {
        let size = i128::from(self.size_weight) * i128::from(nodes) * i128::from(self.max_age);
        let age_per_tick = i128::from(self.age_weight) * i128::from(self.most_nodes());
        size - age_per_tick * i128::from(since - self.begin)
    }
}
