//! Shares inputs that several jobs of a DAG use: one archive each, in a directory from which jobs
//! fetch them by address.
//!
//! This directory belongs to an origin of the OSDF. The OSDF's caches keep a file near the jobs, so
//! the access point sends it only once. `condor/node.sh share` packs the archives there, and
//! `poolcast ... --unpack` unpacks them in the job.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layout::SHARED_INPUTS_FILE;
use super::syntax::check_plain;
use crate::config::Config;
use poolcast_base::error::hinted;
use poolcast_base::salt::random_text;

/// Number of random bytes in the name of a directory. Caches do not notice that a file with a known
/// name has changed, so a name must never be used twice. This program does not control read access
/// to an origin, so a name must not be guessable.
const TOKEN_BYTES: usize = 16;

/// The address schemes that HTCondor's plugins can fetch.
const SCHEMES: [&str; 5] = ["osdf:///", "pelican://", "https://", "http://", "file:///"];

/// The location of the shared inputs of one DAG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedDirectory {
    /// The DAG's own directory on this access point.
    directory: PathBuf,
    /// The address of that directory.
    address: String,
}

impl SharedDirectory {
    /// The shared directory of the DAG that `config` describes; `None` if its jobs get everything
    /// from the access point. A DAG that was written before keeps its directory.
    ///
    /// # Errors
    /// Fails for a directory that does not exist, and for an address that no job can fetch.
    pub(super) fn from_config(config: &Config) -> Result<Option<SharedDirectory>> {
        let configured = &config.dag.shared_inputs;
        let Some(origin) = &configured.directory else {
            ensure!(
                configured.address.is_none(),
                hinted(
                    "`dag.shared_inputs` has an address but no directory",
                    "name the directory on this access point that jobs find at that address"
                )
            );
            return Ok(None);
        };
        let origin = checked_origin(origin)?;
        let address = match &configured.address {
            Some(given) => given.trim_end_matches('/').to_owned(),
            None => known_address(&origin)?,
        };
        check_address(&address)?;

        let written = read_location(&config.out)?.filter(|found| found.parent() == Some(&origin));
        let directory = match written {
            Some(directory) => directory,
            None => {
                let token = random_text::<TOKEN_BYTES>()?;
                origin.join(format!("{}-{token}", config.wandb.sweep.name))
            }
        };
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        Ok(Some(SharedDirectory {
            address: format!("{address}/{name}"),
            directory,
        }))
    }

    /// The file with the path of the archives: its path in the DAG's directory, and its text.
    pub(super) fn location_file(&self) -> (String, String) {
        let text = format!("{}\n", self.directory.display());
        (SHARED_INPUTS_FILE.to_owned(), text)
    }

    /// The address that a job fetches instead of the directory `input`.
    pub(super) fn address_of(&self, input: &str) -> String {
        format!("{}/{}", self.address, archive_name(input))
    }
}

/// The name of the archive of the directory `input`. A job finds it under this name in the DAG's
/// directory.
pub(super) fn archive_name(input: &str) -> String {
    format!("{}.tar", input.replace('/', "-"))
}

/// Checks that the directory `origin` exists, and removes a trailing slash.
fn checked_origin(origin: &Path) -> Result<PathBuf> {
    ensure!(
        origin.is_absolute() && origin.is_dir(),
        hinted(
            format!(
                "`dag.shared_inputs.directory`: there is no directory `{}`",
                origin.display()
            ),
            "give an absolute path, such as /ospool/ap40/data/USER"
        )
    );
    check_plain("the directory", &origin.to_string_lossy())?;
    Ok(origin.components().collect())
}

/// Rejects an address that no job can fetch from.
fn check_address(address: &str) -> Result<()> {
    check_plain("the address", address)?;
    ensure!(
        SCHEMES.iter().any(|scheme| address.starts_with(scheme)),
        hinted(
            format!("`dag.shared_inputs.address`: jobs cannot fetch from `{address}`"),
            "begin it with osdf:///, pelican://, https://, http:// or file:///"
        )
    );
    Ok(())
}

/// The OSDF address of `origin`, if its path belongs to a known origin.
fn known_address(origin: &Path) -> Result<String> {
    let origin = origin.to_string_lossy();
    if origin.starts_with("/ospool/") {
        return Ok(format!("osdf://{origin}"));
    }
    if origin.starts_with("/staging/") {
        return Ok(format!("osdf:///chtc{origin}"));
    }
    let message = format!("`dag.shared_inputs` has no address for `{origin}`");
    Err(hinted(
        message,
        "add `address`, such as `address: osdf:///NAMESPACE/PATH`; only the addresses of directories below /ospool/ and /staging/ are known",
    )
    .into())
}

/// The directory with the archives of the DAG in `dir`, if it has one.
///
/// # Errors
/// Fails for a file that does not contain an absolute path.
pub(super) fn read_location(dir: &Path) -> Result<Option<PathBuf>> {
    let file = dir.join(SHARED_INPUTS_FILE);
    if !file.is_file() {
        return Ok(None);
    }
    let directory = PathBuf::from(fs_err::read_to_string(&file)?.trim_end());
    ensure!(
        directory.is_absolute(),
        "`{}` does not contain an absolute path",
        file.display()
    );
    Ok(Some(directory))
}

/// Removes the archives in `directory`, and then the directory. Fails if it contains anything else.
pub(super) fn remove_archives(directory: &Path) -> Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".tar") || name.ends_with(".tar.new") {
            fs_err::remove_file(&path)?;
        }
    }
    fs_err::remove_dir(directory).with_context(|| {
        hinted(
            format!("cannot remove `{}`", directory.display()),
            "only archives of the DAG are removed; remove the other files yourself",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_of_ospool_and_chtc_have_known_addresses() {
        let address = |path: &str| known_address(Path::new(path)).ok();
        assert_eq!(
            address("/ospool/ap40/data/me").as_deref(),
            Some("osdf:///ospool/ap40/data/me")
        );
        assert_eq!(
            address("/staging/me/x").as_deref(),
            Some("osdf:///chtc/staging/me/x")
        );
        assert_eq!(address("/home/me"), None);
        assert_eq!(archive_name("tensors/j3-m4"), "tensors-j3-m4.tar");
    }
}
