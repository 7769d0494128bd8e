//! Packs a directory into a tar file, and unpacks the tar file that a job got as input, in the
//! directory in which the program runs.
//!
//! The unpacked file comes from outside, so it is not trusted. It may contain only regular files and
//! directories under short relative paths. Its unpacked files take no more space than the archive
//! itself.

use std::fs::File;
use std::io::{Read, Seek as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use tar::{Archive, Builder, Entry, HeaderMode};

use crate::error::hinted;
use crate::files::{self, StagedDirectory};

/// Mode of a packed file.
const PACKED_MODE: u32 = 0o644;

/// Maximum number of components of a path in an archive. The paths that jobs share have at most
/// four.
const MAX_COMPONENTS: usize = 16;

/// Packs the files in `dir` into the tar file `file`, which everyone may read. Equal files give
/// equal bytes. An earlier file is replaced in one step.
pub fn pack(dir: &Path, file: &Path) -> Result<()> {
    let mut builder = Builder::new(Vec::new());
    builder.mode(HeaderMode::Deterministic);
    add_directory(&mut builder, dir, Path::new(""))?;
    files::write_with_mode(file, &builder.into_inner()?, PACKED_MODE)
}

/// Adds the entries of `dir` in the order of their names, below the path `below` in the archive.
fn add_directory(builder: &mut Builder<Vec<u8>>, dir: &Path, below: &Path) -> Result<()> {
    let mut entries = fs_err::read_dir(dir)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), below.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            builder.append_dir(&name, &path)?;
            add_directory(builder, &path, &name)?;
        } else {
            builder.append_path_with_name(&path, &name)?;
        }
    }
    Ok(())
}

/// Unpacks the tar file `archive` into the directory `into`. An existing file is not replaced, so a
/// job that restarts in the same directory keeps its files.
///
/// Each directory gets its final name only when all of its files are written.
///
/// # Errors
/// Fails if the archive is truncated, or contains a link, a device, or a path that leads out of
/// `into`. Then no file of the archive is left behind.
pub fn unpack(archive: &Path, into: &Path) -> Result<()> {
    unpack_file(archive, into).with_context(|| {
        hinted(
            format!("cannot unpack `{}`", archive.display()),
            "make it with `condor/node.sh share`: a tar file of regular files and directories",
        )
    })
}

fn unpack_file(archive: &Path, into: &Path) -> Result<()> {
    let mut file = files::open_artefact(archive, u64::MAX)?.into_file();
    let contents = check(&file, into)?;
    if contents.is_already_unpacked {
        return Ok(());
    }
    files::check_space(into, contents.bytes)?;

    // The staging directory is never committed: its entries move to several places in `into`, and
    // the rest is removed when it is dropped.
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let staging = StagedDirectory::new(&into.join(format!("{name}.unpacked")), false)?;
    file.rewind()?;
    extract(&file, staging.path())?;
    move_missing_entries(staging.path(), into)
}

/// Size of an archive's files, and whether they are already unpacked.
struct Contents {
    /// Total size of the files, in bytes.
    bytes: u64,
    /// True if each file and directory already exists in the target directory.
    is_already_unpacked: bool,
}

/// Checks every entry of the archive `file`. Nothing is written before this check succeeds.
fn check(file: &File, into: &Path) -> Result<Contents> {
    let file_bytes = file.metadata()?.len();
    let mut contents = Contents {
        bytes: 0,
        is_already_unpacked: true,
    };
    let mut archive = Archive::new(file);
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let path = checked_entry_path(&entry)?;
        // The data ranges of entries do not overlap, so together the files are no larger than the
        // archive.
        let end = entry.raw_file_position().checked_add(entry.size());
        ensure!(
            end.is_some_and(|end| end <= file_bytes),
            "the archive ends within `{}`",
            path.display()
        );
        contents.bytes += entry.size();
        contents.is_already_unpacked &= is_there(&into.join(path));
    }
    Ok(contents)
}

