//! Looks at a path, without opening it: whether it exists, since when, and who may use it.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Directories of the kernel and of devices, in which nothing is looked at.
const KERNEL_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Maximum length of a path, in bytes, as of the kernel.
const MAX_PATH_BYTES: usize = 4096;

/// Permission of everyone to read, to write, and to enter or execute.
const ALL_READ: u32 = 0o444;
const ALL_WRITE: u32 = 0o222;
const ALL_EXECUTE: u32 = 0o111;

/// The permission bit by which HTCondor's schedd knows a program.
const OWNER_EXECUTES: u32 = 0o100;

/// Result of a look at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PathSight {
    /// The path itself.
    pub(super) target: Sight,
    /// The directory that has it.
    pub(super) parent: Sight,
    /// Room on the file system of the path, or of its directory; `None` if neither exists.
    pub(super) room: Option<DiskRoom>,
    /// True if everyone can see whether the path exists.
    pub(super) is_visible: bool,
}

/// The thing at a path, or the reason why it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sight {
    /// Nothing.
    Missing,
    /// This user may not look.
    Denied,
    /// The path is not looked at: it is not absolute, too long, or of the kernel.
    Refused,
    /// The file system reports this error number.
    Failed(i32),
    /// A file, a directory, or something else.
    Found(FoundNode),
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, a FIFO or a socket.
    Other,
}

/// A file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FoundNode {
    pub(super) kind: NodeKind,
    /// Time of the last change of its content, its permissions or its name, epoch ms.
    pub(super) changed_ms: i64,
    /// The rights of everyone. They leave out whether a user is in a group, so every user has them.
    pub(super) by_all: NodeRights,
    /// The rights of this user.
    pub(super) by_caller: NodeRights,
    /// True if the owner of the file may execute it.
    pub(super) is_program: bool,
}

/// The rights to use a file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeRights {
    pub(super) read: bool,
    pub(super) write: bool,
    /// To execute a file, or to enter a directory.
    pub(super) execute: bool,
}

/// The room on a file system for an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DiskRoom {
    /// Number of the device, which differs between file systems.
    pub(super) device: u64,
    /// Free bytes.
    pub(super) free_bytes: u64,
    /// True if no further file can be created.
    pub(super) lacks_files: bool,
    /// True if the file system is mounted read-only.
    pub(super) is_read_only: bool,
}

impl PathSight {
    /// Looks at `path`. Links are followed, but nothing is opened.
    pub(super) fn look_at(path: &str) -> PathSight {
        let path = Path::new(path);
        let target = Sight::look_at(path);
        let parent = path.parent().map_or(Sight::Refused, Sight::look_at);
        let directory = path.parent().unwrap_or(path);
        let room = match (target, parent) {
            (Sight::Refused, _) => None,
            (Sight::Found(_), _) => DiskRoom::measure(path),
            (_, Sight::Found(_)) => DiskRoom::measure(directory),
            _ => None,
        };
        PathSight {
            target,
            parent,
            room,
            is_visible: target != Sight::Refused && is_visible_to_all(path),
        }
    }
}

impl Sight {
    fn look_at(path: &Path) -> Sight {
        if !is_safe(path) {
            return Sight::Refused;
        }
        match FoundNode::find(path) {
            Ok(Some(node)) => Sight::Found(node),
            Ok(None) => Sight::Refused,
            Err(error) => Sight::from_error(&error),
        }
    }

    fn from_error(error: &io::Error) -> Sight {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Sight::Missing,
            Some(Errno::ACCESS | Errno::PERM) => Sight::Denied,
            Some(errno) => Sight::Failed(errno.raw_os_error()),
            None => Sight::Refused,
        }
    }
}

/// Returns true if `path` is absolute, and not in a directory of the kernel as it is written.
fn is_safe(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let is_valid = bytes.len() < MAX_PATH_BYTES && !bytes.contains(&0);
    path.is_absolute() && is_valid && !is_of_kernel(&without_dots(path))
}

