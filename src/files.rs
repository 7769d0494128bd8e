//! Files that survive: whole or absent, never half. One way to write a file, one way to replace a directory.

use std::fs::TryLockError;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, renameat_with, statvfs};
use rustix::io::Errno;
use rustix::process::umask;

use crate::error::hinted;
use crate::temporary::{directory_of, make_beside, other_writer, remove_leftovers};

/// Who may read what the program writes: `private`, the default, for its user alone, or `shared`, as the umask says.
pub const MODE_VARIABLE: &str = "POOLCAST_FILE_MODE";

/// Sees to it that files and directories of this process are made for its user alone, with modes 0600 and 0700, unless
/// [`MODE_VARIABLE`] says otherwise. To be called before there is a second thread: the umask is that of the process.
///
/// # Errors
/// Fails for a word that means nothing here.
pub fn settle_modes() -> Result<()> {
    let wanted = std::env::var_os(MODE_VARIABLE).unwrap_or_default();
    match wanted.to_str() {
        Some("" | "private") => {
            let before = umask(Mode::RWXG | Mode::RWXO);
            umask(before | Mode::RWXG | Mode::RWXO);
        }
        Some("shared") => {}
        _ => bail!(hinted(
            format!(
                "`{MODE_VARIABLE}` must be `private` or `shared`, got `{}`",
                wanted.to_string_lossy()
            ),
            "`private` makes files for their user alone, `shared` lets the umask decide"
        )),
    }
    Ok(())
}

/// Writes `bytes` to `path` so that a reader, a crash or a power loss sees the old file or the new one whole.
///
/// The bytes go to a temporary file beside the target, are synced, and take the target's name by rename; then the
/// directory is synced. The mode is what the umask leaves of 0666: see [`settle_modes`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_parts(path, std::iter::once(bytes))
}

/// As [`write_atomic`], of `parts` one after another.
pub fn write_parts<'a>(path: &Path, mut parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
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
pub(crate) fn create_new(path: &Path) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
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
        fs_err::create_dir_all(directory_of(path))?;
        remove_leftovers(directory_of(path));
        let (temporary, file) = make_beside(path, "tmp", create_new)?;
        Ok(Growing {
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
    /// Whether something stood at the final name when this began.
    replaces: bool,
    committed: bool,
}

impl Staging {
    /// Prepares to write the directory `target`.
    ///
    /// # Errors
    /// Fails when `target` exists and `replace` is false, or when it is not a directory with a `manifest.json`:
    /// nothing but our own artefacts is ever replaced. Fails, as something that passes, when another process of this host is
    /// writing `target`.
    pub fn new(target: &Path, replace: bool) -> Result<Staging> {
        let (replaces, place) = (is_occupied(target)?, target.display());
        if replaces {
            ensure!(
                replace,
                hinted(
                    format!("`{place}` exists already"),
                    "name another directory; `--help` says how one is replaced"
                )
            );
            ensure!(
                target.join("manifest.json").is_file(),
                hinted(
                    format!("`{place}` holds no manifest.json, so it is not replaced"),
                    "name another directory"
                )
            );
        }
        fs_err::create_dir_all(directory_of(target))?;
        remove_leftovers(directory_of(target));
        if let Some(pid) = other_writer(target) {
            let message = format!("another call, process {pid}, is writing `{place}`");
            let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
            return Err(busy.context(hinted(
                message,
                "wait until it is done, or name another directory",
            )));
        }
        let (temporary, ()) = make_beside(target, "tmp", |path| fs_err::create_dir(path))?;
        Ok(Staging {
            temporary,
            target: target.to_owned(),
            replaces,
            committed: false,
        })
    }

    /// The directory to write into.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the directory its final name; an earlier one is removed once the new one stands.
    ///
    /// # Errors
    /// Fails when nothing stood there when this began, and now something does: of several calls that write one new
    /// directory the first counts.
    pub fn commit(mut self) -> Result<()> {
        sync_directory(&self.temporary)?;
        let replaced = if self.replaces {
            self.exchange()?
        } else {
            self.take_new_name().map(|()| None)?
        };
        self.committed = true;
        if let Some(old) = replaced {
            remove([old])?;
        }
        sync_directory(directory_of(&self.target))
    }

    fn take_new_name(&self) -> Result<()> {
        // An empty directory is replaced, any other stays.
        match fs_err::rename(&self.temporary, &self.target) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) =>
            {
                bail!(hinted(
                    format!(
                        "another call has written `{}` meanwhile; this one leaves nothing",
                        self.target.display()
                    ),
                    "name another directory"
                ))
            }
            renamed => Ok(renamed?),
        }
    }

    /// Puts the new directory in the place of the old one; returns where the old one is then.
    fn exchange(&self) -> Result<Option<PathBuf>> {
        match renameat_with(
            CWD,
            &self.temporary,
            CWD,
            &self.target,
            RenameFlags::EXCHANGE,
        ) {
            Ok(()) => Ok(Some(self.temporary.clone())),
            Err(Errno::NOENT) => self.take_new_name().map(|()| None),
            // Not every file system can, NFS for one.
            Err(_) => {
                let (old, ()) = make_beside(&self.target, "old", |path| {
                    fs_err::rename(&self.target, path)
                })?;
                fs_err::rename(&self.temporary, &self.target)?;
                Ok(Some(old))
            }
        }
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
        hinted(
            format!("`{}` is a file, not a directory", target.display()),
            "name another directory"
        )
    );
    Ok(fs_err::read_dir(target)?.next().is_some())
}

