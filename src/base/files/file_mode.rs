//! The access mode of new files: private to the user, or shared as the umask says.

use anyhow::{Result, bail};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::error::hinted;

/// Environment variable for the access mode of new files: `private`, the default, for the user
/// alone, or `shared`, which leaves the mode to the umask.
pub const MODE_VARIABLE: &str = "POOLCAST_FILE_MODE";

/// Makes new files and directories of this process private to its user (modes 0600 and 0700),
/// unless [`MODE_VARIABLE`] says otherwise. The umask belongs to the process, so call this before a
/// second thread starts.
///
/// # Errors
/// Fails if the variable has an unknown value.
pub fn apply_file_mode() -> Result<()> {
    let wanted = std::env::var_os(MODE_VARIABLE).unwrap_or_default();
    match wanted.to_str() {
        Some("" | "private") => {
            let before = umask(Mode::RWXG | Mode::RWXO);
            umask(before | Mode::RWXG | Mode::RWXO);
        }
        Some("shared") => {}
        _ => bail!(hinted(
            format!(
                "`{MODE_VARIABLE}` must be `private` or `shared`, got `{}`",
                wanted.to_string_lossy()
            ),
            "`private` makes files that only their owner can use; `shared` applies the umask"
        )),
    }
    Ok(())
}
