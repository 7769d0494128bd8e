//! The scores of a model after probes. They need the log of the samples, which a sweep keeps.

use std::path::Path;

use anyhow::Result;

use crate::plan::events_dir;
use poolcast_events::EventStore;
use poolcast_holds::answers::HoldHistory;
use poolcast_holds::rehearsal::score_after_probes;
use poolcast_holds::training::{ProbedScores, TrainedModel};
use poolcast_tensors::Dataset;

/// Scores `model` after probes on the test split of `dataset`, with the log of the sweep in
/// `sweep_dir`. Returns `None` without that log, and like [`score_after_probes`].
///
/// # Errors
/// Fails like [`score_after_probes`].
pub fn probed_scores(
    sweep_dir: &Path,
    model: &TrainedModel,
    dataset: &Dataset,
    resamples: usize,
) -> Result<Option<ProbedScores>> {
    // All other scores need no log, so it is no error if it is missing or of another version.
    let Ok(store) = EventStore::open(&events_dir(sweep_dir)) else {
        return Ok(None);
    };
    score_after_probes(model, dataset, &HoldHistory::new(&store), resamples)
}
