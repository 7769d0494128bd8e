//! One side of the tensors → the batches that a model takes.

use anyhow::Result;

use crate::models::{ModelShape, SampleBatch};
use crate::tensors::{Dataset, SplitSide};

/// The samples of one side, for models of one shape.
pub(super) struct Samples<'a> {
    dataset: &'a Dataset,
    side: SplitSide,
    shape: ModelShape,
    pub(super) labels: Vec<bool>,
    /// `[n, s]`.
    statics: Vec<f32>,
}

impl<'a> Samples<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        side: SplitSide,
        shape: ModelShape,
    ) -> Result<Samples<'a>> {
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let statics = match shape.s {
            0 => Vec::new(),
            _ => dataset
                .facts(side)?
                .iter()
                .flat_map(|facts| facts.static_features())
                .collect(),
        };
        Ok(Samples {
            dataset,
            side,
            shape,
            labels: labels.into_iter().map(|label| label == 1).collect(),
            statics,
        })
    }

    /// Calls `with` on the samples at `places`.
    pub(super) fn batch<T>(
        &self,
        places: &[usize],
        with: impl FnOnce(&SampleBatch<'_>) -> T,
    ) -> Result<T> {
        let s = self.shape.s;
        let codes: Vec<u8> = places
            .iter()
            .flat_map(|&at| self.dataset.codes(self.side, at))
            .copied()
            .collect();
        let statics: Vec<f32> = places
            .iter()
            .flat_map(|&at| &self.statics[at * s..][..s])
            .copied()
            .collect();
        Ok(with(&SampleBatch::new(&self.shape, &codes, &statics)?))
    }
}
