//! Sends results to trackers while a verb runs, if the configuration enables them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use poolcast_base::output;
use poolcast_sweep::config::{Config, Tracker};
use poolcast_tracking::TrackingThread;

/// A variable that HTCondor sets in every job. Jobs need no key and send nothing; the machine that
/// collects their results sends them.
const JOB_VARIABLE: &str = "_CONDOR_SCRATCH_DIR";

/// Starts sending the results in `dir`, if `config` enables a tracker and the environment allows
/// it. If a tracker supplies the points of the sweep, the loss of that supply sets `stop`.
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
        tracing::info!("nothing is sent to W&B, because WANDB_MODE is {mode}");
        trackers.retain(|tracker| *tracker != Tracker::Wandb);
    }
    let needs_points = config.wandb.sweep.id.is_some();
    if needs_points && !trackers.contains(&Tracker::Wandb) {
        output::note(
            "points come from W&B only while `poolcast track DIR --to wandb --watch` is running somewhere",
        );
    }
    let work_stop = needs_points.then(|| stop.clone());
    (!trackers.is_empty()).then(|| TrackingThread::begin(dir, trackers, work_stop))
}

/// Sends the remaining results. Results that cannot be sent cause a note, not a failure.
pub(super) fn end_tracking(thread: Option<TrackingThread>) {
    for note in thread.map_or(Vec::new(), TrackingThread::finish) {
        output::note(&note);
    }
}
