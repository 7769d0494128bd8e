//! One side of the tensors → the batches that a model takes.

use anyhow::Result;

use crate::models::{Architecture, ModelShape, SampleBatch};
use crate::tensors::{Dataset, SplitSide, TensorSettings};

/// The samples of one side, for models of one shape.
pub(super) struct SplitSamples<'a> {
    dataset: &'a Dataset,
    side: SplitSide,
    shape: ModelShape,
    pub(super) labels: Vec<bool>,
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
        Ok(SplitSamples {
            dataset,
            side,
            shape,
            labels: labels.into_iter().map(|label| label == 1).collect(),
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
            if s > 0 {
                statics.extend_from_slice(self.dataset.statics(self.side, sample));
            }
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
