//! The advice of each owner as a file of JSON, for a web page or a help desk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;

/// Format in the manifest of a directory of pages.
const PAGES: ArtefactFormat = ArtefactFormat {
    name: "pages",
    version: 1,
    rebuild: "poolcast advise RUN --pages DIR",
};

/// Maximum length of an owner's name in a file name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Body of the manifest: the owners whose pages this program has written. It removes no other file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PageList {
    owners: BTreeSet<String>,
}

/// A directory with one page for each owner of held jobs, locked against other calls.
#[derive(Debug)]
pub struct OwnerPages {
    dir: PathBuf,
    before: PageList,
    now: PageList,
    _lock: fs_err::File,
}

impl OwnerPages {
    /// Opens the directory `dir`, which is created if it is missing.
    ///
    /// # Errors
    /// Fails if it has files but no manifest, and if another call writes to it.
    pub fn open(dir: &Path) -> Result<OwnerPages> {
        fs_err::create_dir_all(dir)?;
        let lock = files::lock_directory(dir)?;
        let before = if dir.join(manifest::FILE).exists() {
            manifest::read::<PageList>(dir, PAGES)?.body
        } else {
            ensure!(
                fs_err::read_dir(dir)?.next().is_none(),
                hinted(
                    format!("`{}` has other files", dir.display()),
                    "name an empty or a new directory for the pages"
                )
            );
            PageList::default()
        };
        let pages = OwnerPages {
            dir: dir.to_owned(),
            now: before.clone(),
            before,
            _lock: lock,
        };
        Ok(pages)
    }

    /// Writes the pages of all owners in `pages`, and removes those of owners who have no held job
    /// any more. Returns the number of owners whose names cannot be file names.
    pub fn write<T: Serialize>(mut self, pages: &[(&str, T)]) -> Result<usize> {
        let mut owners = BTreeSet::new();
        let is_usable = |owner: &&str| owner_file(&self.dir, owner).is_some();
        let names = pages.iter().map(|(owner, _)| *owner).filter(is_usable);
        owners.extend(names.map(str::to_owned));

        // The list grows before the files do, so that every file is in it, even after a crash.
        self.now.owners.extend(owners.iter().cloned());
        self.commit()?;
        for (owner, document) in pages {
            if let Some(file) = owner_file(&self.dir, owner) {
                manifest::write_json(&file, document)?;
            }
        }
        let gone = self.before.owners.difference(&owners);
        files::remove_all(gone.filter_map(|owner| owner_file(&self.dir, owner)))?;
        let skipped = pages.len() - owners.len();
        self.now.owners = owners;
        self.commit()?;
        Ok(skipped)
    }

    fn commit(&self) -> Result<()> {
        manifest::write(&self.dir, PAGES, &manifest::key(&self.now)?, &self.now)
    }
}

/// Returns the file of `owner` in `dir`; `None` for a name that cannot safely be a file name. Names
/// come from logs and queues.
fn owner_file(dir: &Path, owner: &str) -> Option<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    let is_safe = (1..=MAX_NAME_BYTES).contains(&owner.len())
        && !owner.starts_with('.')
        && owner != "manifest"
        && owner.bytes().all(is_plain);
    is_safe.then(|| dir.join(format!("{owner}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(dir).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn hostile_names_are_no_file_names() {
        let dir = Path::new("pages");
        assert_eq!(owner_file(dir, "ada"), Some(dir.join("ada.json")));
        for name in [
            "", ".", "..", "../ada", "a/b", ".hidden", "a b", "a\n", "ü", "manifest",
        ] {
            assert_eq!(owner_file(dir, name), None, "{name}");
        }
        assert_eq!(owner_file(dir, &"a".repeat(MAX_NAME_BYTES + 1)), None);
    }

    #[test]
    fn pages_of_owners_without_held_jobs_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("pages");
        let write = |owners: &[(&str, u32)]| OwnerPages::open(&place).and_then(|p| p.write(owners));
        assert_eq!(
            write(&[("ada", 1), ("bob", 2), ("../eve", 3)]).expect("written"),
            1
        );
        assert_eq!(names(&place), ["ada.json", "bob.json", "manifest.json"]);
        fs_err::write(place.join("mine.json"), "{}").expect("written");
        write(&[("bob", 4)]).expect("written");
        assert_eq!(names(&place), ["bob.json", "manifest.json", "mine.json"]);
        assert_eq!(
            fs_err::read_to_string(place.join("bob.json")).expect("read"),
            "4\n"
        );
    }

    #[test]
    fn directory_of_other_files_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs_err::write(dir.path().join("ada.json"), "{}").expect("written");
        assert!(OwnerPages::open(dir.path()).is_err());
    }
}
