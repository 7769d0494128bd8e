//! Samples of some splits of the tensors, and the batches that a model takes from them.

use anyhow::Result;

use super::batch_noise::BatchNoise;
use super::cluster_weights::cluster_weights;
use super::static_range::StaticRange;
use poolcast_models::{Architecture, ModelShape, SampleBatch, TokenColumns};
use poolcast_tensors::{Dataset, Split, TensorSettings};

/// Samples of some splits, one split after another, for models of one shape.
pub(crate) struct SplitSamples<'a> {
    dataset: &'a Dataset,
    /// Each split, with the index of its first sample.
    splits: Vec<(Split, usize)>,
    shape: ModelShape,
    /// True if the models read outcome tokens.
    takes_tokens: bool,
    pub(crate) labels: Vec<bool>,
    /// Clusters of the samples, by their number within the tensors.
    pub(crate) clusters: Vec<u32>,
}

impl<'a> SplitSamples<'a> {
    pub(crate) fn new(
        dataset: &'a Dataset,
        splits: &[Split],
        shape: ModelShape,
        architecture: &dyn Architecture,
    ) -> Result<SplitSamples<'a>> {
        let mut samples = SplitSamples {
            dataset,
            splits: Vec::new(),
            shape,
            takes_tokens: architecture.takes_tokens(),
            labels: Vec::new(),
            clusters: Vec::new(),
        };
        for &split in splits {
            samples.splits.push((split, samples.labels.len()));
            let labels: Vec<u8> = dataset.column(split, "label")?;
            samples
                .labels
                .extend(labels.into_iter().map(|label| label == 1));
            samples
                .clusters
                .extend(dataset.column::<u32>(split, "group")?);
        }
        Ok(samples)
    }

    /// The split of a sample, and the sample's index in it.
    fn place(&self, sample: usize) -> (Split, usize) {
        let after = self.splits.partition_point(|(_, first)| *first <= sample);
        let (split, first) = self.splits[after - 1];
        (split, sample - first)
    }

    /// The range of each static feature over the samples `learned`.
    pub(crate) fn static_range(&self, learned: &[usize]) -> StaticRange {
        let statics = learned.iter().map(|&sample| self.statics(sample));
        StaticRange::learn(self.shape.s, statics)
    }

    /// The static features of a sample that the models take, `[s]`.
    fn statics(&self, sample: usize) -> &[f32] {
        let (split, at) = self.place(sample);
        if self.shape.s > 0 {
            self.dataset.statics(split, at)
        } else {
            &[]
        }
    }

    /// Calls `with` on the batch of the samples with these indices. Their static features are
    /// clipped to `range`. A training leaves out what `noise` says.
    pub(crate) fn with_batch<T>(
        &self,
        samples: &[usize],
        range: &StaticRange,
        noise: Option<&BatchNoise>,
        with: impl FnOnce(&SampleBatch<'_>) -> T,
    ) -> Result<T> {
        let mut codes = Vec::with_capacity(samples.len() * self.shape.m * self.shape.j);
        let mut statics = Vec::with_capacity(samples.len() * self.shape.s);
        let mut shared = Vec::with_capacity(samples.len() * self.shape.j);
        let mut tokens = TokenColumns::default();
        for &sample in samples {
            let (split, at) = self.place(sample);
            shared.extend_from_slice(self.dataset.shared(split, at));
            codes.extend_from_slice(self.dataset.codes(split, at));
            statics.extend_from_slice(self.statics(sample));
            if self.takes_tokens {
                self.dataset.tokens(split, at)?.add_to(&mut tokens);
            }
        }
        range.clip(&mut statics);
        let batch = SampleBatch::with_shared(&self.shape, &codes, &shared, &statics)?;
        if !self.takes_tokens {
            return Ok(with(&batch));
        }
        if let Some(noise) = noise {
            noise.drop_tokens(&mut tokens.mask);
            tokens.kept = noise.kept_units(samples.len());
        }
        Ok(with(&batch.with_tokens(tokens.batch())?))
    }

    /// The labels of some samples as numbers. 1 is success.
    pub(crate) fn labels_of(&self, samples: &[usize]) -> Vec<f32> {
        samples
            .iter()
            .map(|&sample| f32::from(u8::from(self.labels[sample])))
            .collect()
    }
}

/// The loss weight of each of some samples, `[n]`: its weight by cluster, see [`cluster_weights`],
/// times `pos_weight` for a success.
pub(crate) fn loss_weights(
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

/// The number of static features that a model takes from samples with these settings.
pub(crate) fn static_feature_count(
    architecture: &dyn Architecture,
    tensors: &TensorSettings,
) -> usize {
    if architecture.takes_statics() {
        tensors.s()
    } else {
        0
    }
}

/// The number of bits for each job that a model reads from samples with these settings.
pub(crate) fn shared_bit_count(architecture: &dyn Architecture, tensors: &TensorSettings) -> usize {
    if architecture.takes_shared() {
        tensors.shared_bits()
    } else {
        0
    }
}
