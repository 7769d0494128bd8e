//! Logits of samples, computed in chunks.

use anyhow::Result;

use super::samples::SampleSet;
use super::static_range::StaticRange;
use poolcast_models::Model;

/// Samples per chunk. The number has no influence on the logits.
const SAMPLES_PER_CHUNK: usize = 256;

/// The logit of every sample. `range` is the static feature range that `model` learned.
pub(crate) fn score_samples(
    model: &Model,
    samples: &SampleSet<'_>,
    range: &StaticRange,
) -> Result<Vec<f32>> {
    let all: Vec<usize> = (0..samples.len()).collect();
    score_selected(model, samples, range, &all)
}

/// The logits of the samples with the indices `wanted`, in that order.
pub(crate) fn score_selected(
    model: &Model,
    samples: &SampleSet<'_>,
    range: &StaticRange,
    wanted: &[usize],
) -> Result<Vec<f32>> {
    let mut logits = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(SAMPLES_PER_CHUNK) {
        logits.extend(samples.with_batch(some, range, None, |batch| model.logits(batch))??);
    }
    Ok(logits)
}
