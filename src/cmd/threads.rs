//! How many threads: the slot's, not the machine's, and settled before the first tensor operation.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

/// The variable that rayon and candle read.
const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Makes this process use `asked` threads, else `RAYON_NUM_THREADS`, else `OMP_NUM_THREADS`, else
/// the cores it may run on; returns the number.
///
/// HTCondor limits a job's cores by weight, so that a count of cores sees the whole machine. It
/// sets `OMP_NUM_THREADS` in a job, but not the variable that rayon and candle read. As a process
/// cannot change its own environment safely, it starts itself anew with that variable set.
pub fn settle(asked: Option<u16>) -> Result<usize> {
    let wanted = asked
        .map(usize::from)
        .or_else(|| count_in_environment(VARIABLE))
        .or_else(|| count_in_environment("OMP_NUM_THREADS"));
    let threads =
        wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));

    if count_in_environment(VARIABLE) != Some(threads) {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let failure = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, threads.to_string())
            .exec();
        return Err(failure).context("cannot start this program anew with its number of threads");
    }

    tracing::debug!("{}", poolcast_base::output::counted(threads, "thread"));
    Ok(threads)
}

/// The number in the variable `name`; `None` for no number and for 0.
fn count_in_environment(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    text.parse().ok().filter(|count| *count > 0)
}
