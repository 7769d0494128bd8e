//! `poolcast look`: looks at paths for `advise`, in a process that may hang.

use anyhow::Result;

use poolcast_advice::{answer_looks, end_with_caller};
use poolcast_base::error::EXIT_DONE;

/// Reads paths from stdin, and writes what is there to stdout.
pub(super) fn run() -> Result<u8> {
    end_with_caller()?;
    answer_looks(std::io::stdin(), std::io::stdout())?;
    Ok(EXIT_DONE)
}