/// Returns `path` with each `..` and the name before it removed.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn is_of_kernel(path: &Path) -> bool {
    KERNEL_DIRECTORIES
        .iter()
        .any(|directory| path.starts_with(directory))
}

impl FoundNode {
    /// Returns what is at `path`; `None` if its links lead to a directory of the kernel.
    fn find(path: &Path) -> io::Result<Option<FoundNode>> {
        let resolved = path.canonicalize()?;
        if is_of_kernel(&resolved) {
            return Ok(None);
        }
        // A link that was changed last makes another file appear.
        let link = path.symlink_metadata()?;
        let node = resolved.metadata()?;
        let kind = match node.file_type() {
            kind if kind.is_file() => NodeKind::File,
            kind if kind.is_dir() => NodeKind::Directory,
            _ => NodeKind::Other,
        };
        let is_reachable = [path, &resolved].into_iter().all(is_reachable_by_all);
        let allows_all = |bits: u32| is_reachable && node.mode() & bits == bits;
        let allows_caller = |right: Access| access(&resolved, right).is_ok();
        Ok(Some(FoundNode {
            kind,
            changed_ms: changed_ms(&node).max(changed_ms(&link)),
            by_all: NodeRights {
                read: allows_all(ALL_READ),
                write: allows_all(ALL_WRITE),
                execute: allows_all(ALL_EXECUTE),
            },
            by_caller: NodeRights {
                read: allows_caller(Access::READ_OK),
                write: allows_caller(Access::WRITE_OK),
                execute: allows_caller(Access::EXEC_OK),
            },
            is_program: node.mode() & OWNER_EXECUTES != 0,
        }))
    }
}

/// Returns the time of the last change of the content or of the inode, epoch ms.
fn changed_ms(node: &std::fs::Metadata) -> i64 {
    let ms = |seconds: i64, nanoseconds: i64| {
        seconds
            .saturating_mul(1000)
            .saturating_add(nanoseconds / 1_000_000)
    };
    let content_ms = ms(node.mtime(), node.mtime_nsec());
    content_ms.max(ms(node.ctime(), node.ctime_nsec()))
}

/// Returns true if everyone may enter all directories above `path`.
fn is_reachable_by_all(path: &Path) -> bool {
    path.ancestors().skip(1).all(may_all_enter)
}

/// Returns true if everyone can see whether there is something at `path`: all may enter the directories
/// above it, also above what its links lead to.
fn is_visible_to_all(path: &Path) -> bool {
    let Some(existing) = (path.ancestors()).find(|part| part.symlink_metadata().is_ok()) else {
        return false;
    };
    // A link that leads nowhere says what is not there, in whatever directory.
    let Ok(resolved) = existing.canonicalize() else {
        return false;
    };
    let is_within = existing == path || may_all_enter(&resolved);
    is_within && [existing, &resolved].into_iter().all(is_reachable_by_all)
}

fn may_all_enter(directory: &Path) -> bool {
    let node = directory.metadata();
    node.is_ok_and(|node| node.mode() & ALL_EXECUTE == ALL_EXECUTE)
}

