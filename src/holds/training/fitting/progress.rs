//! Progress updates of a training, and the reasons why it may end without a model.

use poolcast_models::optim::{NonFiniteLoss, TrainingStopped};

use super::epoch::Epoch;

/// A progress update for the listener.
#[derive(Debug)]
pub enum TrainingUpdate<'a> {
    /// The training has learned from a batch.
    Batch {
        /// Number of the current epoch, from 1.
        epoch: usize,
        /// Batches of this epoch so far.
        batch: usize,
        /// Batches in an epoch.
        batches: usize,
        /// Mean loss over the epoch so far.
        loss: f64,
    },
    /// An epoch has ended, and its checkpoint is on disk.
    Epoch(&'a Epoch),
}

/// Reasons for a training to end without a model.
#[derive(Debug)]
pub enum TrainError {
    /// The listener stopped it.
    Stopped(TrainingStopped),
    /// Its loss was NaN or infinite.
    NonFinite(NonFiniteLoss),
    /// Another error, in the settings, the tensors or the directory.
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
