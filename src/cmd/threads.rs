//! Sets the number of threads before the first tensor operation: the threads of the slot, not of
//! the machine.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

use poolcast_base::output;

/// The variable that rayon and candle read.
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Makes this process use `asked` threads; returns their number. The default is
/// `RAYON_NUM_THREADS`, then `OMP_NUM_THREADS`, then the number of cores that the process may run
/// on.
///
/// HTCondor limits the cores of a job by weight, so a count of cores sees the whole machine.
/// HTCondor sets `OMP_NUM_THREADS` in a job, but not the variable that rayon and candle read. A
/// process cannot safely change its own environment, so it restarts itself with that variable set.
pub fn set_thread_count(asked: Option<u16>) -> Result<usize> {
    let wanted = asked
        .map(usize::from)
        .or_else(|| count_in_environment(THREADS_VARIABLE))
        .or_else(|| count_in_environment("OMP_NUM_THREADS"));
    let threads =
        wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));

    if count_in_environment(THREADS_VARIABLE) != Some(threads) {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        output::keep_stdout_closed_on_exec()?;
        let failure = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(THREADS_VARIABLE, threads.to_string())
            .exec();
        return Err(failure).context("cannot restart this program with its number of threads");
    }

    tracing::debug!("{}", output::counted(threads, "thread"));
    Ok(threads)
}

/// The number in the variable `name`; `None` if it is not a number, or if it is 0.
fn count_in_environment(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    text.parse().ok().filter(|count| *count > 0)
}
