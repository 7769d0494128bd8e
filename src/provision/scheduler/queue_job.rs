//! A job as a scheduler sees it.

/// A moment that never comes.
pub const NEVER: i64 = i64::MAX;

/// A job as a scheduler sees it. Moments and spans are ticks of the simulated clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueJob {
    /// When it enters the queue.
    pub enter: i64,
    /// When it begins to age, which its priority goes by.
    pub since: i64,
    /// When it leaves the queue if it has not started by then, or [`NEVER`].
    pub cancel: i64,
    /// How long it runs once it has started; one tick at least.
    pub run: i64,
    /// How long the scheduler expects it to run.
    pub limit: i64,
    /// How many nodes it needs.
    pub nodes: u32,
    /// Whose it is: a number below the number of users.
    pub user: u32,
}
