//! Directories: checking free space, linking files into them, removing, and fsyncing.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::statvfs;

use crate::error::hinted;

/// Checks that `bytes` more fit on the file system of the directory `dir`, which need not exist
/// yet.
///
/// # Errors
/// Fails with a retryable error ([`ErrorKind::StorageFull`]) if they do not fit.
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
        "`{}` needs {}, but only {} are free",
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

/// Gives the immutable file `from` the second name `to`, which must be free. Copies it if the file
/// system has no hard links.
pub fn link_or_copy(from: &Path, to: &Path) -> Result<()> {
    if fs_err::hard_link(from, to).is_err() {
        fs_err::copy(from, to)?;
        fs_err::File::open(to)?.sync_all()?;
    }
    Ok(())
}

/// Removes the existing ones of `paths`: files, and directories with all of their content.
pub fn remove_all(paths: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    for path in paths {
        match fs_err::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs_err::remove_dir_all(path)?,
            Ok(_) => fs_err::remove_file(path)?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// Fsyncs a directory, so that its entries survive a power loss.
pub fn sync_directory(path: &Path) -> Result<()> {
    fs_err::File::open(path)?
        .sync_all()
        .with_context(|| format!("cannot sync directory `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insufficient_space_is_a_retryable_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("not").join("yet");
        check_space(&target, 1).expect("it fits");
        let error = check_space(&target, 1 << 60).expect_err("an exabyte");
        assert!(error.to_string().contains("needs 1.15 EB"), "{error}");
        assert_eq!(crate::error::exit_code(&error), crate::error::EXIT_RETRY);
    }
}
