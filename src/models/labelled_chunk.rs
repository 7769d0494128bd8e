//! A batch and its targets → the labelled chunks that are learned from in parallel.

use super::{ModelShape, SampleBatch};

/// Samples of a chunk that a gradient is found of. More of them use each load of a weight more
/// often; fewer leave more chunks to work on in parallel. The number is part of the result, as sums
/// are taken chunk by chunk.
pub(super) const TRAINED_ROWS: usize = 16;

/// Samples of a chunk that is only scored, of which there are many anyway.
pub(super) const SCORED_ROWS: usize = 32;

/// What a model should say of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Targets<'a> {
    /// `[b]`, each 0 or 1.
    pub labels: &'a [f32],
    /// How many times each sample counts, in the sum of the losses alone, as in PyTorch's
    /// `BCEWithLogitsLoss`: `[b]`.
    pub weights: &'a [f32],
}

/// Some samples of a batch, with their labels.
#[derive(Debug)]
pub(super) struct LabelledChunk<'a> {
    pub(super) batch: SampleBatch<'a>,
    /// `[rows]`, each 0 or 1.
    pub(super) labels: &'a [f32],
    /// How many times each counts, `[rows]`.
    pub(super) weights: &'a [f32],
    /// What one sample counts in the gradient: 1 of all samples of the batch.
    pub(super) scale: f32,
}

impl<'a> LabelledChunk<'a> {
    /// Cuts `batch` into chunks of `rows` samples, the last of which may be shorter.
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
