//! One side of the tensors → the batches that a model takes.

use anyhow::Result;

use crate::models::{Architecture, ModelShape, SampleBatch};
use crate::tensors::{Dataset, STATIC_FEATURES, SplitSide};

/// The samples of one side, for models of one shape.
pub(super) struct SplitSamples<'a> {
    dataset: &'a Dataset,
    side: SplitSide,
    shape: ModelShape,
    pub(super) labels: Vec<bool>,
    /// `[n, s]`.
    statics: Vec<f32>,
}

/// The samples that a training learns from, and those by which it is watched.
pub(super) struct Splits<'a> {
    pub(super) train: SplitSamples<'a>,
    pub(super) validate: SplitSamples<'a>,
}

impl<'a> Splits<'a> {
    pub(super) fn new(dataset: &'a Dataset, shape: ModelShape) -> Result<Splits<'a>> {
        Ok(Splits {
            train: SplitSamples::new(dataset, SplitSide::Train, shape)?,
            validate: SplitSamples::new(dataset, SplitSide::Validate, shape)?,
        })
    }
}

impl<'a> SplitSamples<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        side: SplitSide,
        shape: ModelShape,
    ) -> Result<SplitSamples<'a>> {
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let mut statics = Vec::new();
        if shape.s > 0 {
            for facts in dataset.facts(side)? {
                statics.extend(facts.static_features());
            }
        }
        Ok(SplitSamples {
            dataset,
            side,
            shape,
            labels: labels.into_iter().map(|label| label == 1).collect(),
            statics,
        })
    }

    /// Calls `with` on the batch of some samples, which are named by their index.
    pub(super) fn with_batch<T>(
        &self,
        samples: &[usize],
        with: impl FnOnce(&SampleBatch<'_>) -> T,
    ) -> Result<T> {
        let s = self.shape.s;
        let mut codes = Vec::with_capacity(samples.len() * self.shape.m * self.shape.j);
        let mut statics = Vec::with_capacity(samples.len() * s);
        for &sample in samples {
            codes.extend_from_slice(self.dataset.codes(self.side, sample));
            statics.extend_from_slice(&self.statics[sample * s..][..s]);
        }
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

/// How many static features a model of this program takes.
pub(super) fn static_feature_count(architecture: &dyn Architecture) -> usize {
    if architecture.takes_statics() {
        STATIC_FEATURES
    } else {
        0
    }
}
