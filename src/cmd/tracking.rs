//! Sending to a tracker what comes about while a verb is at work, where the configuration wants it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use poolcast_config::{Config, Tracker};
use poolcast_base::output;
use poolcast_tracking::TrackingThread;

/// Set in every job of HTCondor. Jobs need no key, and send nothing: what they leave is sent from
/// where it comes together.
const JOB_VARIABLE: &str = "_CONDOR_SCRATCH_DIR";

/// Begins to send what comes about in `dir`, if `config` wants that and the environment lets it. Where
/// points come from a tracker, and cannot come any more, `stop` is set.
pub(super) fn begin_tracking(
    config: &Config,
    dir: &Path,
    stop: &Arc<AtomicBool>,
) -> Option<TrackingThread> {
    if std::env::var_os(JOB_VARIABLE).is_some() {
        return None;
    }
    let mut trackers = config.enabled_trackers();
    let mode = std::env::var("WANDB_MODE").unwrap_or_default();
    if ["offline", "disabled"].contains(&mode.as_str()) {
        tracing::info!("nothing is sent to W&B, as WANDB_MODE is {mode}");
        trackers.retain(|tracker| *tracker != Tracker::Wandb);
    }
    let needs_points = config.wandb.sweep.id.is_some();
    if needs_points && !trackers.contains(&Tracker::Wandb) {
        output::note(
            "points come from W&B only while `poolcast track DIR --to wandb --watch` is at work somewhere",
        );
    }
    let work_stop = needs_points.then(|| stop.clone());
    (!trackers.is_empty()).then(|| TrackingThread::begin(dir, trackers, work_stop))
}

/// Sends what is left. What could not be sent is a note, and no failure.
pub(super) fn end_tracking(thread: Option<TrackingThread>) {
    for note in thread.map_or(Vec::new(), TrackingThread::finish) {
        output::note(&note);
    }
}
