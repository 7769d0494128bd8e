//! Reasons for a verb to stop early: a signal, or the end of its time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};
use signal_hook::low_level::emulate_default_handler;

use poolcast_base::error::{EXIT_RETRY, hinted};
use poolcast_base::output;

/// Exit code after SIGINT, as a shell reports it for a program that the signal ended.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// True once SIGINT has stopped a verb.
static IS_INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Interval between checks for SIGINT.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// True while SIGINT ends the process at once.
static ENDS_AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT end the process as it does by default, but with `words` on stderr, until [`stop_signal`] replaces this.
/// A shell reports the exit code 130.
pub(super) fn end_at_interrupt(words: String) -> Result<()> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    register(SIGINT, Arc::clone(&is_interrupted))?;
    ENDS_AT_ONCE.store(true, Ordering::Relaxed);
    std::thread::spawn(move || {
        while ENDS_AT_ONCE.load(Ordering::Relaxed) {
            if is_interrupted.load(Ordering::Relaxed) {
                output::note(&words);
                drop(emulate_default_handler(SIGINT));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
    Ok(())
}

/// The flag that SIGTERM and SIGINT set. A second SIGINT ends the program at once.
pub(super) fn stop_signal() -> Result<Arc<AtomicBool>> {
    ENDS_AT_ONCE.store(false, Ordering::Relaxed);
    let stop = Arc::new(AtomicBool::new(false));
    register_conditional_default(SIGINT, Arc::clone(&stop))?;
    register(SIGINT, Arc::clone(&IS_INTERRUPTED))?;
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Says that the run in `dir` was stopped.
pub(super) fn stopped_words(dir: &Path) -> String {
    let dir = dir.display();
    format!("the run in `{dir}` was stopped; the same command goes on from there")
}

/// Returns the exit code of a verb that would end with `code`: work that Ctrl-C has left unfinished has not failed.
pub(super) fn exit_code(code: u8) -> u8 {
    if code == EXIT_RETRY && IS_INTERRUPTED.load(Ordering::Relaxed) {
        EXIT_INTERRUPTED
    } else {
        code
    }
}

/// The time at which to exit with a checkpoint. The job exits on its own for two reasons: HTCondor
/// only transfers a checkpoint from a job that exits, and a machine may be lost before it signals
/// the job.
pub(super) fn exit_time(minutes: f64) -> Result<Instant> {
    let after = Duration::try_from_secs_f64(minutes * 60.0).ok();
    let exit_time = after.and_then(|after| Instant::now().checked_add(after));

    exit_time.with_context(|| {
        hinted(
            format!("{minutes} minutes is not a valid time"),
            "try `--self-checkpoint=60`",
        )
    })
}
