//! The facts about a job that the queue has and the log lacks.

use serde::Serialize;

/// The facts about a job that the queue has and the log lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueFacts {
    /// `RequestMemory`: a number of MB, or an expression.
    pub request_memory: Option<String>,
    /// `MemoryUsage`, MB; absent if it is not a number.
    pub memory_usage_mb: Option<u64>,
    /// `NumJobStarts`.
    pub job_starts: Option<u64>,
    /// `PeriodicRelease`; absent if it is `false`.
    pub periodic_release: Option<String>,
}
