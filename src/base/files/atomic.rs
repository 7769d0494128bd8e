//! Files that survive: whole or absent, never half.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::directory::sync_directory;
use crate::temporary::{directory_of, make_beside, remove_leftovers};

/// Writes `bytes` to `path` so that a reader, a crash or a power loss sees the old file or the new
/// one whole.
///
/// The bytes go to a temporary file beside the target, are synced, and take the target's name by
/// rename; then the directory is synced. The mode is what the umask leaves of 0666: see
/// [`super::apply_file_mode`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic_parts(path, std::iter::once(bytes))
}

/// As [`write_atomic`], of `parts` one after another.
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
        // The failure to report is the write's, not that of tidying up after it.
        let _ = fs_err::remove_file(&temporary);
        return Err(error.into());
    }
    sync_directory(parent)
}

/// Opens a new file to write into; nothing that is there is opened, and no link followed.
pub fn create_new(path: &Path) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
}

/// A file that is written piece by piece beside its target, and takes the target's name once it is
/// whole. Dropped without a commit, it vanishes.
#[derive(Debug)]
pub struct AtomicFile {
    temporary: PathBuf,
    file: fs_err::File,
    committed: bool,
}

impl AtomicFile {
    /// Begins a file beside `path`, whose directory is made if it is missing.
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

    /// Gives the file its final name, in the directory it was begun in.
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
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        write_atomic(&path, b"old").expect("written");
        let missing = dir.path().join("missing").join("a");
        assert!(write_atomic(&missing, b"new").is_err());
        // A directory cannot be replaced by a file.
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
