//! The reasons why there is no advice.

use serde::Serialize;

/// The reason why there is no advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "because", content = "detail", rename_all = "snake_case")]
pub enum NoAdviceReason {
    /// The end of the job is unknown, because it has no limit.
    NoLimit,
    /// The job has failed.
    Failed,
    /// The job was cancelled.
    Cancelled,
    /// The job needs more nodes than are usable.
    TooLarge,
    /// Jobs share nodes, as this setting or node shows, in a way that is not listed or simulated.
    SharedNodes(String),
    /// This part of a job's request is not simulated.
    UnknownRequest(String),
    /// Slurm hides other users' jobs from the caller.
    HiddenJobs,
    /// A controller that has just started has not heard of these nodes yet.
    UnheardNodes(String),
    /// This program does not know this reason or state of a job in the queue.
    UnknownReason(String),
    /// The job does not wait for its turn yet, for this reason.
    NotItsTurn(String),
    /// The job could start at once in the simulation, but has waited for long.
    ShouldRun,
    /// The forecast contradicts Slurm's own plan.
    UnlikeSlurm,
    /// Slurm has not said when it would start the successor.
    NoPlan,
}

impl NoAdviceReason {
    /// Returns true if there will be no advice until an administrator changes the cluster.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            NoAdviceReason::SharedNodes(_) | NoAdviceReason::HiddenJobs
        )
    }
}
