//! The lock that lets only one process send the runs of a directory.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind};
use std::path::Path;

use anyhow::Result;

use poolcast_base::error::hinted;
use poolcast_base::{escape, files};

/// Name of the lock file.
const LOCK_FILE: &str = "tracking.lock";

/// Keeps other senders from the runs of a directory until it is dropped.
#[derive(Debug)]
pub(super) struct SenderLock {
    _file: fs_err::File,
}

impl SenderLock {
    /// Locks the runs in `dir`. On a file system without locks this succeeds without a lock. The
    /// line counts of the server then keep two senders from sending a line twice.
    ///
    /// # Errors
    /// Fails with a temporary error while another process holds the lock.
    pub(super) fn take(dir: &Path) -> Result<SenderLock> {
        let file = files::open_to_append(&dir.join(LOCK_FILE))?;
        match file.file().try_lock() {
            Err(TryLockError::WouldBlock) => {
                let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
                let shown = escape::path(dir);
                Err(busy.context(hinted(
                    format!("another process is sending the results in `{shown}`"),
                    "wait until it ends, or let it send them",
                )))
            }
            Err(TryLockError::Error(error)) => {
                tracing::info!("cannot lock `{}`: {error}", file.path().display());
                Ok(SenderLock { _file: file })
            }
            Ok(()) => Ok(SenderLock { _file: file }),
        }
    }
}
