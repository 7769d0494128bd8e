//! The facts about a job that the queue has and the log lacks.

use serde::Serialize;

use poolcast_base::shared_text::SharedText;

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
    /// `Cmd`.
    pub program: Option<SharedText>,
    /// `JobSubmitFile`.
    pub submit_file: Option<SharedText>,
    /// The files of the job on the access point.
    #[serde(skip)]
    pub(super) files: JobFiles,
}

/// The files of a job on the access point that its hold may be about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct JobFiles {
    /// `Iwd`, to which relative paths belong.
    pub(super) initial_directory: Option<SharedText>,
    /// `Cmd`, if HTCondor sends it with the job.
    pub(super) executable: Option<SharedText>,
    /// `ContainerImageFullPath`, if it is a file: HTCondor sends it with the job.
    pub(super) image: Option<SharedText>,
    /// `DiskUsage`, KiB.
    pub(super) disk_usage_kib: Option<u64>,
}

/// The attribute with the path or the URL of the container image that HTCondor sends with the job.
/// `ContainerImage` has only its name then, or else an image that is used where the job runs.
pub(super) const SENT_IMAGE: &str = "ContainerImageFullPath";

/// Returns `path`, below `directory` if it is relative.
pub(super) fn absolute_path(path: &str, directory: Option<&str>) -> Option<String> {
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    Some(format!("{}/{path}", directory?.trim_end_matches('/')))
}

impl JobFiles {
    /// Returns the file that HTCondor sends with the job, and that a hold with `hold_code` may be
    /// about although its reason names another.
    pub(super) fn sent(&self, hold_code: i32) -> Option<&SharedText> {
        match hold_code {
            6 => self.executable.as_ref(),
            35 | 45 => self.image.as_ref(),
            _ => None,
        }
    }
}

impl QueueFacts {
    /// Returns the larger of the two memory usages, MB; 0 if both are unknown.
    pub(super) fn used_memory_mb(&self) -> u64 {
        let resident_mb = self.resident_set_kib.map(|kib| kib.div_ceil(1024));
        self.memory_usage_mb.max(resident_mb).unwrap_or(0)
    }
}
