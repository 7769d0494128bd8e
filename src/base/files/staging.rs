//! Atomic replacement of directories: a directory is written under a temporary name and then
//! renamed.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::directory::{remove_all, sync_directory};
use crate::error::hinted;
use crate::temporary::{directory_of, make_beside, other_writer, remove_leftovers};

/// A new directory under a temporary name. [`StagedDirectory::commit`] renames it to its final
/// name. Dropped without a commit, it is removed, and an existing directory at the final name stays
/// untouched.
#[derive(Debug)]
pub struct StagedDirectory {
    temporary: PathBuf,
    target: PathBuf,
    /// True if a directory with entries existed at the final name when this was created.
    replaces: bool,
    committed: bool,
}

impl StagedDirectory {
    /// Prepares to write the directory `target`.
    ///
    /// # Errors
    /// Fails if `target` has entries and `replace` is false, or if it is not a directory with a
    /// `manifest.json`: only artefacts of this program are ever replaced. Fails with a retryable
    /// error if another process of this host is writing `target`.
    pub fn new(target: &Path, replace: bool) -> Result<StagedDirectory> {
        let (replaces, place) = (is_occupied(target)?, target.display());
        if replaces {
            ensure!(
                replace,
                hinted(
                    format!("`{place}` already exists"),
                    "name another directory, or replace it with the flag that `--help` lists"
                )
            );
            ensure!(
                target.join("manifest.json").is_file(),
                hinted(
                    format!("cannot replace `{place}`: it has no manifest.json"),
                    "name another directory"
                )
            );
        }
        fs_err::create_dir_all(directory_of(target))?;
        remove_leftovers(directory_of(target));
        if let Some(pid) = other_writer(target) {
            let message = format!("process {pid} is writing `{place}`");
            let busy = anyhow::Error::from(Error::from(ErrorKind::ResourceBusy));
            return Err(busy.context(hinted(
                message,
                "wait until it is done, or name another directory",
            )));
        }
        let (temporary, ()) = make_beside(target, "tmp", |path| fs_err::create_dir(path))?;
        Ok(StagedDirectory {
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

    /// Renames the directory to its final name. A replaced directory is removed afterwards.
    ///
    /// # Errors
    /// Fails if the final name was free when this was created and is taken now: of several calls
    /// that write the same new directory, the first one wins.
    pub fn commit(mut self) -> Result<()> {
        // Fsync before the rename: after a crash, no entry may be missing under the final name.
        sync_directory(&self.temporary)?;
        let replaced = if self.replaces {
            self.exchange_directories()?
        } else {
            self.rename_to_target().map(|()| None)?
        };
        self.committed = true;
        if let Some(old) = replaced {
            remove_all([old])?;
        }
        sync_directory(directory_of(&self.target))
    }

    fn rename_to_target(&self) -> Result<()> {
        // A rename replaces an empty directory, but no other one.
        match fs_err::rename(&self.temporary, &self.target) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                ) =>
            {
                bail!(hinted(
                    format!(
                        "another process has written `{}` in the meantime; this result is discarded",
                        self.target.display()
                    ),
                    "name another directory"
                ))
            }
            renamed => Ok(renamed?),
        }
    }

    /// Exchanges the new directory with the old one; returns the new path of the old one. Returns
    /// `None` if the old one has disappeared meanwhile.
    fn exchange_directories(&self) -> Result<Option<PathBuf>> {
        match renameat_with(
            CWD,
            &self.temporary,
            CWD,
            &self.target,
            RenameFlags::EXCHANGE,
        ) {
            Ok(()) => Ok(Some(self.temporary.clone())),
            Err(Errno::NOENT) => self.rename_to_target().map(|()| None),
            // Some file systems, such as NFS, cannot exchange two names, so rename twice.
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

impl Drop for StagedDirectory {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_replaces_only_directories_with_a_manifest() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("out");
        drop(StagedDirectory::new(&target, false).expect("staged"));
        assert!(!target.exists(), "nothing appears without a commit");
        StagedDirectory::new(&target, false)
            .expect("staged")
            .commit()
            .expect("committed");
        fs_err::write(target.join("precious"), "x").expect("written");
        assert!(
            StagedDirectory::new(&target, false).is_err(),
            "not replaced unasked"
        );
        assert!(
            StagedDirectory::new(&target, true).is_err(),
            "not replaced without a manifest"
        );
        fs_err::write(target.join("manifest.json"), "{}").expect("written");
        StagedDirectory::new(&target, true)
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
    fn first_of_two_commits_to_a_new_directory_wins() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("out");
        let [first, second] = ["first", "second"].map(|name| {
            let staging = StagedDirectory::new(&target, true).expect("staged");
            fs_err::write(staging.path().join("manifest.json"), name).expect("written");
            staging
        });
        first.commit().expect("committed");
        let error = second.commit().expect_err("too late").to_string();
        assert!(error.contains("another process has written"), "{error}");
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
}
