//! Progress reports of a build of tensors.

/// A progress report of a build.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress {
    /// The output was planned, and fits on the disk.
    Planned {
        /// Approximate size of all files, in bytes.
        bytes: u64,
    },
    /// More samples are made.
    Made {
        /// Samples made since the last report.
        samples: u64,
    },
}
