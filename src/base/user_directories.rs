//! Directories for the files that this program keeps for a user, by the XDG base directory
//! specification.

use std::path::PathBuf;

/// Returns the user's configuration directory, which other programs share; `None` if no home
/// directory is known. A path that is not absolute is ignored, as the specification demands.
pub fn configuration_directory() -> Option<PathBuf> {
    absolute_path("XDG_CONFIG_HOME").or_else(|| Some(absolute_path("HOME")?.join(".config")))
}

/// Returns the directory in which this program keeps state of the user between two calls; `None` if
/// no home directory is known.
pub fn state_directory() -> Option<PathBuf> {
    let shared = absolute_path("XDG_STATE_HOME")
        .or_else(|| Some(absolute_path("HOME")?.join(".local/state")))?;
    Some(shared.join("poolcast"))
}

/// Returns the path in an environment variable; `None` if it is unset, empty or relative.
fn absolute_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
