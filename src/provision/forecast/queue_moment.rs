//! What a cluster shows of its queue at a moment. How long a job will run is not in it.

use crate::scheduler::{QueueJob, SimulatedCluster};

/// A job that runs. Moments are epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRun {
    /// When it started.
    pub start_s: i64,
    /// How long it may run.
    pub limit_s: i64,
    /// How many nodes it has.
    pub nodes: u32,
    /// Whose it is: a number.
    pub user: u32,
    /// When it will end, for the one job of which that is known: the own one.
    pub end_s: Option<i64>,
}

/// A job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenWait {
    /// Since when it could start, epoch seconds.
    pub since_s: i64,
    /// How long it may run.
    pub limit_s: i64,
    /// How many nodes it needs.
    pub nodes: u32,
    /// Whose it is: a number.
    pub user: u32,
}

/// A cluster and its queue at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMoment {
    /// The moment, epoch seconds.
    pub now_s: i64,
    /// How many nodes there are.
    pub nodes: u32,
    /// The jobs that run.
    pub running: Vec<SeenRun>,
    /// The jobs that wait.
    pub waiting: Vec<SeenWait>,
}

impl QueueMoment {
    /// What `cluster` shows at `now_s`.
    pub fn of_cluster(cluster: &SimulatedCluster<'_>, now_s: i64) -> QueueMoment {
        let seen_run = |(job, start_s): (&QueueJob, i64)| SeenRun {
            start_s,
            limit_s: job.limit,
            nodes: job.nodes,
            user: job.user,
            end_s: None,
        };
        let seen_wait = |job: &QueueJob| SeenWait {
            since_s: job.since,
            limit_s: job.limit,
            nodes: job.nodes,
            user: job.user,
        };
        let mut running: Vec<SeenRun> = cluster.running().map(seen_run).collect();
        // The order within the simulation depends on when its jobs will end.
        running.sort_unstable_by_key(|run| (run.start_s, run.user, run.limit_s, run.nodes));
        QueueMoment {
            now_s,
            nodes: cluster.nodes(),
            running,
            waiting: cluster.waiting().map(seen_wait).collect(),
        }
    }
}
