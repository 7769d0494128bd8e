//! A tar file that a job was given → its files, where the program runs.
//!
//! The file comes from outside, so nothing in it is believed: it may hold regular files and
//! directories under short relative paths, and nothing else. Its files take no more space than it
//! has itself.

use std::fs::File;
use std::io::{Read, Seek as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use tar::{Archive, Entry};

use crate::error::hinted;
use crate::files::{self, StagedDirectory};

/// A path in an archive has no more components than this. What a job shares has four at most.
const MOST_COMPONENTS: usize = 16;

/// Unpacks the tar file `archive` into the directory `into`. A file that is there already stays as
/// it is, so that a job that begins again in the same directory finds its files.
///
/// Each directory takes its name only when all of its files are there.
///
/// # Errors
/// Fails for an archive that is cut short, or that holds a link, a device, or a path that leads out
/// of `into`. Then nothing is left of it.
pub fn unpack(archive: &Path, into: &Path) -> Result<()> {
    unpack_file(archive, into).with_context(|| {
        hinted(
            format!("cannot unpack `{}`", archive.display()),
            "it is to be a tar file of plain files and directories, as `condor/node.sh share` packs it",
        )
    })
}

fn unpack_file(archive: &Path, into: &Path) -> Result<()> {
    let mut file = files::open_artefact(archive, u64::MAX)?.into_file();
    let contents = check(&file, into)?;
    if contents.are_all_there {
        return Ok(());
    }
    files::check_space(into, contents.bytes)?;

    // It is never committed: what is in it goes to several places, and the rest vanishes with it.
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let staging = StagedDirectory::new(&into.join(format!("{name}.unpacked")), false)?;
    file.rewind()?;
    extract(&file, staging.path())?;
    take_names(staging.path(), into)
}

/// What an archive holds.
struct Contents {
    /// The size of its files.
    bytes: u64,
    /// Whether each of its files and directories stands where it is to be unpacked.
    are_all_there: bool,
}

/// Checks every entry of the archive `file` before anything is written.
fn check(file: &File, into: &Path) -> Result<Contents> {
    let file_bytes = file.metadata()?.len();
    let mut contents = Contents {
        bytes: 0,
        are_all_there: true,
    };
    let mut archive = Archive::new(file);
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let path = plain_path(&entry)?;
        // The data of entries do not overlap, so all of them together are no larger than the
        // archive.
        let end = entry.raw_file_position().checked_add(entry.size());
        ensure!(
            end.is_some_and(|end| end <= file_bytes),
            "it ends within `{}`",
            path.display()
        );
        contents.bytes += entry.size();
        contents.are_all_there &= is_there(&into.join(path));
    }
    Ok(contents)
}

/// Writes the files of the archive `file` to the new directory `into`.
fn extract(file: &File, into: &Path) -> Result<()> {
    let mut archive = Archive::new(file);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = into.join(plain_path(&entry)?);
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
            "it ends within `{}`",
            path.display()
        );
    }
    Ok(())
}

/// The path of a regular file or a directory, which leads down and nowhere else.
fn plain_path(entry: &Entry<'_, impl Read>) -> Result<PathBuf> {
    let named = entry.path()?;
    let kind = entry.header().entry_type();
    ensure!(
        kind.is_file() || kind.is_dir(),
        "`{}` in it is neither a file nor a directory",
        named.display()
    );
    let mut path = PathBuf::new();
    for component in named.components() {
        match component {
            Component::Normal(name) => path.push(name),
            _ => bail!("`{}` in it leads elsewhere", named.display()),
        }
    }
    let components = path.components().count();
    ensure!(
        (1..=MOST_COMPONENTS).contains(&components),
        "`{}` in it has {components} components, and {MOST_COMPONENTS} are the most",
        named.display()
    );
    Ok(path)
}

/// Moves what is in `from` to `to`, but for what is there already.
fn take_names(from: &Path, to: &Path) -> Result<()> {
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if !is_there(&target) {
            fs_err::rename(entry.path(), target)?;
        } else if entry.file_type()?.is_dir() && is_directory(&target) {
            take_names(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Whether anything has this name, also a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok()
}

/// Whether `path` is a directory, and no link to one.
fn is_directory(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tar::{Builder, EntryType, Header};

    use super::*;

    /// A member of an archive, as somebody who means harm would write it.
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

    /// The bytes of an archive; names are written as they are, unlike `Builder` does of itself.
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

    /// A directory with an archive in it, and an empty directory to unpack it in.
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

        /// What stands below a directory: paths, and the sizes of files.
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
    fn files_of_an_archive_stand_where_it_says_and_those_that_were_there_stay() {
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
    fn an_archive_that_holds_anything_else_is_refused_whole() {
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
    fn no_link_that_is_there_is_followed() {
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
        /// Whatever an archive holds, unpacking it ends, touches nothing else, makes no links, and
        /// writes no more than it has.
        #[test]
        fn no_archive_does_harm(
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
