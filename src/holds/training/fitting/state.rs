//! The state of a training between two batches.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::cut_choice::CutChoice;
use super::epoch::Epoch;
use crate::training::scoring::RollingPredictions;
use poolcast_base::shard::Shard;
use poolcast_config::Metric;
use poolcast_models::Model;
use poolcast_models::optim::{self, LearnerState};

/// The state of a training: one model for each time cut, then the final model, see
/// [`super::time_cuts`].
pub(crate) type HoldTrainingState = optim::TrainingState<Model, Epoch, CutChoices>;

/// For each model, the epoch that the predictions of the other models choose.
#[derive(Debug)]
pub(crate) struct CutChoices(pub(crate) Vec<CutChoice>);

impl CutChoices {
    /// Records the models' `predictions` after an epoch, for each cut separately. If `keeps_last`
    /// is set, each epoch counts as better than the earlier ones.
    pub(crate) fn observe(
        &mut self,
        train_loss: f64,
        predictions: &RollingPredictions,
        metric: &Metric,
        keeps_last: bool,
    ) {
        for (cut, choice) in self.0.iter_mut().enumerate() {
            choice.observe(cut, train_loss, predictions, metric, keeps_last);
        }
    }
}

/// The epochs of all models as they are in a checkpoint.
#[derive(Serialize, Deserialize)]
pub(crate) struct CutNotes {
    /// For each model, the epochs as judged by the predictions of the other models.
    judged_by_others: Vec<Vec<Epoch>>,
}

impl LearnerState for CutChoices {
    type Notes = CutNotes;

    fn notes(&self) -> CutNotes {
        CutNotes {
            judged_by_others: self.0.iter().map(|choice| choice.epochs.clone()).collect(),
        }
    }

    fn columns(&self) -> Vec<(String, &[f32])> {
        let choices = self.0.iter().enumerate();
        choices
            .map(|(number, choice)| (chosen_logits_column(number), &choice.logits[..]))
            .collect()
    }

    fn read(notes: CutNotes, shard: &Shard, models: usize) -> Result<CutChoices> {
        let judged = notes.judged_by_others;
        ensure!(
            judged.len() == models,
            "`{}` has epochs of {} models, not {models}",
            shard.path().display(),
            judged.len()
        );
        let mut choices = Vec::with_capacity(models);
        for (number, epochs) in judged.into_iter().enumerate() {
            let logits = shard.column(&chosen_logits_column(number))?.to_vec();
            choices.push(CutChoice { epochs, logits });
        }
        Ok(CutChoices(choices))
    }
}

/// The name of the column with a model's predictions after the epoch that the other cuts choose for
/// it.
fn chosen_logits_column(number: usize) -> String {
    format!("{number}/chosen_logits")
}
