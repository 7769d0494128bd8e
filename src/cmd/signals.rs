//! When a verb is to leave: on a signal, or after a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};

use poolcast_base::error::hinted;

/// What SIGTERM and SIGINT set. A second SIGINT ends the program at once.
pub(super) fn stop_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    register_conditional_default(SIGINT, Arc::clone(&stop))?;
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// When to leave with a checkpoint. A job leaves by itself, as HTCondor only transfers a checkpoint
/// from a job that exits, and a machine may be lost before it tells the job to stop.
pub(super) fn leave_at(minutes: f64) -> Result<Instant> {
    let after = Duration::try_from_secs_f64(minutes * 60.0).ok();
    let leave_at = after.and_then(|after| Instant::now().checked_add(after));

    leave_at.with_context(|| {
        hinted(
            format!("no job runs for {minutes} minutes"),
            "try `--self-checkpoint=60`",
        )
    })
}
