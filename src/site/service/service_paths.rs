//! The paths that the files of a service name.

use std::path::Path;

use anyhow::Result;

use poolcast_base::error::hinted;

/// The paths that the files of a service name.
#[derive(Debug)]
pub(super) struct ServicePaths {
    pub(super) program: String,
    pub(super) log: String,
}

impl ServicePaths {
    /// Checks both paths.
    ///
    /// # Errors
    /// Fails for a path that a unit or HTCondor's configuration would misread.
    pub(super) fn new(program: &Path, log: &Path) -> Result<ServicePaths> {
        Ok(ServicePaths {
            program: plain_path(program)?,
            log: plain_path(log)?,
        })
    }
}

/// Returns `path` if it is absolute and has only characters that neither systemd, HTCondor nor a
/// shell interprets.
fn plain_path(path: &Path) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte);
    let text = path.to_str().filter(|text| text.bytes().all(is_plain));
    match text {
        Some(text) if path.is_absolute() => Ok(text.to_owned()),
        _ => Err(hinted(
            format!("the path `{}` cannot be in a unit", path.display()),
            "name an absolute path of letters, digits, and the characters . _ - + @",
        )
        .into()),
    }
}
