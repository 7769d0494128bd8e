//! Errors of reading a log.

use std::io;
use std::path::{Path, PathBuf};

/// Error of the caller's sink, of any type.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a log could not be read. Damage within a log is not an error: it is counted as an
/// [`Anomaly`](crate::Anomaly).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The log is missing, or may not be opened.
    #[error("cannot open the log `{}`", path.display())]
    Open {
        /// Path of the log.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("`{}` is a directory", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// The log has no bytes, or none once it is decompressed.
    #[error("`{}` is empty", path.display())]
    Empty {
        /// Path of the log.
        path: PathBuf,
    },
    /// The operating system could not read from the open log. A retry may succeed.
    #[error("cannot read the log `{}`", path.display())]
    Read {
        /// Path of the log.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The log is compressed, and its compressed data is damaged or cut short.
    #[error("cannot decompress the log `{}`, which is damaged or cut short", path.display())]
    DamagedArchive {
        /// Path of the log.
        path: PathBuf,
        /// Error of the decoder.
        source: io::Error,
    },
    /// The file has no records.
    #[error("`{}` is not an HTCondor event log", path.display())]
    NotALog {
        /// Path of the file.
        path: PathBuf,
    },
    /// The log has only stamps without a year, nothing in it gives the year, and neither does the
    /// change time of the file. Set [`ReadOptions::year`](crate::ReadOptions::year).
    #[error("`{}` has time stamps without a year, and nothing gives the year", path.display())]
    UnknownYear {
        /// Path of the log.
        path: PathBuf,
    },
    /// The log has an event on 29 February, and by
    /// [`ReadOptions::year`](crate::ReadOptions::year) that would be in a year without this day.
    #[error("`{}` has an event on 29 February, so its first event is not of the year {year}", path.display())]
    NoLeapDay {
        /// Path of the log.
        path: PathBuf,
        /// The year that the caller named.
        year: i16,
    },
    /// The receiver of the events failed. This is its own error.
    #[error(transparent)]
    Sink(SinkError),
}

/// Result whose error fits a register, for functions that are called for every event.
pub(super) type BoxedResult<T> = Result<T, Box<ReadError>>;

impl ReadError {
    /// Returns the path of the log; `None` if the error is the caller's own.
    pub fn path(&self) -> Option<&Path> {
        match self {
            ReadError::Open { path, .. }
            | ReadError::Directory { path }
            | ReadError::Empty { path }
            | ReadError::Read { path, .. }
            | ReadError::DamagedArchive { path, .. }
            | ReadError::NotALog { path }
            | ReadError::UnknownYear { path }
            | ReadError::NoLeapDay { path, .. } => Some(path),
            ReadError::Sink(_) => None,
        }
    }
}
