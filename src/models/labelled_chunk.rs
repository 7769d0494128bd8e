//! Labelled chunks of a batch and its targets, for training in parallel.

use super::{ModelShape, SampleBatch};

/// Samples per chunk of a gradient. Larger chunks reuse each loaded weight more often. Smaller ones
/// allow more parallel chunks. The number affects the result, because sums are taken chunk by
/// chunk.
pub(super) const TRAINED_ROWS: usize = 16;

/// Samples per chunk that is only scored. Larger than [`TRAINED_ROWS`], because there are many
/// chunks anyway.
pub(super) const SCORED_ROWS: usize = 32;

/// Labels and weights of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Targets<'a> {
    /// Labels, `[b]`, each 0 or 1.
    pub labels: &'a [f32],
    /// Sample weights, `[b]`. They multiply the terms of the sum of losses only, as in PyTorch's
    /// `BCEWithLogitsLoss`: the mean still divides by the number of samples.
    pub weights: &'a [f32],
}

/// Some samples of a batch, with their labels.
#[derive(Debug)]
pub(super) struct LabelledChunk<'a> {
    pub(super) batch: SampleBatch<'a>,
    /// Labels, `[rows]`, each 0 or 1.
    pub(super) labels: &'a [f32],
    /// Sample weights, `[rows]`.
    pub(super) weights: &'a [f32],
    /// Factor of each sample's gradient: 1 divided by the number of samples in the batch.
    pub(super) scale: f32,
}

impl<'a> LabelledChunk<'a> {
    /// Cuts `batch` into chunks of `rows` samples. The last chunk may be shorter.
    pub(super) fn split(
        shape: &ModelShape,
        batch: &SampleBatch<'a>,
        targets: &Targets<'a>,
        rows: usize,
    ) -> Vec<LabelledChunk<'a>> {
        let scale = 1.0 / batch.len() as f32;
        batch
            .split_into_chunks(shape, rows)
            .into_iter()
            .zip(
                targets
                    .labels
                    .chunks(rows)
                    .zip(targets.weights.chunks(rows)),
            )
            .map(|(batch, (labels, weights))| LabelledChunk {
                batch,
                labels,
                weights,
                scale,
            })
            .collect()
    }
}
