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
