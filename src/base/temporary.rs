//! Temporary files and directories beside their final name: unique names, and the removal of
//! leftovers of killed processes.
//!
//! A temporary file or directory is called `.NAME.OWNER.NUMBER.tmp`. NAME is the final name. OWNER
//! identifies the process that writes it, on all hosts and for all time
//! ([`Process::file_name_part`]). NUMBER is a counter within that process. While an artefact
//! directory is being replaced, the old one is called `.NAME.OWNER.NUMBER.old`.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::output;
use crate::process::{Process, ProcessStatus};

/// Attempts to find an unused temporary name. More collisions in a row are no accident.
const MAX_NAME_ATTEMPTS: usize = 100;

/// Maximum number of directories that are remembered as checked for leftovers.
const MAX_CHECKED_DIRECTORIES: usize = 1 << 14;

static CURRENT: LazyLock<Process> = LazyLock::new(Process::current);

/// The parts of a temporary name.
#[derive(Debug)]
struct TemporaryName<'a> {
    final_name: &'a str,
    owner: Process,
    is_old: bool,
}

impl TemporaryName<'_> {
    fn parse(name: &str) -> Option<TemporaryName<'_>> {
        let (rest, suffix) = name.strip_prefix('.')?.rsplit_once('.')?;
        let is_old = match suffix {
            "tmp" => false,
            "old" => true,
            _ => return None,
        };
        let (rest, number) = rest.rsplit_once('.')?;
        number.parse::<u64>().ok()?;
        let (final_name, owner) = rest.rsplit_once('.')?;
        let owner = Process::from_file_name_part(owner)?;
        (!final_name.is_empty()).then_some(TemporaryName {
            final_name,
            owner,
            is_old,
        })
    }
}

/// Creates a file or directory beside `target` under a temporary name. `make` must fail with
/// [`ErrorKind::AlreadyExists`] if the name is taken, also by a link. Then another name is tried,
/// and the existing entry is left untouched.
pub fn make_beside<T>(
    target: &Path,
    suffix: &str,
    make: impl Fn(&Path) -> std::io::Result<T>,
) -> std::io::Result<(PathBuf, T)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (name, owner) = (
        target.file_name().unwrap_or_default().to_string_lossy(),
        CURRENT.file_name_part(),
    );
    for _ in 0..MAX_NAME_ATTEMPTS {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".{name}.{owner}.{number}.{suffix}"));
        match make(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok((path, made?)),
        }
    }
    let message = format!(
        "cannot find an unused temporary name beside `{}`",
        target.display()
    );
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// Returns the id of another process of this host that is writing a directory with the final name
/// `target`, if there is one.
pub fn other_writer(target: &Path) -> Option<u32> {
    let name = target.file_name()?.to_string_lossy();
    let names = file_names(directory_of(target));
    let own = names
        .iter()
        .filter_map(|name| TemporaryName::parse(name))
        .filter(|found| found.final_name == name);
    let mut owners = own.filter(|found| !found.is_old).map(|found| found.owner);
    let is_alive = |owner: &Process| {
        let status = owner.status_seen_from(&CURRENT);
        matches!(status, ProcessStatus::Running | ProcessStatus::Stopped)
    };
    owners
        .find(|owner| owner.pid != CURRENT.pid && is_alive(owner))
        .map(|owner| owner.pid)
}

/// Removes the leftovers of killed processes from the directory `dir`: entries that have exactly
/// the form of a temporary name, and whose process ran on this host and has ended. A process checks
/// each directory once. Links are not followed.
pub fn remove_leftovers(dir: &Path) {
    static KNOWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        // Bound the memory: after this, directories are checked again.
        if known.len() >= MAX_CHECKED_DIRECTORIES {
            known.clear();
        }
        if !known.insert(dir.to_owned()) {
            return;
        }
    }

    for name in file_names(dir) {
        let Some(found) = TemporaryName::parse(&name) else {
            continue;
        };
        if found.owner.status_seen_from(&CURRENT) != ProcessStatus::Gone {
            continue;
        }
        // Another call may have removed it first, and leftovers of another user cannot be removed.
        match remove_leftover(dir, &name, &found) {
            Ok(true) => output::note(&format!(
                "removed `{}`, a leftover of a killed process",
                dir.join(&name).display()
            )),
            Ok(false) => {}
            Err(error) => tracing::info!("cannot remove `{}`: {error}", dir.join(&name).display()),
        }
    }
}

