//! The lock on the file of earlier answers, without which a program that leaves out old answers
//! could lose those that another one adds meanwhile.

use std::fs::TryLockError;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use poolcast_base::error::hinted;
use poolcast_base::files;

/// Time within which another program must have ended its write.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Time between two attempts to get the lock.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// A file of whole lines, locked against other writers until this is dropped.
#[derive(Debug)]
pub(super) struct LedgerFile {
    path: PathBuf,
    file: fs_err::File,
    /// False if the file system has no locks.
    is_locked: bool,
}

impl LedgerFile {
    /// Opens and locks the file at `path`, which is created if it is missing.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if another program keeps its lock for 10 s.
    pub(super) fn lock(path: &Path) -> Result<LedgerFile> {
        let began = Instant::now();
        loop {
            let file = files::open_to_append(path)?;
            let is_locked = match file.file().try_lock() {
                Ok(()) => true,
                Err(TryLockError::Error(_)) => return Ok(LedgerFile::new(path, file, false)),
                Err(TryLockError::WouldBlock) => false,
            };
            // The program that had the lock may have replaced the file.
            if is_locked && is_at(&file, path)? {
                return Ok(LedgerFile::new(path, file, true));
            }
            ensure!(
                began.elapsed() < WRITTEN_WITHIN,
                hinted(
                    format!("another program is writing to `{}`", path.display()),
                    "call again once it has ended"
                )
            );
            if !is_locked {
                std::thread::sleep(RETRY_AFTER);
            }
        }
    }

    fn new(path: &Path, file: fs_err::File, is_locked: bool) -> LedgerFile {
        LedgerFile {
            path: path.to_owned(),
            file,
            is_locked,
        }
    }

    /// Returns true if the file may be replaced without losing what another program writes.
    pub(super) fn may_be_replaced(&self) -> bool {
        self.is_locked
    }

    /// Appends whole `lines` in a single write, so that they stay together without a lock, too.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<()> {
        Ok(self.file.write_all(lines)?)
    }

    /// Replaces the content in one step. Readers find either the old or the new content.
    pub(super) fn replace(self, content: &[u8]) -> Result<()> {
        files::write_atomic(&self.path, content)
    }
}

/// Returns true if `path` names `file`, and not one that has replaced it.
fn is_at(file: &fs_err::File, path: &Path) -> Result<bool> {
    let opened = file.metadata()?;
    Ok(fs_err::symlink_metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (opened.dev(), opened.ino())))
}
