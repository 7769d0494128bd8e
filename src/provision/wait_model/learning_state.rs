//! State of a training between two batches, with the history of its epochs.

use serde::{Deserialize, Serialize};

use super::training_checkpoint::TargetWeights;
use poolcast_models::optim::{TrainingState, WatchedEpochs};
use poolcast_published::series::SeriesNetwork;

/// Result of one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean loss of the samples, each measured before the step that learns from it. The unit is
    /// hours or squared hours; for `dqn`, standard deviations of the submission cost.
    pub train_loss: f64,
    /// Loss by which the best epoch is chosen; lower is better. It is measured after the epoch on
    /// the held-back windows; for a head, such as `policy_gradient`, it is the cost on the learned
    /// windows.
    pub judged_loss: f64,
    /// True if no earlier epoch had a loss as low.
    pub is_best: bool,
}

/// State of a training between two batches.
pub(super) type LearningState = TrainingState<SeriesNetwork, LearningEpoch, TargetWeights>;

/// Returns the losses by which the best of `epochs` is chosen.
pub(super) fn watched_epochs(epochs: &[LearningEpoch]) -> WatchedEpochs {
    WatchedEpochs::of_loss(epochs.iter().map(|epoch| epoch.judged_loss))
}
