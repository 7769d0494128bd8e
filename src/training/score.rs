//! A model and samples → the logit of each sample.

use anyhow::Result;

use super::samples::SplitSamples;
use crate::models::Model;

/// Samples that are scored at once. Their number has no influence on the logits.
const SCORED_AT_ONCE: usize = 256;

/// The logit of every sample.
pub(super) fn score_samples(model: &Model, samples: &SplitSamples<'_>) -> Result<Vec<f32>> {
    let all: Vec<usize> = (0..samples.labels.len()).collect();
    let mut logits = Vec::with_capacity(all.len());
    for some in all.chunks(SCORED_AT_ONCE) {
        logits.extend(samples.with_batch(some, |batch| model.logits(batch))??);
    }
    Ok(logits)
}
