//! Reads an event log for a store, with the checksum of its file.

use std::path::Path;

use anyhow::{Result, ensure};

use htcondor_eventlog::{self as eventlog, EventBatch, LogSummary, ReadOptions, ResumePoint};
use poolcast_base::manifest::{Checksum, SharedChecksum};
use poolcast_collect::{explain, sink_error};

/// A log that was read.
pub(super) struct ReadLog {
    pub(super) summary: LogSummary,
    /// Checksum of the file, as in [`Checksum::finish`].
    pub(super) xxh3: String,
}

/// Receiver of the events of a log.
type StoreSink<'a> = dyn FnMut(EventBatch<'_>) -> Result<()> + Send + 'a;

/// Reads the log at `path` from its beginning. Passes the size of every disk read, in bytes, to
/// `on_bytes`.
///
/// # Errors
/// Fails if the log cannot be read, and if `sink` fails.
pub(super) fn read_log(
    path: &Path,
    options: &ReadOptions,
    on_bytes: impl Fn(u64) + Send + 'static,
    sink: &mut StoreSink<'_>,
) -> Result<ReadLog> {
    let checksum = SharedChecksum::default();
    let read = checksum.clone();
    let on_read = move |bytes: &[u8]| {
        on_bytes(bytes.len() as u64);
        read.update(bytes);
    };
    let sink = &mut |batch: EventBatch<'_>| sink(batch).map_err(sink_error);
    let summary = eventlog::read(path, options, on_read, sink).map_err(explain)?;
    Ok(ReadLog {
        summary,
        xxh3: checksum.finish().1,
    })
}

/// Reads the log at `path` from `resume` on. `begun` is the checksum of everything before.
///
/// # Errors
/// Fails like [`read_log`], and if `begun` covers more or less than everything before `resume`.
pub(super) fn resume_log(
    path: &Path,
    options: &ReadOptions,
    resume: &ResumePoint,
    begun: Checksum,
    sink: &mut StoreSink<'_>,
) -> Result<ReadLog> {
    ensure!(
        begun.bytes() == resume.offset,
        "cannot resume `{}`: the offset is not the known one",
        path.display()
    );
    let checksum = SharedChecksum::new(begun);
    let read = checksum.clone();
    let on_read = move |bytes: &[u8]| read.update(bytes);
    let sink = &mut |batch: EventBatch<'_>| sink(batch).map_err(sink_error);
    let summary = eventlog::read_on(path, options, resume, on_read, sink).map_err(explain)?;
    Ok(ReadLog {
        summary,
        xxh3: checksum.finish().1,
    })
}
