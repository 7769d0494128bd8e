//! A model and samples → the logit of each sample.

use anyhow::Result;

use super::samples::SplitSamples;
use super::static_range::StaticRange;
use poolcast_models::Model;

/// Samples that are scored at once. Their number has no influence on the logits.
const SCORED_AT_ONCE: usize = 256;

/// The logit of every sample; `range` is what `model` learned from.
pub(super) fn score_samples(
    model: &Model,
    samples: &SplitSamples<'_>,
    range: &StaticRange,
) -> Result<Vec<f32>> {
    let all: Vec<usize> = (0..samples.labels.len()).collect();
    score_some(model, samples, range, &all)
}

/// The logits of those samples that `wanted` names, in its order.
pub(super) fn score_some(
    model: &Model,
    samples: &SplitSamples<'_>,
    range: &StaticRange,
    wanted: &[usize],
) -> Result<Vec<f32>> {
    let mut logits = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(SCORED_AT_ONCE) {
        logits.extend(samples.with_batch(some, range, |batch| model.logits(batch))??);
    }
    Ok(logits)
}
