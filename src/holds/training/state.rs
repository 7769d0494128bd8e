//! The state of a training between two batches.

use poolcast_models::optim::Adam;
use super::cut_choice::CutChoice;
use super::epoch::Epoch;
use super::rolling_predictions::RollingPredictions;
use poolcast_config::Metric;
use poolcast_models::Model;

/// A model on its way, and its optimiser.
#[derive(Debug)]
pub(super) struct ModelState {
    pub(super) model: Model,
    pub(super) adam: Adam,
    /// The weights of the best epoch so far, in the model's order.
    pub(super) best: Vec<Vec<f32>>,
}

impl ModelState {
    /// Before the first batch.
    pub(super) fn new(model: Model) -> ModelState {
        ModelState {
            adam: Adam::new(model.flat_weights().len()),
            best: model.weights(),
            model,
        }
    }
}

/// Everything that a training needs to go on. What is random in an epoch, the order of its samples,
/// follows from the seed and the epoch by name, so the state of that generator is the epoch and the
/// place in it.
#[derive(Debug)]
pub(super) struct TrainingState {
    /// A model for each time cut, and last the one that remains: see [`super::time_cuts`].
    pub(super) models: Vec<ModelState>,
    /// The epochs so far.
    pub(super) history: Vec<Epoch>,
    /// For each model, the epoch that the predictions of the others choose.
    pub(super) cut_choices: Vec<CutChoice>,
    /// Batches that the epoch after these has learned from, over all models in their order.
    pub(super) batch: usize,
    /// The sum of the loss over their samples.
    pub(super) loss_sum: f64,
}

impl TrainingState {
    /// Before the first batch of models that all begin with the same weights.
    pub(super) fn new(models: Vec<Model>) -> TrainingState {
        TrainingState {
            cut_choices: vec![CutChoice::default(); models.len()],
            models: models.into_iter().map(ModelState::new).collect(),
            history: Vec::new(),
            batch: 0,
            loss_sum: 0.0,
        }
    }

    /// The epoch at work, counted from 1.
    pub(super) fn epoch(&self) -> usize {
        self.history.len() + 1
    }

    /// The model that remains.
    pub(super) fn last_model(&self) -> &ModelState {
        self.models.last().expect("there is a model at least")
    }

    /// Takes note of what the models predict after the epoch at work, for each cut on its own.
    pub(super) fn observe_cuts(
        &mut self,
        train_loss: f64,
        predictions: &RollingPredictions,
        metric: &Metric,
    ) {
        for (cut, choice) in self.cut_choices.iter_mut().enumerate() {
            choice.observe(cut, train_loss, predictions, metric);
        }
    }

    /// Ends the epoch at work.
    pub(super) fn end_epoch(&mut self, epoch: Epoch) {
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
    pub(super) fn restore_best(&mut self) {
        for state in &mut self.models {
            state.model.set_weights(&state.best);
        }
    }
}
