//! `poolcast look`: looks at paths for `advise`, in a process that may hang.

use anyhow::Result;

use poolcast_advice::{answer_looks, become_user, end_with_caller};
use poolcast_base::error::EXIT_DONE;

/// Reads paths from stdin, and writes what is there to stdout, with the rights of `user` if one is
/// named.
pub(super) fn run(user: Option<&str>) -> Result<u8> {
    if let Some(user) = user {
        become_user(user)?;
    }
    // The kernel forgets this when the rights of a process change.
    end_with_caller()?;
    answer_looks(std::io::stdin(), std::io::stdout())?;
    Ok(EXIT_DONE)
}
