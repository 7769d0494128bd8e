//! The visible state of a cluster and its queue at one time. Future run times are not part of it.

use std::sync::Arc;

use crate::scheduler::{QueueJob, SharedQueue, SimulatedCluster};

/// A running job. Times are epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRun {
    /// Start of the job.
    pub start_s: i64,
    /// Time limit, in seconds.
    pub limit_s: i64,
    /// Nodes of the job.
    pub nodes: u32,
    /// Number of the user.
    pub user: u32,
    /// End of the job, if known: only for the user's own job.
    pub end_s: Option<i64>,
}

/// A waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenWait {
    /// Time since which the job could start, in epoch seconds.
    pub since_s: i64,
    /// Time limit, in seconds.
    pub limit_s: i64,
    /// Nodes that the job needs.
    pub nodes: u32,
    /// Number of the user.
    pub user: u32,
}

/// A cluster and its queue at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTime {
    /// The time, in epoch seconds.
    pub now_s: i64,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Running jobs.
    pub running: Vec<SeenRun>,
    /// Waiting jobs.
    pub waiting: Vec<SeenWait>,
    /// What jobs hold and request, if they share nodes; else each job has whole nodes.
    pub shared: Option<Arc<SharedQueue>>,
}

impl QueueTime {
    /// Returns the visible state of `cluster` at `now_s`.
    pub fn from_cluster(cluster: &SimulatedCluster<'_>, now_s: i64) -> QueueTime {
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
        // Sort: the simulation's own order depends on the future ends of its jobs.
        running.sort_unstable_by_key(|run| (run.start_s, run.user, run.limit_s, run.nodes));
        QueueTime {
            now_s,
            nodes: cluster.nodes(),
            running,
            waiting: cluster.waiting().map(seen_wait).collect(),
            shared: None,
        }
    }
}
