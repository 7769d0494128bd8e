//! A job, as the simulated scheduler sees it.

/// A time that never comes.
pub const NEVER: i64 = i64::MAX;

/// A job, as the scheduler sees it. Times and durations are in ticks of the simulated clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueJob {
    /// The time at which the job enters the queue.
    pub enter: i64,
    /// The time from which the job ages, which determines its priority.
    pub since: i64,
    /// The time at which the job leaves the queue if it has not started, or [`NEVER`].
    pub cancel: i64,
    /// Run time, at least one tick.
    pub run: i64,
    /// Time limit: the run time that the scheduler expects.
    pub limit: i64,
    /// Number of nodes.
    pub nodes: u32,
    /// The user's number, which is less than the number of users.
    pub user: u32,
}
