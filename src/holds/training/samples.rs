//! Sides of the tensors → the batches that a model takes.

use anyhow::Result;

use super::cluster_weights::cluster_weights;
use super::static_range::StaticRange;
use poolcast_models::{Architecture, ModelShape, SampleBatch};
use crate::tensors::{Dataset, SplitSide, TensorSettings};

/// The samples of some sides, one side after another, for models of one shape.
pub(super) struct SplitSamples<'a> {
    dataset: &'a Dataset,
    /// Each side, and the index of its first sample.
    sides: Vec<(SplitSide, usize)>,
    shape: ModelShape,
    pub(super) labels: Vec<bool>,
    /// The cluster of each, by the number it has within the tensors.
    pub(super) clusters: Vec<u32>,
}

impl<'a> SplitSamples<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        sides: &[SplitSide],
        shape: ModelShape,
    ) -> Result<SplitSamples<'a>> {
        let mut samples = SplitSamples {
            dataset,
            sides: Vec::new(),
            shape,
            labels: Vec::new(),
            clusters: Vec::new(),
        };
        for &side in sides {
            samples.sides.push((side, samples.labels.len()));
            let labels: Vec<u8> = dataset.column(side, "label")?;
            samples
                .labels
                .extend(labels.into_iter().map(|label| label == 1));
            samples
                .clusters
                .extend(dataset.column::<u32>(side, "group")?);
        }
        Ok(samples)
    }

    /// The side of a sample, and its index there.
    fn place(&self, sample: usize) -> (SplitSide, usize) {
        let after = self.sides.partition_point(|(_, first)| *first <= sample);
        let (side, first) = self.sides[after - 1];
        (side, sample - first)
    }

    /// Between what each static feature of some samples lies.
    pub(super) fn static_range(&self, learned: &[usize]) -> StaticRange {
        let statics = learned.iter().map(|&sample| self.statics(sample));
        StaticRange::learn(self.shape.s, statics)
    }

    /// The static features of a sample that the models take, `[s]`.
    fn statics(&self, sample: usize) -> &[f32] {
        let (side, at) = self.place(sample);
        if self.shape.s > 0 {
            self.dataset.statics(side, at)
        } else {
            &[]
        }
    }

    /// Calls `with` on the batch of some samples, which are named by their index; their static
    /// features are drawn into `range`.
    pub(super) fn with_batch<T>(
        &self,
        samples: &[usize],
        range: &StaticRange,
        with: impl FnOnce(&SampleBatch<'_>) -> T,
    ) -> Result<T> {
        let mut codes = Vec::with_capacity(samples.len() * self.shape.m * self.shape.j);
        let mut statics = Vec::with_capacity(samples.len() * self.shape.s);
        for &sample in samples {
            let (side, at) = self.place(sample);
            codes.extend_from_slice(self.dataset.codes(side, at));
            statics.extend_from_slice(self.statics(sample));
        }
        range.clip(&mut statics);
        Ok(with(&SampleBatch::new(&self.shape, &codes, &statics)?))
    }

    /// The labels of some samples as numbers: 1 is success.
    pub(super) fn labels_of(&self, samples: &[usize]) -> Vec<f32> {
        samples
            .iter()
            .map(|&sample| f32::from(u8::from(self.labels[sample])))
            .collect()
    }
}

/// How much each of some samples counts in the loss, `[n]`: by its cluster, see [`cluster_weights`], and
/// a success `pos_weight` times.
pub(super) fn loss_weights(
    samples: &SplitSamples<'_>,
    learned: &[usize],
    pos_weight: f64,
) -> Vec<f32> {
    let clusters: Vec<u32> = learned
        .iter()
        .map(|&sample| samples.clusters[sample])
        .collect();

    let mut weights = Vec::with_capacity(learned.len());
    for (&sample, by_cluster) in learned.iter().zip(cluster_weights(&clusters)) {
        let by_label = if samples.labels[sample] {
            pos_weight
        } else {
            1.0
        };
        weights.push((by_cluster * by_label) as f32);
    }
    weights
}

/// How many static features a model takes of samples with these settings.
pub(super) fn static_feature_count(
    architecture: &dyn Architecture,
    tensors: &TensorSettings,
) -> usize {
    if architecture.takes_statics() {
        tensors.s()
    } else {
        0
    }
}
