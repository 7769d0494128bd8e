//! A network that has learned, with what its inputs need.

use anyhow::Result;

use super::hold_encoder::EncodedHolds;
use crate::training::fitting::{SampleSet, StaticRange, score_samples};
use crate::training::scoring::RollingPredictions;
use poolcast_models::Model;
use poolcast_tensors::{Dataset, Split};

/// A network, and the range of each static feature over the samples that it learned from.
#[derive(Debug, PartialEq)]
pub(crate) struct LearnedNetwork {
    pub(crate) model: Model,
    pub(crate) static_range: StaticRange,
}

/// The result of a training.
pub(crate) struct TrainedNetwork {
    /// The final network, with the weights of the best epoch.
    pub(crate) network: LearnedNetwork,
    /// Predictions for samples that were not learned from.
    pub(crate) predictions: RollingPredictions,
}

impl LearnedNetwork {
    /// The logits of the samples of one split, `[n]`.
    pub(crate) fn split_logits(&self, dataset: &Dataset, split: Split) -> Result<Vec<f32>> {
        let Model {
            shape,
            architecture,
            ..
        } = self.model;
        let samples = SampleSet::of_splits(dataset, &[split], shape, architecture)?;
        score_samples(&self.model, &samples, &self.static_range)
    }

    /// The logits of `holds`, `[n]`.
    pub(crate) fn hold_logits(&self, holds: &EncodedHolds) -> Result<Vec<f32>> {
        let Model {
            shape,
            architecture,
            ..
        } = self.model;
        let samples = SampleSet::of_holds(holds, shape, architecture);
        score_samples(&self.model, &samples, &self.static_range)
    }
}
