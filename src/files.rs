//! Files that survive: whole or absent, never half. One way to write a file, one way to replace a directory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::error::hinted;

/// Writes `bytes` to `path` so that a reader, a crash or a power loss sees the old file or the new one whole.
///
/// The bytes go to a temporary file beside the target, are synced, and take the target's name by rename; then the
/// directory is synced. The mode is what the umask leaves of 0666.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_parts(path, std::iter::once(bytes))
}

/// As [`write_atomic`], of `parts` one after another.
pub fn write_parts<'a>(path: &Path, mut parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let parent = parent_of(path);
    let temporary = sibling(path, "tmp");
    // What a killed process left behind may bear our name: in a container its number comes again.
    let mut file = fs_err::OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    let written = parts.try_for_each(|part| file.write_all(part)).and_then(|()| file.sync_all());
    drop(file);
    if let Err(error) = written.and_then(|()| fs_err::rename(&temporary, path)) {
        // The failure to report is the write's, not that of tidying up after it.
        let _ = fs_err::remove_file(&temporary);
        return Err(error.into());
    }
    sync_directory(parent)
}

/// A file that is written piece by piece beside its target, and takes the target's name once it is whole.
/// Dropped without a commit, it vanishes.
#[derive(Debug)]
pub struct Growing {
    temporary: PathBuf,
    file: fs_err::File,
    committed: bool,
}

impl Growing {
    /// Begins a file beside `path`, whose directory is made if it is missing.
    pub fn new(path: &Path) -> Result<Growing> {
        fs_err::create_dir_all(parent_of(path))?;
        let temporary = sibling(path, "tmp");
        let file = fs_err::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        Ok(Growing { temporary, file, committed: false })
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
        sync_directory(parent_of(target))
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs_err::remove_file(&self.temporary);
        }
    }
}

/// A new directory under a temporary name that takes its final name only when [`Staging::commit`] is called.
/// Dropped without a commit, it vanishes, and what stood at the final name is untouched.
#[derive(Debug)]
pub struct Staging {
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl Staging {
    /// Prepares to write the directory `target`.
    ///
    /// # Errors
    /// Fails when `target` exists and `replace` is false, or when it is not a directory with a `manifest.json`:
    /// nothing but our own artefacts is ever replaced.
    pub fn new(target: &Path, replace: bool) -> Result<Staging> {
        if is_occupied(target)? {
            let place = target.display();
            ensure!(
                replace,
                hinted(format!("`{place}` exists already"), "name another directory, or add `--overwrite`")
            );
            ensure!(
                target.join("manifest.json").is_file(),
                hinted(format!("`{place}` holds no manifest.json, so it is not replaced"), "name another directory")
            );
        }
        fs_err::create_dir_all(parent_of(target))?;
        let temporary = sibling(target, "tmp");
        fs_err::create_dir(&temporary)?;
        Ok(Staging { temporary, target: target.to_owned(), committed: false })
    }

    /// The directory to write into.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the directory its final name; an earlier one is removed once the new one stands.
    pub fn commit(mut self) -> Result<()> {
        sync_directory(&self.temporary)?;
        let old = sibling(&self.target, "old");
        let replaces = self.target.exists();
        if replaces {
            fs_err::rename(&self.target, &old)?;
        }
        fs_err::rename(&self.temporary, &self.target)?;
        self.committed = true;
        if replaces {
            fs_err::remove_dir_all(&old)?;
        }
        sync_directory(parent_of(&self.target))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs_err::remove_dir_all(&self.temporary);
        }
    }
}

fn is_occupied(target: &Path) -> Result<bool> {
    if !target.exists() {
        return Ok(false);
    }
    ensure!(
        target.is_dir(),
        hinted(format!("`{}` is a file, not a directory", target.display()), "name another directory")
    );
    Ok(fs_err::read_dir(target)?.next().is_some())
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{suffix}", std::process::id()))
}

/// Opens what another may have put there: a regular file of at most `most_bytes` bytes, and neither a link, a pipe, a device
/// nor a directory. Opening never waits.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidData`] for anything else.
pub fn open_regular(path: &Path, most_bytes: u64) -> std::io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let refused = |why: String| std::io::Error::new(ErrorKind::InvalidData, format!("`{}` {why}", path.display()));
    let check = |found: std::fs::Metadata| match found.len() {
        _ if !found.is_file() => Err(refused("is no regular file".to_owned())),
        bytes if bytes > most_bytes => Err(refused(format!("has {bytes} bytes, and {most_bytes} are the most"))),
        _ => Ok(()),
    };
    check(fs_err::symlink_metadata(path)?)?;

    // What is opened may be another file than what was looked at.
    let file = fs_err::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads what [`open_regular`] opens.
///
/// # Errors
/// Those of [`open_regular`]; a file that grows beyond `most_bytes` meanwhile is refused, too.
pub fn read_regular(path: &Path, most_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, most_bytes)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(std::io::Error::new(ErrorKind::InvalidData, format!("`{}` grows", path.display())));
    }
    Ok(bytes)
}

/// Removes those of `paths` that are there: files, and directories with all that is in them.
pub fn remove(paths: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    for path in paths.into_iter().filter(|path| path.exists()) {
        if path.is_dir() { fs_err::remove_dir_all(path)? } else { fs_err::remove_file(path)? }
    }
    Ok(())
}

/// Makes the names in a directory last through a power loss.
pub fn sync_directory(path: &Path) -> Result<()> {
    fs_err::File::open(path)?.sync_all().with_context(|| format!("cannot sync directory `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        write_atomic(&path, b"old").expect("written");
        // A directory in the way of the temporary file makes the write fail.
        fs_err::create_dir(sibling(&path, "tmp")).expect("a directory");
        assert!(write_atomic(&path, b"new").is_err());
        assert_eq!(fs_err::read(&path).expect("readable"), b"old");
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("small"), "abc").expect("written");
        assert_eq!(read_regular(&at("small"), 3).expect("read"), b"abc");
        fs_err::File::create(at("huge")).expect("made").set_len(1 << 40).expect("sparse");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs");
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", at("device")).expect("linked");
        std::os::unix::fs::symlink(at("small"), at("link")).expect("linked");
        fs_err::create_dir(at("directory")).expect("made");
        for name in ["huge", "pipe", "device", "link", "directory"] {
            let error = read_regular(&at(name), 3).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(read_regular(&at("missing"), 3).expect_err("missing").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn staging_replaces_only_what_is_ours() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("out");
        drop(Staging::new(&target, false).expect("staged"));
        assert!(!target.exists(), "nothing appears without a commit");
        Staging::new(&target, false).expect("staged").commit().expect("committed");
        fs_err::write(target.join("precious"), "x").expect("written");
        assert!(Staging::new(&target, false).is_err(), "not replaced unasked");
        assert!(Staging::new(&target, true).is_err(), "not replaced without a manifest");
        fs_err::write(target.join("manifest.json"), "{}").expect("written");
        Staging::new(&target, true).expect("staged").commit().expect("committed");
        assert!(!target.join("precious").exists());
        assert_eq!(fs_err::read_dir(dir.path()).expect("listed").count(), 1, "no leftovers");
    }
}
