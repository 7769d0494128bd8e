//! The state of a training between two batches.

use super::adam::Adam;
use super::epoch::Epoch;
use crate::models::Model;

/// Everything that a training needs to go on. What is random in an epoch, the order of its samples,
/// follows from the seed and the epoch by name, so the state of that generator is the epoch and the
/// place in it.
#[derive(Debug)]
pub(super) struct TrainingState {
    pub(super) model: Model,
    pub(super) adam: Adam,
    /// The weights of the best epoch so far, in the model's order.
    pub(super) best: Vec<Vec<f32>>,
    /// The epochs so far.
    pub(super) history: Vec<Epoch>,
    /// Batches that the epoch after these has learned from.
    pub(super) batch: usize,
    /// The sum of the loss over their samples.
    pub(super) loss_sum: f64,
}

impl TrainingState {
    /// Before the first batch.
    pub(super) fn new(model: Model) -> TrainingState {
        TrainingState {
            adam: Adam::new(model.flat_weights().len()),
            best: model.weights(),
            model,
            history: Vec::new(),
            batch: 0,
            loss_sum: 0.0,
        }
    }

    /// The epoch at work, counted from 1.
    pub(super) fn epoch(&self) -> usize {
        self.history.len() + 1
    }

    /// Ends the epoch at work.
    pub(super) fn end_epoch(&mut self, epoch: Epoch) {
        if epoch.is_best {
            self.best = self.model.weights();
        }
        self.history.push(epoch);
        self.batch = 0;
        self.loss_sum = 0.0;
    }
}
