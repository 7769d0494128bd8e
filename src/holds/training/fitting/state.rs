//! The state of a training between two batches.

use super::cut_choice::CutChoice;
use super::epoch::Epoch;
use crate::training::scoring::RollingPredictions;
use poolcast_config::Metric;
use poolcast_models::Model;
use poolcast_models::optim::Adam;

/// A model in training, with its optimiser.
#[derive(Debug)]
pub(crate) struct ModelState {
    pub(crate) model: Model,
    pub(crate) adam: Adam,
    /// Weights of the best epoch so far, in the model's order.
    pub(crate) best: Vec<Vec<f32>>,
}

impl ModelState {
    /// The state before the first batch.
    pub(crate) fn new(model: Model) -> ModelState {
        ModelState {
            adam: Adam::new(model.flat_weights().len()),
            best: model.weights(),
            model,
        }
    }
}

/// Everything that a training needs to continue. The only randomness in an epoch is the order of
/// its samples, which depends only on the seed and the epoch. The state of that generator is
/// therefore the epoch and the position in it.
#[derive(Debug)]
pub(crate) struct TrainingState {
    /// One model for each time cut, then the final model: see [`super::time_cuts`].
    pub(crate) models: Vec<ModelState>,
    /// Completed epochs.
    pub(crate) history: Vec<Epoch>,
    /// For each model, the epoch that the predictions of the other models choose.
    pub(crate) cut_choices: Vec<CutChoice>,
    /// Batches that the current epoch has learned from, over all models in their order.
    pub(crate) batch: usize,
    /// Sum of the loss over the samples of these batches.
    pub(crate) loss_sum: f64,
}

impl TrainingState {
    /// The state before the first batch. All `models` must start with the same weights.
    pub(crate) fn new(models: Vec<Model>) -> TrainingState {
        TrainingState {
            cut_choices: vec![CutChoice::default(); models.len()],
            models: models.into_iter().map(ModelState::new).collect(),
            history: Vec::new(),
            batch: 0,
            loss_sum: 0.0,
        }
    }

    /// The number of the current epoch, from 1.
    pub(crate) fn epoch(&self) -> usize {
        self.history.len() + 1
    }

    /// The final model.
    pub(crate) fn last_model(&self) -> &ModelState {
        self.models.last().expect("there is a model at least")
    }

    /// Records the models' predictions after the current epoch, for each cut separately.
    pub(crate) fn observe_cuts(
        &mut self,
        train_loss: f64,
        predictions: &RollingPredictions,
        metric: &Metric,
    ) {
        for (cut, choice) in self.cut_choices.iter_mut().enumerate() {
            choice.observe(cut, train_loss, predictions, metric);
        }
    }

    /// Completes the current epoch. If it is the best, keeps a copy of its weights.
    pub(crate) fn end_epoch(&mut self, epoch: Epoch) {
        if epoch.is_best {
            for state in &mut self.models {
                state.best = state.model.weights();
            }
        }
        self.history.push(epoch);
        self.batch = 0;
        self.loss_sum = 0.0;
    }

    /// Gives every model the weights of its best epoch.
    pub(crate) fn restore_best(&mut self) {
        for state in &mut self.models {
            state.model.set_weights(&state.best);
        }
    }
}
