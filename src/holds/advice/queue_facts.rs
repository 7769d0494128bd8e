//! What the queue says of a job beyond the log.

use serde::Serialize;

/// What the queue says of a job beyond the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueFacts {
    /// `RequestMemory`: a number of MB, or an expression.
    pub request_memory: Option<String>,
    /// `MemoryUsage`, MB, where it is a number.
    pub memory_usage_mb: Option<u64>,
    /// `NumJobStarts`.
    pub job_starts: Option<u64>,
    /// `PeriodicRelease`, where it is more than `false`.
    pub periodic_release: Option<String>,
}
