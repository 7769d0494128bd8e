//! Directories that one process at a time writes to.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::error::hinted;

/// Keeps other calls from writing into the directory `dir` until what it returns is dropped. Where
/// the file system has no locks, as NFS has none for directories, nothing is locked.
///
/// # Errors
/// Fails, as something that passes, when another process has the lock.
pub fn lock_directory(dir: &Path) -> Result<fs_err::File> {
    let directory = fs_err::File::open(dir)?;
    match directory.file().try_lock() {
        Err(TryLockError::WouldBlock) => {
            let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
            let message = format!("another process adds to `{}`", dir.display());
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

/// A directory that no other call writes to while this is there. If nothing was written, the
/// directory is removed.
#[derive(Debug)]
pub struct LockedDirectory {
    path: PathBuf,
    _lock: fs_err::File,
}

impl LockedDirectory {
    /// Makes the directory `path` where it is missing, and locks it.
    ///
    /// # Errors
    /// Fails as [`lock_directory`] does.
    pub fn new(path: &Path) -> Result<LockedDirectory> {
        fs_err::create_dir_all(path)?;
        Ok(LockedDirectory {
            _lock: lock_directory(path)?,
            path: path.to_owned(),
        })
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        // Fails where the directory holds anything.
        let _ = fs_err::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_directory_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = lock_directory(dir.path()).expect("locked");
        let error = lock_directory(dir.path()).expect_err("locked already");
        assert!(
            error.to_string().contains("another process adds to"),
            "{error}"
        );
        assert_eq!(crate::error::exit_code(&error), crate::error::EXIT_RETRY);
        drop(lock);
        lock_directory(dir.path()).expect("free again");
    }
}
