//! Samples of some splits of the tensors, or of holds in memory, and the batches that a model takes from
//! them.

use anyhow::Result;

use super::batch_noise::BatchNoise;
use super::cluster_weights::{cluster_weights, scaled_to_mean_1};
use super::static_range::StaticRange;
use crate::training::runs::{EncodedHolds, SampleInputs};
use poolcast_models::{Architecture, ModelShape, SampleBatch, TokenColumns};
use poolcast_tensors::{Dataset, Split, TensorSettings};

/// Samples for models of one shape.
pub(crate) struct SampleSet<'a> {
    source: SamplePlace<'a>,
    shape: ModelShape,
    /// True if the models read outcome tokens.
    takes_tokens: bool,
    /// Labels; empty for holds without.
    pub(crate) labels: Vec<bool>,
    /// Clusters of the samples, by their number within the tensors; empty for holds in memory.
    clusters: Vec<u32>,
    /// Weights of holds in memory; empty for samples that are weighted by cluster.
    weights: Vec<f64>,
}

/// The place of the inputs of samples.
enum SamplePlace<'a> {
    /// Splits of tensors, one after another, each with the index of its first sample.
    Splits(&'a Dataset, Vec<(Split, usize)>),
    /// Holds in memory.
    Holds(&'a EncodedHolds),
}

impl<'a> SampleSet<'a> {
    pub(crate) fn of_splits(
        dataset: &'a Dataset,
        splits: &[Split],
        shape: ModelShape,
        architecture: &dyn Architecture,
    ) -> Result<SampleSet<'a>> {
        let mut first_samples = Vec::new();
        let (mut labels, mut clusters) = (Vec::new(), Vec::new());
        for &split in splits {
            first_samples.push((split, labels.len()));
            let of_split: Vec<u8> = dataset.column(split, "label")?;
            labels.extend(of_split.into_iter().map(|label| label == 1));
            clusters.extend(dataset.column::<u32>(split, "group")?);
        }
        Ok(SampleSet {
            source: SamplePlace::Splits(dataset, first_samples),
            shape,
            takes_tokens: architecture.takes_tokens(),
            labels,
            clusters,
            weights: Vec::new(),
        })
    }

    /// Collects `holds` without labels.
    pub(crate) fn of_holds(
        holds: &'a EncodedHolds,
        shape: ModelShape,
        architecture: &dyn Architecture,
    ) -> SampleSet<'a> {
        SampleSet {
            source: SamplePlace::Holds(holds),
            shape,
            takes_tokens: architecture.takes_tokens(),
            labels: Vec::new(),
            clusters: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Returns the samples with these labels and weights.
    pub(crate) fn with_labels(self, labels: Vec<bool>, weights: Vec<f64>) -> SampleSet<'a> {
        SampleSet {
            labels,
            weights,
            ..self
        }
    }

    /// The number of samples.
    pub(crate) fn len(&self) -> usize {
        match &self.source {
            SamplePlace::Splits(..) => self.labels.len(),
            SamplePlace::Holds(holds) => holds.count,
        }
    }

    /// The cluster of a sample, by its number within the tensors; 0 for a hold in memory.
    pub(crate) fn cluster(&self, sample: usize) -> u32 {
        self.clusters.get(sample).copied().unwrap_or(0)
    }

    /// The inputs of a sample.
    fn inputs(&self, sample: usize) -> Result<SampleInputs<'_>> {
        match &self.source {
            SamplePlace::Splits(dataset, first_samples) => {
                let (split, at) = place(first_samples, sample);
                let tokens = self.takes_tokens.then(|| dataset.tokens(split, at));
                Ok(SampleInputs {
                    codes: dataset.codes(split, at),
                    shared: dataset.shared(split, at),
                    statics: dataset.statics(split, at),
                    tokens: tokens.transpose()?,
                })
            }
            SamplePlace::Holds(holds) => Ok(holds.inputs(sample)),
        }
    }

    /// The static features of a sample that the models take, `[s]`. The sample may have some for other models.
    fn statics(&self, sample: usize) -> &[f32] {
        match &self.source {
            _ if self.shape.s == 0 => &[],
            SamplePlace::Splits(dataset, first_samples) => {
                let (split, at) = place(first_samples, sample);
                dataset.statics(split, at)
            }
            SamplePlace::Holds(holds) => holds.inputs(sample).statics,
        }
    }

    /// The range of each static feature over the samples `learned`.
    pub(crate) fn static_range(&self, learned: &[usize]) -> StaticRange {
        let statics = learned.iter().map(|&sample| self.statics(sample));
        StaticRange::learn(self.shape.s, statics)
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
            let inputs = self.inputs(sample)?;
            codes.extend_from_slice(inputs.codes);
            shared.extend_from_slice(inputs.shared);
            statics.extend_from_slice(self.statics(sample));
            if let Some(of_sample) = inputs.tokens.filter(|_| self.takes_tokens) {
                of_sample.add_to(&mut tokens);
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

    /// The loss weight of each of the samples `learned`, `[n]`: its own, or else by cluster, see
    /// [`cluster_weights`], times `pos_weight` for a success.
    pub(crate) fn loss_weights(&self, learned: &[usize], pos_weight: f64) -> Vec<f32> {
        let weights = if self.weights.is_empty() {
            let clusters: Vec<u32> = learned.iter().map(|&sample| self.cluster(sample)).collect();
            cluster_weights(&clusters)
        } else {
            scaled_to_mean_1(learned.iter().map(|&sample| self.weights[sample]).collect())
        };
        let weighted = learned.iter().zip(weights).map(|(&sample, weight)| {
            let by_label = if self.labels[sample] { pos_weight } else { 1.0 };
            (weight * by_label) as f32
        });
        weighted.collect()
    }
}

/// The split of a sample, and the sample's index in it.
fn place(first_samples: &[(Split, usize)], sample: usize) -> (Split, usize) {
    let after = first_samples.partition_point(|(_, first)| *first <= sample);
    let (split, first) = first_samples[after - 1];
    (split, sample - first)
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
