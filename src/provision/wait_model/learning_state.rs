//! State of a training between two batches, with the history of its epochs.

use serde::{Deserialize, Serialize};

use poolcast_models::optim::{Adam, WatchedEpochs};
use poolcast_models::series::SeriesNetwork;

/// Result of one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean loss of the samples, each measured before the step that learns from it. The unit is
    /// hours or squared hours; for `dqn`, standard deviations of the submission cost.
    pub train_loss: f64,
    /// Loss by which the best epoch is chosen; lower is better. It is measured after the epoch on
    /// the held-back windows; for a head, on the learned windows.
    pub judged_loss: f64,
    /// True if no earlier epoch had a loss as low.
    pub is_best: bool,
}

/// State of a training between two batches.
#[derive(Debug)]
pub(super) struct LearningState {
    pub(super) network: SeriesNetwork,
    pub(super) adam: Adam,
    /// Weights of the best epoch so far.
    pub(super) best: Vec<f32>,
    /// Weights of the target network.
    pub(super) earlier: Vec<f32>,
    pub(super) history: Vec<LearningEpoch>,
    /// Finished batches of the current epoch.
    pub(super) batch: usize,
    /// Sum of the losses of the samples in these batches.
    pub(super) loss_sum: f64,
}

impl LearningState {
    /// Creates the state before the first batch.
    pub(super) fn new(network: SeriesNetwork) -> LearningState {
        let weights = network.flat_weights().to_vec();
        LearningState {
            adam: Adam::new(weights.len()),
            earlier: weights.clone(),
            best: weights,
            network,
            history: Vec::new(),
            batch: 0,
            loss_sum: 0.0,
        }
    }

    /// Ends the current epoch of `samples` samples, with the evaluation result `judged_loss`.
    pub(super) fn end_epoch(&mut self, samples: usize, judged_loss: f64) {
        self.history.push(LearningEpoch {
            epoch: self.history.len() + 1,
            train_loss: self.loss_sum / samples as f64,
            judged_loss,
            is_best: false,
        });
        let is_best = watched_epochs(&self.history).is_last_best();
        if let Some(last) = self.history.last_mut() {
            last.is_best = is_best;
        }
        if is_best {
            self.best = self.network.flat_weights().to_vec();
        }
        self.batch = 0;
        self.loss_sum = 0.0;
    }
}

/// Returns the losses by which the best of `epochs` is chosen.
pub(super) fn watched_epochs(epochs: &[LearningEpoch]) -> WatchedEpochs {
    WatchedEpochs::of_loss(epochs.iter().map(|epoch| epoch.judged_loss))
}