/// Opens what another may have put there: a regular file of at most `most_bytes` bytes, and neither a link, a pipe, a device
/// nor a directory. Opening never waits.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidData`] for anything else.
pub fn open_regular(path: &Path, most_bytes: u64) -> std::io::Result<fs_err::File> {
    open_checked(path, most_bytes, false)
}

/// As [`open_regular`], but through links, too: users keep artefacts where they want them.
///
/// # Errors
/// Those of [`open_regular`].
pub fn open_artefact(path: &Path, most_bytes: u64) -> std::io::Result<fs_err::File> {
    open_checked(path, most_bytes, true)
}

fn open_checked(
    path: &Path,
    most_bytes: u64,
    follows_links: bool,
) -> std::io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let refused = |why: String| {
        Error::new(
            ErrorKind::InvalidData,
            format!("`{}` {why}", path.display()),
        )
    };
    let check = |found: std::fs::Metadata| match found.len() {
        _ if !found.is_file() => Err(refused("is no regular file".to_owned())),
        bytes if bytes > most_bytes => Err(refused(format!(
            "has {bytes} bytes, and {most_bytes} are the most"
        ))),
        _ => Ok(()),
    };
    // A device is not even opened, as that can have effects. What is missing is said when it is opened.
    let found = if follows_links {
        fs_err::metadata(path)
    } else {
        fs_err::symlink_metadata(path)
    };
    found.map_or(Ok(()), check)?;

    // What is opened may be another file than what was looked at.
    let links = if follows_links {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let flags = (links | OFlags::NONBLOCK | OFlags::NOCTTY)
        .bits()
        .cast_signed();
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads what [`open_regular`] opens.
///
/// # Errors
/// Those of [`open_regular`]; a file that grows beyond `most_bytes` meanwhile is refused, too.
pub fn read_regular(path: &Path, most_bytes: u64) -> std::io::Result<Vec<u8>> {
    read_bounded(path, open_regular(path, most_bytes)?, most_bytes)
}

/// Reads what [`open_artefact`] opens.
///
/// # Errors
/// Those of [`read_regular`].
pub fn read_artefact(path: &Path, most_bytes: u64) -> std::io::Result<Vec<u8>> {
    read_bounded(path, open_artefact(path, most_bytes)?, most_bytes)
}

fn read_bounded(path: &Path, file: fs_err::File, most_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("`{}` grows", path.display()),
        ));
    }
    Ok(bytes)
}

/// Opens a file to add to it, which is made if it is missing. A link is not followed.
pub fn open_to_append(path: &Path) -> std::io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    fs_err::OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path)
}

/// Keeps other calls from writing into the directory `dir` until what it returns is dropped. Where the file system has no
/// locks, as NFS has none for directories, nothing is locked.
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

/// A directory that no other call writes to while this is there. If nothing was written, the directory is removed.
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

