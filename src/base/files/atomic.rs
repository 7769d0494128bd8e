//! Atomic file writes: after a crash, a file is complete or absent.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::directory::sync_directory;
use crate::temporary::{directory_of, make_beside, remove_leftovers};

/// Writes `bytes` to `path` atomically: after a crash or a power loss, and for every reader, the
/// file has either the old content or the new one.
///
/// The bytes are written to a temporary file beside the target. That file is fsynced and renamed to
/// the target, and then the directory is fsynced. The mode is 0666 without the bits of the umask:
/// see [`super::apply_file_mode`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic_parts(path, std::iter::once(bytes))
}

/// Like [`write_atomic`], but for the concatenation of `parts`.
pub fn write_atomic_parts<'a>(
    path: &Path,
    mut parts: impl Iterator<Item = &'a [u8]>,
) -> Result<()> {
    let parent = directory_of(path);
    remove_leftovers(parent);
    let (temporary, mut file) = make_beside(path, "tmp", create_new)?;
    let written = parts
        .try_for_each(|part| file.write_all(part))
        .and_then(|()| file.sync_all());
    drop(file);
    if let Err(error) = written.and_then(|()| fs_err::rename(&temporary, path)) {
        // The error of the write is reported, not one of this clean-up.
        let _ = fs_err::remove_file(&temporary);
        return Err(error.into());
    }
    sync_directory(parent)
}

/// Like [`write_atomic`], but with the access mode `mode`, whatever the umask is. Creates the
/// directory of `path` if it is missing.
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let mut target = AtomicFile::new(path)?;
    target.file.write_all(bytes)?;
    let permissions = Permissions::from_mode(mode);
    target.file.file().set_permissions(permissions)?;
    target.commit(path)
}

/// Creates a new file for writing. Fails if `path` exists, also as a link.
pub fn create_new(path: &Path) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
}

/// A file that is written in several steps under a temporary name beside its target, and renamed
/// once it is complete. Dropped without a commit, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    temporary: PathBuf,
    file: fs_err::File,
    committed: bool,
}

impl AtomicFile {
    /// Creates the temporary file beside `path`, and the directory of `path` if it is missing.
    pub fn new(path: &Path) -> Result<AtomicFile> {
        fs_err::create_dir_all(directory_of(path))?;
        remove_leftovers(directory_of(path));
        let (temporary, file) = make_beside(path, "tmp", create_new)?;
        Ok(AtomicFile {
            temporary,
            file,
            committed: false,
        })
    }

    /// The file to write into.
    pub fn file(&mut self) -> &mut fs_err::File {
        &mut self.file
    }

    /// Fsyncs the file and renames it to `target`, which must be in the directory given to
    /// [`AtomicFile::new`].
    pub fn commit(mut self, target: &Path) -> Result<()> {
        self.file.sync_all()?;
        fs_err::rename(&self.temporary, target)?;
        self.committed = true;
        sync_directory(directory_of(target))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs_err::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_does_not_depend_on_the_umask() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("new/a");
        for mode in [0o666, 0o755] {
            write_with_mode(&path, b"text", mode).expect("written");
            let found = fs_err::metadata(&path).expect("there").permissions();
            assert_eq!(found.mode() & 0o777, mode);
        }
    }

    #[test]
    fn failed_write_keeps_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        write_atomic(&path, b"old").expect("written");
        let missing = dir.path().join("missing").join("a");
        assert!(write_atomic(&missing, b"new").is_err());
        // A file cannot replace a directory.
        fs_err::create_dir(dir.path().join("b")).expect("made");
        assert!(write_atomic(&dir.path().join("b"), b"new").is_err());
        assert_eq!(fs_err::read(&path).expect("readable"), b"old");
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            2,
            "no leftovers"
        );
    }
}
