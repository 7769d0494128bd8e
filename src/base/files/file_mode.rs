//! Who may read what the program writes.

use anyhow::{Result, bail};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::error::hinted;

/// Who may read what the program writes: `private`, the default, for its user alone, or `shared`,
/// as the umask says.
pub const MODE_VARIABLE: &str = "POOLCAST_FILE_MODE";

/// Sees to it that files and directories of this process are made for its user alone, with modes
/// 0600 and 0700, unless [`MODE_VARIABLE`] says otherwise. To be called before there is a second
/// thread: the umask is that of the process.
///
/// # Errors
/// Fails for a word that means nothing here.
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
            "`private` makes files for their user alone, `shared` lets the umask decide"
        )),
    }
    Ok(())
}
