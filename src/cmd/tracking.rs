//! Sending to a tracker what comes about while a verb is at work, where the configuration wants it.

use std::path::Path;

use crate::config::Config;
use crate::output;
use crate::tracking::TrackingThread;

/// Set in every job of HTCondor. Jobs need no key, and send nothing: what they leave is sent from
/// where it comes together.
const JOB_VARIABLE: &str = "_CONDOR_SCRATCH_DIR";

/// Begins to send what comes about in `dir`, if `config` wants that and the environment lets it.
pub(super) fn begin_tracking(config: &Config, dir: &Path) -> Option<TrackingThread> {
    if !config.wandb.enable || std::env::var_os(JOB_VARIABLE).is_some() {
        return None;
    }
    let mode = std::env::var("WANDB_MODE").unwrap_or_default();
    if ["offline", "disabled"].contains(&mode.as_str()) {
        tracing::info!("nothing is sent to W&B, as WANDB_MODE is {mode}");
        return None;
    }
    Some(TrackingThread::begin(dir))
}

/// Sends what is left. What could not be sent is a note, and no failure.
pub(super) fn end_tracking(thread: Option<TrackingThread>) {
    if let Some(note) = thread.and_then(TrackingThread::finish) {
        output::note(&note);
    }
}
