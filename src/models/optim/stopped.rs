//! Reasons why a training ends without a model.

/// The listener stopped the training. Its checkpoint is on disk.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the training was stopped in epoch {epoch} after batch {batch} of {batches}")]
pub struct TrainingStopped {
    /// Number of the current epoch, from 1.
    pub epoch: usize,
    /// Batches of this epoch so far.
    pub batch: usize,
    /// Batches in an epoch.
    pub batches: usize,
}

/// The loss was NaN or infinite. The trial failed, and will fail again with the same settings.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the loss is not finite in epoch {epoch}; a smaller learning rate may help")]
pub struct NonFiniteLoss {
    /// Number of the epoch, from 1.
    pub epoch: usize,
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

impl From<TrainingStopped> for TrainError {
    fn from(stopped: TrainingStopped) -> TrainError {
        TrainError::Stopped(stopped)
    }
}

impl From<NonFiniteLoss> for TrainError {
    fn from(loss: NonFiniteLoss) -> TrainError {
        TrainError::NonFinite(loss)
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
