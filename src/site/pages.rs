//! The advice of each owner as a file of JSON, for a web page or a help desk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::{escape, files, manifest};

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

/// The page of one owner.
#[derive(Debug)]
pub struct OwnerPage<'a, T> {
    /// Name of the owner, as a log or a queue has it.
    pub owner: &'a str,
    /// The advice on the owner's held jobs.
    pub document: T,
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

    /// Writes the pages of all owners in `pages`, and removes the pages of owners who have no held job
    /// any more. Returns the number of owners whose names cannot be file names.
    pub fn write<T: Serialize>(mut self, pages: &[OwnerPage<'_, T>]) -> Result<usize> {
        let mut owners = BTreeSet::new();
        let is_usable = |owner: &&str| owner_file(&self.dir, owner).is_some();
        let names = pages.iter().map(|page| page.owner).filter(is_usable);
        owners.extend(names.map(str::to_owned));

        // The list grows before the files do, so that every file is in it, even after a crash.
        self.now.owners.extend(owners.iter().cloned());
        self.commit()?;
        for page in pages {
            if let Some(file) = owner_file(&self.dir, page.owner) {
                files::write_atomic(&file, page.text()?.as_bytes())?;
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

impl<T: Serialize> OwnerPage<'_, T> {
    /// The text of the file. It is escaped for a terminal, like the output of `advise --json`.
    fn text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(&self.document)?;
        Ok(format!("{}\n", escape::json(&text)))
    }
}

/// Returns the file of `owner` in `dir`; `None` for a name that cannot safely be a file name. Names
/// come from logs and queues.
fn owner_file(dir: &Path, owner: &str) -> Option<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    let is_safe = (1..=MAX_NAME_BYTES).contains(&owner.len())
        // A program that gets `*.json` must not take a page for an option.
        && !owner.starts_with(['.', '-'])
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
    fn hostile_names_are_rejected() {
        let dir = Path::new("pages");
        assert_eq!(owner_file(dir, "ada"), Some(dir.join("ada.json")));
        for name in [
            "", ".", "..", "../ada", "a/b", ".hidden", "a b", "a\n", "ü", "manifest", "--help",
            "-rf",
        ] {
            assert_eq!(owner_file(dir, name), None, "{name}");
        }
        assert_eq!(owner_file(dir, &"a".repeat(MAX_NAME_BYTES + 1)), None);
    }

    #[test]
    fn pages_of_owners_without_held_jobs_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("pages");
        let write = |owners: &[&str], document: &str| {
            let page = |&owner| OwnerPage { owner, document };
            let pages: Vec<OwnerPage<'_, &str>> = owners.iter().map(page).collect();
            OwnerPages::open(&place).and_then(|open| open.write(&pages))
        };
        let skipped = write(&["ada", "bob", "../eve"], "1").expect("written");
        assert_eq!(skipped, 1);
        assert_eq!(names(&place), ["ada.json", "bob.json", "manifest.json"]);
        fs_err::write(place.join("mine.json"), "{}").expect("written");
        write(&["bob"], "a\u{9b}31m").expect("written");
        assert_eq!(names(&place), ["bob.json", "manifest.json", "mine.json"]);
        assert_eq!(
            fs_err::read_to_string(place.join("bob.json")).expect("read"),
            "\"a\\u009b31m\"\n",
            "nothing raw reaches a terminal"
        );
    }

    #[test]
    fn directory_of_other_files_is_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        fs_err::write(dir.path().join("ada.json"), "{}").expect("written");
        assert!(OwnerPages::open(dir.path()).is_err());
    }
}