/// Writes the files of the archive `file` to the new directory `into`.
fn extract(file: &File, into: &Path) -> Result<()> {
    let mut archive = Archive::new(file);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = into.join(checked_entry_path(&entry)?);
        if entry.header().entry_type().is_dir() {
            fs_err::create_dir_all(&path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mut target = files::create_new(&path)?;
        let written_bytes = std::io::copy(&mut entry, &mut target)?;
        ensure!(
            written_bytes == entry.size(),
            "the archive ends within `{}`",
            path.display()
        );
    }
    Ok(())
}

/// Returns the path of an entry. Rejects entries other than regular files and directories. Rejects
/// paths that are absolute, begin with `./`, contain `..`, or have too many components.
fn checked_entry_path(entry: &Entry<'_, impl Read>) -> Result<PathBuf> {
    let named = entry.path()?;
    let kind = entry.header().entry_type();
    ensure!(
        kind.is_file() || kind.is_dir(),
        "entry `{}` is not a file or a directory",
        named.display()
    );
    let mut path = PathBuf::new();
    for component in named.components() {
        match component {
            Component::Normal(name) => path.push(name),
            _ => bail!("entry `{}` is not a plain relative path", named.display()),
        }
    }
    let components = path.components().count();
    ensure!(
        (1..=MAX_COMPONENTS).contains(&components),
        "entry `{}` has {components} path components, expected 1 to {MAX_COMPONENTS}",
        named.display()
    );
    Ok(path)
}

/// Moves the entries of `from` to `to`, except those that already exist there. Directories are
/// merged.
fn move_missing_entries(from: &Path, to: &Path) -> Result<()> {
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if !is_there(&target) {
            fs_err::rename(entry.path(), target)?;
        } else if entry.file_type()?.is_dir() && is_directory(&target) {
            move_missing_entries(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Returns true if `path` exists, also as a dangling link.
fn is_there(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok()
}

/// Returns true if `path` is a directory, and not a link to one.
fn is_directory(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;
    use tar::{EntryType, Header};

    use super::*;

    /// A member of an archive that an attacker may have written.
    #[derive(Debug, Clone)]
    struct Member {
        path: &'static str,
        kind: EntryType,
        link: &'static str,
        text: &'static str,
    }

    fn file(path: &'static str, text: &'static str) -> Member {
        Member {
            path,
            kind: EntryType::Regular,
            link: "",
            text,
        }
    }

    fn link(path: &'static str, kind: EntryType, link: &'static str) -> Member {
        Member {
            path,
            kind,
            link,
            text: "",
        }
    }

    /// Returns the bytes of an archive. Names are written unchecked, unlike those that `Builder`
    /// writes by default.
    fn packed(members: &[Member]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for member in members {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..member.path.len()].copy_from_slice(member.path.as_bytes());
            header.as_old_mut().linkname[..member.link.len()]
                .copy_from_slice(member.link.as_bytes());
            header.set_entry_type(member.kind);
            header.set_size(member.text.len() as u64);
            header.set_mode(0o777);
            header.set_cksum();
            builder
                .append(&header, member.text.as_bytes())
                .expect("packed");
        }
        builder.into_inner().expect("packed")
    }

    #[test]
    fn packed_directories_are_deterministic_and_unpack_to_the_same_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("from/model/answers");
        fs_err::create_dir_all(&below).expect("made");
        fs_err::write(below.join("b"), "b").expect("written");
        fs_err::write(below.join("../a"), "a").expect("written");
        let [first, second] = ["1.tar", "2.tar"].map(|name| dir.path().join(name));
        pack(&dir.path().join("from"), &first).expect("packed");
        fs_err::write(below.join("b"), "b").expect("written again, at another time");
        pack(&dir.path().join("from"), &second).expect("packed");
        let bytes = |path: &Path| fs_err::read(path).expect("read");
        assert_eq!(bytes(&first), bytes(&second));
        let mode = fs_err::metadata(&first)
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, PACKED_MODE);

        let into = dir.path().join("into");
        fs_err::create_dir(&into).expect("made");
        unpack(&first, &into).expect("unpacked");
        assert_eq!(bytes(&into.join("model/a")), b"a");
        assert_eq!(bytes(&into.join("model/answers/b")), b"b");
    }

    /// A directory with an archive, and an empty directory to unpack it into.
    struct Sandbox {
        directory: tempfile::TempDir,
    }

    impl Sandbox {
        fn new(archive: &[u8]) -> Sandbox {
            let directory = tempfile::tempdir().expect("a directory");
            let sandbox = Sandbox { directory };
            fs_err::write(sandbox.archive(), archive).expect("written");
            fs_err::create_dir(sandbox.inside()).expect("made");
            sandbox
        }

        fn archive(&self) -> PathBuf {
            self.directory.path().join("shared.tar")
        }

        fn inside(&self) -> PathBuf {
            self.directory.path().join("inside")
        }

        fn unpack(&self) -> Result<()> {
            unpack(&self.archive(), &self.inside())
        }

        fn read(&self, path: &str) -> String {
            fs_err::read_to_string(self.inside().join(path)).expect("read")
        }

        /// Lists all paths below the directory, with their metadata.
        fn listed(&self) -> Vec<(PathBuf, std::fs::Metadata)> {
            let mut found = Vec::new();
            let mut left = vec![self.directory.path().to_owned()];
            while let Some(directory) = left.pop() {
                for entry in fs_err::read_dir(directory).expect("listed") {
                    let path = entry.expect("an entry").path();
                    let metadata = fs_err::symlink_metadata(&path).expect("there");
                    if metadata.is_dir() {
                        left.push(path.clone());
                    }
                    found.push((path, metadata));
                }
            }
            found
        }
    }

    #[test]
    fn unpacking_creates_missing_files_and_keeps_existing_ones() {
        let directory = link("events/", EntryType::Directory, "");
        let members = [
            directory,
            file("events/manifest.json", "{}"),
            file("events/a/shard", "new"),
        ];
        let sandbox = Sandbox::new(&packed(&members));
        sandbox.unpack().expect("unpacked");
        assert_eq!(sandbox.read("events/a/shard"), "new");
        assert_eq!(
            sandbox.listed().len(),
            6,
            "nothing of the work is left behind"
        );

        fs_err::write(sandbox.inside().join("events/a/shard"), "old").expect("written");
        sandbox.unpack().expect("all is there");
        assert_eq!(sandbox.read("events/a/shard"), "old");
        fs_err::remove_file(sandbox.inside().join("events/manifest.json")).expect("removed");
        sandbox.unpack().expect("the rest is unpacked");
        assert_eq!(sandbox.read("events/manifest.json"), "{}");
        assert_eq!(sandbox.read("events/a/shard"), "old");
    }

    #[test]
    fn hostile_archives_are_rejected_without_leftovers() {
        let hostile = [
            file("../x", "x"),
            file("a/../../x", "x"),
            file("/tmp/poolcast-x", "x"),
            file("./x", "x"),
            file("", "x"),
            file("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", "x"),
            link("x", EntryType::Symlink, "/etc/passwd"),
            link("x", EntryType::Link, "/etc/passwd"),
            link("x", EntryType::Fifo, ""),
            link("x", EntryType::Char, ""),
            link("x", EntryType::Block, ""),
            link("x", EntryType::GNUSparse, ""),
        ];
        for member in hostile {
            let sandbox = Sandbox::new(&packed(&[file("good", "x"), member.clone()]));
            assert!(sandbox.unpack().is_err(), "{member:?}");
            assert_eq!(sandbox.listed().len(), 2, "{member:?}");
        }
        let good = packed(&[file("good", "some text")]);
        for bytes in [520, 400] {
            let sandbox = Sandbox::new(&good[..bytes]);
            assert!(sandbox.unpack().is_err(), "cut at {bytes}");
        }
        let twice = Sandbox::new(&packed(&[file("a", "x"), file("a", "y")]));
        assert!(twice.unpack().is_err(), "one file stands twice");
        assert_eq!(twice.listed().len(), 2);
    }

    #[test]
    fn existing_links_are_not_followed() {
        let sandbox = Sandbox::new(&packed(&[file("events/x", "x")]));
        let elsewhere = sandbox.directory.path().join("elsewhere");
        fs_err::create_dir(&elsewhere).expect("made");
        std::os::unix::fs::symlink(&elsewhere, sandbox.inside().join("events")).expect("linked");
        sandbox.unpack().expect("what is there is left");
        assert!(!elsewhere.join("x").exists());
    }

    fn any_member() -> impl Strategy<Value = Member> {
        let paths = [
            "a", "a/b", "a/b/c", "b", "a/", "..", "../a", "a/../b", "/a", ".", "a//b", "",
        ];
        let kinds = [
            EntryType::Regular,
            EntryType::Regular,
            EntryType::Regular,
            EntryType::Directory,
            EntryType::Symlink,
            EntryType::Link,
            EntryType::GNUSparse,
            EntryType::GNULongName,
            EntryType::XHeader,
        ];
        let texts = [
            "",
            "x",
            "../../a",
            "a\0",
            "12 path=../a\n",
            "15 size=99999\n",
        ];
        (
            prop::sample::select(paths.to_vec()),
            prop::sample::select(kinds.to_vec()),
            prop::sample::select(texts.to_vec()),
        )
            .prop_map(|(path, kind, text)| Member {
                path,
                kind,
                link: "..",
                text,
            })
    }

    proptest! {
        /// Unpacking an arbitrary archive terminates, changes nothing outside the target, creates
        /// no links, and writes no more bytes than the archive has.
        #[test]
        fn unpacking_changes_nothing_outside_the_target(
            members in prop::collection::vec(any_member(), 0..6),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = packed(&members);
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let sandbox = Sandbox::new(&bytes);
            let unpacked = sandbox.unpack();
            let mut file_bytes = 0;
            for (path, metadata) in sandbox.listed() {
                prop_assert!(path.starts_with(sandbox.inside()) || path == sandbox.archive());
                prop_assert!(metadata.is_dir() || metadata.is_file());
                prop_assert!(unpacked.is_ok() || path == sandbox.archive() || path == sandbox.inside());
                if metadata.is_file() && path != sandbox.archive() {
                    file_bytes += metadata.len();
                }
            }
            prop_assert!(file_bytes <= bytes.len() as u64);
        }
    }
}
