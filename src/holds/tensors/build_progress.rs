//! How far a build of tensors is.

/// How far tensors are.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress {
    /// So many bytes are going to be written, about, and they fit.
    Planned {
        /// Bytes of all files.
        bytes: u64,
    },
    /// So many more samples are made.
    Made {
        /// Samples since the last time.
        samples: u64,
    },
}
