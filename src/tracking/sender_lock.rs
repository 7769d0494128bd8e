//! One sender for a directory: a second one leaves.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind};
use std::path::Path;

use anyhow::Result;

use poolcast_base::error::hinted;
use poolcast_base::{escape, files};

/// The file that a sender locks.
const LOCK_FILE: &str = "tracking.lock";

/// Keeps other senders from the runs in a directory while it is there.
#[derive(Debug)]
pub(super) struct SenderLock {
    _file: fs_err::File,
}

impl SenderLock {
    /// Locks the runs in `dir`. Where the file system has no locks, nothing is locked; the server's
    /// counts of lines then keep two senders from sending a line twice.
    ///
    /// # Errors
    /// Fails, as something that passes, when another process has the lock.
    pub(super) fn take(dir: &Path) -> Result<SenderLock> {
        let file = files::open_to_append(&dir.join(LOCK_FILE))?;
        match file.file().try_lock() {
            Err(TryLockError::WouldBlock) => {
                let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
                let shown = escape::path(dir);
                Err(busy.context(hinted(
                    format!("another process sends what is in `{shown}`"),
                    "let it do so, or wait until it is done",
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
