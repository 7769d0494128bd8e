//! The state of a training between two batches, and the epochs before.

use serde::{Deserialize, Serialize};

use poolcast_models::series::SeriesNetwork;
use poolcast_models::optim::Adam;

/// One epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningEpoch {
    /// Counted from 1.
    pub epoch: usize,
    /// The mean loss of the samples, each before the step that learns from it: hours, or their squares;
    /// of `dqn` in deviations of a window's cost.
    pub train_loss: f64,
    /// What the epoch is chosen by, less is better: what came of the windows that are held back, after
    /// it; for a head, of those that it learned from.
    pub judged_loss: f64,
    /// Whether that was the best so far.
    pub is_best: bool,
}

/// A training between two batches.
#[derive(Debug)]
pub(super) struct LearningState {
    pub(super) network: SeriesNetwork,
    pub(super) adam: Adam,
    /// The weights of the best epoch so far.
    pub(super) best: Vec<f32>,
    /// Those of the earlier network.
    pub(super) earlier: Vec<f32>,
    pub(super) history: Vec<LearningEpoch>,
    /// Batches of the epoch after these.
    pub(super) batch: usize,
    /// The sum of the losses of their samples.
    pub(super) loss_sum: f64,
}

impl LearningState {
    /// Before the first batch.
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

    /// Ends the epoch at work, which had `samples` and is judged by `judged_loss`.
    pub(super) fn end_epoch(&mut self, samples: usize, judged_loss: f64) {
        let best = self.history.iter().map(|epoch| epoch.judged_loss);
        let is_best = judged_loss < best.fold(f64::INFINITY, f64::min);
        if is_best {
            self.best = self.network.flat_weights().to_vec();
        }
        self.history.push(LearningEpoch {
            epoch: self.history.len() + 1,
            train_loss: self.loss_sum / samples as f64,
            judged_loss,
            is_best,
        });
        self.batch = 0;
        self.loss_sum = 0.0;
    }
}
