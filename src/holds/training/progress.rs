//! What a training tells whoever watches it, and why it may end without a model.

use poolcast_models::optim::{NonFiniteLoss, TrainingStopped};

use super::epoch::Epoch;

/// How far a training is.
#[derive(Debug)]
pub enum TrainingUpdate<'a> {
    /// It has learned from a batch.
    Batch {
        /// The epoch at work, counted from 1.
        epoch: usize,
        /// Batches of this epoch so far.
        batch: usize,
        /// Batches in an epoch.
        batches: usize,
        /// The mean loss over the epoch so far.
        loss: f64,
    },
    /// An epoch has ended, and its checkpoint is on disk.
    Epoch(&'a Epoch),
}

/// Why a training ended without a model.
#[derive(Debug)]
pub enum TrainError {
    /// It was asked to stop.
    Stopped(TrainingStopped),
    /// Its loss was NaN or infinite.
    NonFinite(NonFiniteLoss),
    /// Something else failed: its settings, its tensors or its directory.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for TrainError {
    fn from(error: anyhow::Error) -> TrainError {
        TrainError::Other(error)
    }
}

impl From<TrainError> for anyhow::Error {
    fn from(error: TrainError) -> anyhow::Error {
        match error {
            TrainError::Stopped(stopped) => stopped.into(),
            TrainError::NonFinite(loss) => loss.into(),
            TrainError::Other(error) => error,
        }
    }
}
