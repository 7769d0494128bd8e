//! Locks on directories, so that only one process writes to a directory at a time.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::atomic::AtomicFile;
use crate::error::hinted;
use crate::temporary::other_writer;

/// Final name of the temporary file by which the holder of a lock is known.
const HOLDER: &str = "lock";

/// Locks the directory `dir` against other calls of this program until the returned file is
/// dropped. If the file system has no locks, nothing is locked (NFS has none for directories).
///
/// # Errors
/// Fails with a retryable error ([`ErrorKind::ResourceBusy`]) if another process holds the lock.
pub fn lock_directory(dir: &Path) -> Result<fs_err::File> {
    let directory = fs_err::File::open(dir)?;
    match directory.file().try_lock() {
        Err(TryLockError::WouldBlock) => {
            let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
            let holder = match other_writer(&dir.join(HOLDER)) {
                Some(pid) => format!("process {pid}"),
                None => "another process".to_owned(),
            };
            let message = format!("{holder} is writing to `{}`", dir.display());
            Err(busy.context(hinted(
                message,
                "wait until it is done, or name another directory",
            )))
        }
        Err(TryLockError::Error(error)) => {
            tracing::info!("cannot lock `{}`: {error}", dir.display());
            Ok(directory)
        }
        Ok(()) => Ok(directory),
    }
}

/// A directory that is locked against other calls until this is dropped. If it is empty then, it is
/// removed.
#[derive(Debug)]
pub struct LockedDirectory {
    path: PathBuf,
    holder: Option<AtomicFile>,
    _lock: fs_err::File,
}

impl LockedDirectory {
    /// Creates the directory `path` if it is missing, and locks it.
    ///
    /// # Errors
    /// Fails like [`lock_directory`].
    pub fn new(path: &Path) -> Result<LockedDirectory> {
        fs_err::create_dir_all(path)?;
        Ok(LockedDirectory {
            _lock: lock_directory(path)?,
            path: path.to_owned(),
            holder: None,
        })
    }

    /// Like [`LockedDirectory::new`], but the errors of other calls name this process. Until this
    /// is dropped, the directory has a temporary file.
    ///
    /// # Errors
    /// Fails like [`LockedDirectory::new`], and if the directory cannot be written.
    pub fn with_holder(path: &Path) -> Result<LockedDirectory> {
        let mut locked = LockedDirectory::new(path)?;
        locked.holder = Some(AtomicFile::new(&path.join(HOLDER))?);
        Ok(locked)
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        self.holder = None;
        // This fails if the directory is not empty, which is intended.
        let _ = fs_err::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locking_a_locked_directory_is_a_retryable_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = lock_directory(dir.path()).expect("locked");
        let error = lock_directory(dir.path()).expect_err("locked already");
        assert!(
            error.to_string().contains("another process is writing to"),
            "{error}"
        );
        assert_eq!(crate::error::exit_code(&error), crate::error::EXIT_RETRY);
        drop(lock);
        lock_directory(dir.path()).expect("free again");
    }
}
