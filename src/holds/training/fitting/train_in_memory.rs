//! Trains a network on holds in memory, like a run on tensors, and writes nothing.

use std::ops::ControlFlow;
use std::time::Duration;

use super::hold_learner::HoldLearner;
use super::progress::TrainingUpdate;
use super::samples::SampleSet;
use super::time_cuts::{SampleTimes, rolling_cuts};
use super::train::{initial_state, model_shape};
use crate::config::NetworkSettings;
use crate::training::runs::{EncodedHolds, TrainedNetwork};
use poolcast_models::Device;
use poolcast_models::optim::TrainError;

/// Labelled holds in memory, `n`.
pub(crate) struct TaughtHolds<'a> {
    /// Inputs, with the settings of the training.
    pub(crate) encoded: &'a EncodedHolds,
    /// Labels, `[n]`.
    pub(crate) labels: Vec<bool>,
    /// Weights in the loss, `[n]`.
    pub(crate) weights: Vec<f64>,
    /// Prediction times, and the times from which on the labels are known, `[n]`.
    pub(crate) times: Vec<SampleTimes>,
}

/// Trains a network with `settings` on `taught`. Returns `None` if no label is known early enough for a
/// prediction of later ones.
///
/// # Errors
/// Fails once `stop` returns true, and if a loss is NaN or infinite.
pub(crate) fn train_in_memory(
    taught: TaughtHolds<'_>,
    settings: &NetworkSettings,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<TrainedNetwork>, TrainError> {
    let NetworkSettings { training, tensors } = settings;
    let cuts = rolling_cuts(&taught.times, training.time_cuts);
    if cuts.is_empty() {
        return Ok(None);
    }

    let architecture = training.architecture()?;
    let shape = model_shape(tensors, training, architecture);
    let samples = SampleSet::of_holds(taught.encoded, shape, architecture)
        .with_labels(taught.labels, taught.weights);
    let mut state = initial_state(training, tensors, cuts.len(), &Device::Cpu)?;
    let listener = |_: TrainingUpdate<'_>| {
        if stop() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let learner = HoldLearner::new(training, samples, cuts, &|_| false, &listener)?;
    learner.train(&mut state, None, Duration::MAX).map(Some)
}