impl DiskRoom {
    /// Measures the room on the file system of `path`; `None` if it cannot be queried.
    fn measure(path: &Path) -> Option<DiskRoom> {
        let resolved: PathBuf = path.canonicalize().ok()?;
        let room = statvfs(&resolved).ok()?;
        Some(DiskRoom {
            device: resolved.metadata().ok()?.dev(),
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
            // File systems without a table of files report none at all.
            lacks_files: room.f_files > 0 && room.f_favail == 0,
            is_read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn target(path: &Path) -> Sight {
        PathSight::look_at(path.to_str().expect("text")).target
    }

    fn found(path: &Path) -> FoundNode {
        match target(path) {
            Sight::Found(node) => node,
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    #[test]
    fn files_directories_and_nothing_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a.dat");
        assert_eq!(target(&file), Sight::Missing);
        fs_err::write(&file, "data").expect("written");
        let before_ms = jiff::Timestamp::now().as_millisecond();
        let node = found(&file);
        assert_eq!(node.kind, NodeKind::File);
        assert!((before_ms - 60_000..=before_ms + 1000).contains(&node.changed_ms));
        assert!(node.by_caller.read && !node.is_program);
        assert_eq!(found(dir.path()).kind, NodeKind::Directory);
        assert_eq!(target(&file.join("below")), Sight::Missing);

        let sight = PathSight::look_at(dir.path().join("new").to_str().expect("text"));
        assert!(matches!(sight.parent, Sight::Found(_)));
        assert!(sight.room.is_some_and(|room| room.free_bytes > 0));
    }

    #[test]
    fn renamed_file_is_changed_when_it_gets_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let file = fs_err::File::create(&from).expect("created");
        let old = std::time::SystemTime::UNIX_EPOCH;
        file.file().set_modified(old).expect("an old time");
        fs_err::rename(&from, &to).expect("renamed");
        assert!(found(&to).changed_ms > 1_000_000_000_000);

        let link = dir.path().join("link");
        symlink(&to, &link).expect("a link");
        assert_eq!(found(&link).kind, NodeKind::File);
        symlink("nowhere", dir.path().join("dangling")).expect("a link");
        assert_eq!(target(&dir.path().join("dangling")), Sight::Missing);
        symlink("loop", dir.path().join("loop")).expect("a link");
        assert!(matches!(target(&dir.path().join("loop")), Sight::Failed(_)));
    }

    #[test]
    fn rights_of_everyone_need_every_directory_above() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("a.dat");
        fs_err::write(&file, "data").expect("written");
        let set_mode = |path: &Path, mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(path, permissions).expect("permissions");
        };
        set_mode(&file, 0o644);
        set_mode(dir.path(), 0o755);
        let shared = found(&file).by_all.read;
        assert_eq!(shared, is_reachable_by_all(dir.path()));
        set_mode(dir.path(), 0o700);
        assert!(!found(&file).by_all.read, "the directory is private");
        set_mode(dir.path(), 0o755);
        // A member of the group may not read it, though others may.
        set_mode(&file, 0o604);
        assert!(!found(&file).by_all.read);
        set_mode(&file, 0o755);
        assert!(found(&file).is_program);
    }

    #[test]
    fn what_is_in_a_private_directory_is_not_visible_to_all() {
        let dir = tempfile::tempdir().expect("a directory");
        let set_mode = |path: &Path, mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(path, permissions).expect("permissions");
        };
        set_mode(dir.path(), 0o755);
        let is_open = is_reachable_by_all(&dir.path().join("a"));
        let private = dir.path().join("private");
        fs_err::create_dir(&private).expect("made");
        fs_err::write(private.join("there"), "data").expect("written");
        for (link, to) in [("link", "private/there"), ("nowhere", "private/gone")] {
            symlink(to, dir.path().join(link)).expect("a link");
        }
        symlink("private", dir.path().join("folder")).expect("a link");
        let visible = |name: &str| is_visible_to_all(&dir.path().join(name));
        let names = [
            "private/there",
            "private/gone",
            "link",
            "folder/there",
            "folder/gone",
            "nowhere",
        ];
        set_mode(&private, 0o755);
        let seen = names.map(visible);
        assert_eq!(seen, [is_open, is_open, is_open, is_open, is_open, false]);
        set_mode(&private, 0o700);
        assert_eq!(names.map(visible), [false; 6]);
        assert_eq!(visible("gone/below"), is_open);
    }

    #[test]
    fn devices_fifos_and_directories_of_the_kernel_are_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert_eq!(found(&fifo).kind, NodeKind::Other);

        let device = dir.path().join("device");
        symlink("/dev/null", &device).expect("a link");
        assert_eq!(target(&device), Sight::Refused);
        let long = format!("/{}", "x".repeat(MAX_PATH_BYTES));
        for path in [
            "/dev/null",
            "/proc/self/environ",
            "/sys/kernel",
            "/tmp/../proc/self",
            "relative",
            "",
            "/a\0b",
            &long,
        ] {
            assert_eq!(PathSight::look_at(path).target, Sight::Refused, "{path}");
        }
    }
}
