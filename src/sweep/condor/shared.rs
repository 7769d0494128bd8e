//! The inputs that several jobs of a DAG use → one archive each, in a directory from which jobs
//! fetch them by address.
//!
//! Such a directory is an origin of the OSDF: its caches keep a file near the jobs, and the access
//! point sends it once. `condor/node.sh share` packs the archives there, and `poolcast ...
//! --unpack` unpacks them in the job.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layout::SHARED_INPUTS_FILE;
use super::syntax::check_plain;
use poolcast_config::Config;
use poolcast_base::error::hinted;
use poolcast_base::salt::random_text;

/// The number of random bytes in the name of a directory. Caches do not see that a file of a known
/// name has changed, so that no name may be used twice. This program does not decide who may read
/// an origin, so that no name may be guessed.
const TOKEN_BYTES: usize = 16;

/// The addresses that HTCondor's plugins fetch.
const SCHEMES: [&str; 5] = ["osdf:///", "pelican://", "https://", "http://", "file:///"];

/// Where the shared inputs of one DAG are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedDirectory {
    /// The directory on this access point, the DAG's own.
    directory: PathBuf,
    /// The address of that directory.
    address: String,
}

impl SharedDirectory {
    /// Those of the DAG that `config` describes; `None` where its jobs get everything from the
    /// access point. A DAG that was written before keeps its directory.
    ///
    /// # Errors
    /// Fails for a directory that is not there, and for an address that no job can fetch.
    pub(super) fn from_config(config: &Config) -> Result<Option<SharedDirectory>> {
        let configured = &config.dag.shared_inputs;
        let Some(origin) = &configured.directory else {
            ensure!(
                configured.address.is_none(),
                hinted(
                    "`dag.shared_inputs` has an address and no directory",
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

    /// The file that says where the archives are, by its path in the DAG's directory.
    pub(super) fn location_file(&self) -> (String, String) {
        let text = format!("{}\n", self.directory.display());
        (SHARED_INPUTS_FILE.to_owned(), text)
    }

    /// What a job fetches in place of the directory `input`.
    pub(super) fn address_of(&self, input: &str) -> String {
        format!("{}/{}", self.address, archive_name(input))
    }
}

/// The name of the archive of the directory `input`, in the DAG's directory: a job finds it under
/// this name.
pub(super) fn archive_name(input: &str) -> String {
    format!("{}.tar", input.replace('/', "-"))
}

/// The directory `origin` without a slash at its end, which must be there.
fn checked_origin(origin: &Path) -> Result<PathBuf> {
    ensure!(
        origin.is_absolute() && origin.is_dir(),
        hinted(
            format!(
                "`dag.shared_inputs.directory`: there is no directory `{}`",
                origin.display()
            ),
            "name it from the root on, such as /ospool/ap40/data/USER"
        )
    );
    check_plain("the directory", &origin.to_string_lossy())?;
    Ok(origin.components().collect())
}

/// Refuses an address that no job can fetch from.
fn check_address(address: &str) -> Result<()> {
    check_plain("the address", address)?;
    ensure!(
        SCHEMES.iter().any(|scheme| address.starts_with(scheme)),
        hinted(
            format!("`dag.shared_inputs.address`: no job can fetch from `{address}`"),
            "begin it with osdf:///, pelican://, https://, http:// or file:///"
        )
    );
    Ok(())
}

/// The address at which the OSDF has `origin`, a directory that is known by its name.
fn known_address(origin: &Path) -> Result<String> {
    let origin = origin.to_string_lossy();
    if origin.starts_with("/ospool/") {
        return Ok(format!("osdf://{origin}"));
    }
    if origin.starts_with("/staging/") {
        return Ok(format!("osdf:///chtc{origin}"));
    }
    let message = format!("`dag.shared_inputs` does not say at which address jobs find `{origin}`");
    Err(hinted(
        message,
        "add `address`, such as `address: osdf:///NAMESPACE/PATH`; only that of a directory below /ospool/ or /staging/ is known",
    )
    .into())
}

/// The directory with the archives of the DAG in `dir`, if it has one.
///
/// # Errors
/// Fails for a file that does not name a directory from the root on.
pub(super) fn read_location(dir: &Path) -> Result<Option<PathBuf>> {
    let file = dir.join(SHARED_INPUTS_FILE);
    if !file.is_file() {
        return Ok(None);
    }
    let directory = PathBuf::from(fs_err::read_to_string(&file)?.trim_end());
    ensure!(
        directory.is_absolute(),
        "`{}` names no directory",
        file.display()
    );
    Ok(Some(directory))
}

/// Removes the archives in `directory`, and then the directory, if nothing else is in it.
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
            "only archives of the DAG are removed; look what else is there",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_origin_of_the_ospool_or_chtc_follows_from_its_path() {
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