/// Removes or restores one leftover; returns true if it was removed.
fn remove_leftover(dir: &Path, name: &str, found: &TemporaryName<'_>) -> std::io::Result<bool> {
    let path = dir.join(name);
    let kind = fs_err::symlink_metadata(&path)?.file_type();

    // The process was killed between two renames: the old directory is the only one, so restore it.
    let target = dir.join(found.final_name);
    if found.is_old && fs_err::symlink_metadata(&target).is_err() {
        fs_err::rename(&path, &target)?;
        return Ok(false);
    }

    if kind.is_dir() {
        // The standard library does not follow links here, even if one replaces the directory
        // meanwhile.
        fs_err::remove_dir_all(&path)?;
    } else if kind.is_file() {
        fs_err::remove_file(&path)?;
    }
    Ok(kind.is_dir() || kind.is_file())
}

fn file_names(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Returns the directory that contains `path`.
pub fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns the file name part of a process of this host that has ended.
    fn gone() -> String {
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("it starts");
        let pid = child.id();
        child.wait().expect("it ended");
        let current = CURRENT.file_name_part();
        let (_, rest) = current.split_once('-').expect("several parts");
        format!("{pid}-{rest}")
    }

    #[test]
    fn only_leftovers_of_ended_processes_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        let (gone, alive) = (gone(), CURRENT.file_name_part());
        let elsewhere = format!("{}{}", &gone[..gone.len() - 12], "0123456789ab");

        let directory = format!(".out.{gone}.3.tmp");
        fs_err::create_dir_all(at(&directory).join("deep/down")).expect("made");
        fs_err::write(at("precious"), "x").expect("written");
        symlink(at("precious"), at(&directory).join("deep/link")).expect("linked");
        let file = format!(".a.safetensors.{gone}.0.tmp");
        fs_err::write(at(&file), "half").expect("written");
        let kept = [
            format!(".out.{alive}.7.tmp"),
            format!(".out.{elsewhere}.7.tmp"),
            ".out.4711.tmp".to_owned(),
            format!("out.{gone}.7.tmp"),
            format!(".out.{gone}.tmp"),
            format!(".out.{gone}.7.tmp2"),
            format!("..{gone}.7.tmp"),
        ];
        kept.iter()
            .for_each(|name| fs_err::write(at(name), "x").expect("written"));
        let link = format!(".out.{gone}.9.tmp");
        symlink(at("precious"), at(&link)).expect("linked");
        let old = format!(".lost.{gone}.1.old");
        fs_err::create_dir(at(&old)).expect("made");

        remove_leftovers(dir.path());
        let mut expected: Vec<&str> = kept.iter().map(String::as_str).collect();
        expected.extend(["precious", &link, "lost"]);
        expected.sort_unstable();
        let mut found = file_names(dir.path());
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(fs_err::read(at("precious")).expect("read"), b"x");

        // The same process does not check a directory again.
        fs_err::write(at(&file), "half").expect("written");
        remove_leftovers(dir.path());
        assert!(at(&file).exists());
    }

    #[test]
    fn taken_temporary_names_are_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        let victim = dir.path().join("victim");
        fs_err::write(&victim, "precious").expect("written");
        let tries = std::cell::Cell::new(0);
        let (path, _) = make_beside(&dir.path().join("a"), "tmp", |path| {
            tries.set(tries.get() + 1);
            if tries.get() < 3 {
                // An attacker who guesses the name creates a link first.
                symlink(&victim, path)?;
            }
            fs_err::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
        })
        .expect("made");
        assert_eq!(
            (tries.get(), fs_err::read(&victim).expect("read")),
            (3, b"precious".to_vec())
        );
        assert!(fs_err::symlink_metadata(&path).expect("there").is_file());
        let taken = |_: &Path| Err::<(), _>(Error::from(ErrorKind::AlreadyExists));
        let error = make_beside(&dir.path().join("a"), "tmp", taken).expect_err("no name is free");
        assert!(
            error
                .to_string()
                .contains("cannot find an unused temporary name"),
            "{error}"
        );
    }
}
