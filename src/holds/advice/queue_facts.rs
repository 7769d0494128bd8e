//! The facts about a job that the queue has and the log lacks.

use serde::Serialize;

use super::shared_text::SharedText;

/// The facts about a job that the queue has and the log lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct QueueFacts {
    /// `RequestMemory`: a number of MB, or an expression.
    pub request_memory: Option<SharedText>,
    /// `MemoryUsage`, MB; absent if it is not a number.
    pub memory_usage_mb: Option<u64>,
    /// `ResidentSetSize`, KiB.
    pub resident_set_kib: Option<u64>,
    /// `NumJobStarts`.
    pub job_starts: Option<u64>,
    /// `PeriodicRelease`; absent if it is `false`.
    pub periodic_release: Option<SharedText>,
}

impl QueueFacts {
    /// Returns the larger of the two memory usages, MB; 0 if both are unknown.
    pub(super) fn used_memory_mb(&self) -> u64 {
        let resident_mb = self.resident_set_kib.map(|kib| kib.div_ceil(1024));
        self.memory_usage_mb.max(resident_mb).unwrap_or(0)
    }
}