/// Checks that `bytes` more fit where the directory `dir` is, or is to be made.
///
/// # Errors
/// Fails, as something that passes, where they do not.
pub fn check_space(dir: &Path, bytes: u64) -> Result<()> {
    let parents = dir.ancestors().map(|parent| {
        if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        }
    });
    let Some(place) = parents.into_iter().find(|parent| parent.exists()) else {
        return Ok(());
    };
    let Ok(found) = statvfs(place) else {
        return Ok(());
    };
    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    if bytes <= free_bytes {
        return Ok(());
    }
    let message = format!(
        "`{}` would have {}, and {} are free there",
        dir.display(),
        indicatif::DecimalBytes(bytes),
        indicatif::DecimalBytes(free_bytes)
    );
    let full = anyhow::Error::from(Error::from(ErrorKind::StorageFull));
    Err(full.context(hinted(
        message,
        "free some space, or name a directory on another file system",
    )))
}

/// Removes those of `paths` that are there: files, and directories with all that is in them.
pub fn remove(paths: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    for path in paths {
        match fs_err::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs_err::remove_dir_all(path)?,
            Ok(_) => fs_err::remove_file(path)?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// Makes the names in a directory last through a power loss.
pub fn sync_directory(path: &Path) -> Result<()> {
    fs_err::File::open(path)?
        .sync_all()
        .with_context(|| format!("cannot sync directory `{}`", path.display()))
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

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("small"), "abc").expect("written");
        assert_eq!(read_regular(&at("small"), 3).expect("read"), b"abc");
        fs_err::File::create(at("huge"))
            .expect("made")
            .set_len(1 << 40)
            .expect("sparse");
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status()
            .expect("mkfifo runs");
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", at("device")).expect("linked");
        std::os::unix::fs::symlink(at("small"), at("link")).expect("linked");
        fs_err::create_dir(at("directory")).expect("made");
        for name in ["huge", "pipe", "device", "link", "directory"] {
            let error = read_regular(&at(name), 3).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(
            read_regular(&at("missing"), 3).expect_err("missing").kind(),
            ErrorKind::NotFound
        );
    }

    #[test]
    fn staging_replaces_only_what_is_ours() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("out");
        drop(Staging::new(&target, false).expect("staged"));
        assert!(!target.exists(), "nothing appears without a commit");
        Staging::new(&target, false)
            .expect("staged")
            .commit()
            .expect("committed");
        fs_err::write(target.join("precious"), "x").expect("written");
        assert!(
            Staging::new(&target, false).is_err(),
            "not replaced unasked"
        );
        assert!(
            Staging::new(&target, true).is_err(),
            "not replaced without a manifest"
        );
        fs_err::write(target.join("manifest.json"), "{}").expect("written");
        Staging::new(&target, true)
            .expect("staged")
            .commit()
            .expect("committed");
        assert!(!target.join("precious").exists());
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            1,
            "no leftovers"
        );
    }

    #[test]
    fn of_two_calls_into_one_new_directory_the_first_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("out");
        let [first, second] = ["first", "second"].map(|name| {
            let staging = Staging::new(&target, true).expect("staged");
            fs_err::write(staging.path().join("manifest.json"), name).expect("written");
            staging
        });
        first.commit().expect("committed");
        let error = second.commit().expect_err("too late").to_string();
        assert!(error.contains("another call has written"), "{error}");
        assert_eq!(
            fs_err::read(target.join("manifest.json")).expect("read"),
            b"first"
        );
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            1,
            "no leftovers"
        );
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("file"), "abc").expect("written");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("linked");
        assert_eq!(read_artefact(&at("link"), 3).expect("read"), b"abc");
        assert!(
            read_artefact(&at("file"), 2)
                .expect_err("too large")
                .to_string()
                .contains("2 are the most")
        );
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .expect("it runs")
                .success()
        );
        std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("linked");
        for name in ["pipe", "zero", "."] {
            let error = open_artefact(&at(name), u64::MAX)
                .expect_err("refused")
                .to_string();
            assert!(error.contains("is no regular file"), "{name}: {error}");
        }
        assert!(
            open_to_append(&at("link")).is_err(),
            "a link is not followed"
        );
        open_to_append(&at("file"))
            .expect("opened")
            .write_all(b"d")
            .expect("written");
        assert_eq!(fs_err::read(at("file")).expect("read"), b"abcd");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("not").join("yet");
        check_space(&target, 1).expect("it fits");
        let error = check_space(&target, 1 << 60).expect_err("an exabyte");
        assert!(error.to_string().contains("would have 1.15 EB"), "{error}");
        assert_eq!(crate::error::exit_code(&error), crate::error::EXIT_RETRY);
    }

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
