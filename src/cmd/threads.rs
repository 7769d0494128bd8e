//! How many threads: the slot's, not the machine's, and settled before the first tensor operation.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Makes this process use `asked` threads, else `RAYON_NUM_THREADS`, else `OMP_NUM_THREADS`, else
/// the cores it may run on; returns the number.
///
/// HTCondor limits cores by weight, so counting cores sees the whole machine; it sets
/// `OMP_NUM_THREADS` in a job, but not the variable that rayon and candle read. A process cannot
/// change its own environment safely, so it starts itself anew with the variable set.
pub fn settle(asked: Option<u16>) -> Result<usize> {
    let given = |name: &str| {
        std::env::var(name)
            .ok()?
            .parse()
            .ok()
            .filter(|n: &usize| *n > 0)
    };
    let wanted = asked
        .map(usize::from)
        .or_else(|| given(VARIABLE))
        .or_else(|| given("OMP_NUM_THREADS"));
    let threads =
        wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    if given(VARIABLE) != Some(threads) {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let failure = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, threads.to_string())
            .exec();
        return Err(failure).context("cannot start this program anew with its number of threads");
    }
    tracing::debug!("{}", crate::output::counted(threads, "thread"));
    Ok(threads)
}
