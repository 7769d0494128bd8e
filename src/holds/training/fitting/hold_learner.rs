//! Networks that learn from holds: the samples of each model, the gradient of its loss, and the
//! scores of an epoch.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::batch_noise::BatchNoise;
use super::cut_choice::chosen_predictions;
use super::epoch::{Epoch, write_history};
use super::epoch_times::EpochClock;
use super::judged_epochs;
use super::progress::{ProgressListener, TrainingUpdate};
use super::samples::SampleSet;
use super::score::score_selected;
use super::state::{CutChoices, HoldTrainingState};
use super::static_range::StaticRange;
use super::time_cuts::TimeCut;
use crate::config::TrainingSettings;
use crate::training::runs::{LearnedNetwork, TrainedNetwork};
use crate::training::scoring::{RollingPrediction, RollingPredictions};
use poolcast_models::optim::{
    AdamSettings, BatchProgress, Checkpoint, LearnedEpoch, Learner, LossGradient, NonFiniteLoss,
    TrainError, TrainingLoop,
};
use poolcast_models::{Gradient, Model, Targets, TrainingRecipe};

/// The samples of a training, and for each of its models the samples to learn from and to predict.
pub(crate) struct HoldLearner<'a> {
    settings: &'a TrainingSettings,
    recipe: TrainingRecipe,
    samples: SampleSet<'a>,
    cuts: Vec<TimeCut>,
    /// For each cut, the loss weight of each sample that is learned from.
    weights: Vec<Vec<f32>>,
    /// For each cut, the range of each static feature over the samples that are learned from.
    ranges: Vec<StaticRange>,
    /// The files that the training keeps up to date; `None` for a training in memory.
    pub(crate) record: Option<RunFiles<'a>>,
    gradient: Gradient,
    /// Ends the training early, given all epochs so far.
    ends: &'a (dyn Fn(&[Epoch]) -> bool + Sync),
    listener: &'a ProgressListener<'a>,
}

/// The files of a run that are written with each epoch.
pub(crate) struct RunFiles<'a> {
    /// The run's directory.
    pub(crate) dir: &'a Path,
    pub(crate) clock: EpochClock,
}

impl Learner for HoldLearner<'_> {
    type Network = Model;
    type Epoch = Epoch;
    type State = CutChoices;

    fn row_counts(&self) -> Vec<usize> {
        self.cuts.iter().map(|cut| cut.learned.len()).collect()
    }

    fn gradient(
        &mut self,
        state: &HoldTrainingState,
        number: usize,
        rows: &[usize],
    ) -> Result<LossGradient<'_>> {
        let learned = &self.cuts[number].learned;
        let weights = &self.weights[number];
        let batch: Vec<usize> = rows.iter().map(|&row| learned[row]).collect();
        let weights: Vec<f32> = rows.iter().map(|&row| weights[row]).collect();
        let targets = Targets {
            labels: &self.samples.labels_of(&batch),
            weights: &weights,
        };
        let model = &state.networks[number].network;
        let noise = BatchNoise {
            recipe: self.recipe,
            units: model.architecture.dropout_units(&model.shape),
            seed: self.settings.seed,
            place: [number as i64, state.epoch() as i64, state.batch as i64],
        };
        let range = &self.ranges[number];
        let loss = self
            .samples
            .with_batch(&batch, range, Some(&noise), |batch| {
                self.gradient.compute(model, batch, &targets)
            })??;
        Ok(LossGradient {
            loss_sum: loss * rows.len() as f64,
            values: self.gradient.values(),
        })
    }

    fn judge(
        &mut self,
        state: &mut HoldTrainingState,
        learned: &LearnedEpoch,
    ) -> Result<Epoch, TrainError> {
        let predictions = self.predict(state)?;
        let epoch = self.judge_epoch(&state.history, &predictions, learned)?;
        if let Some(record) = &mut self.record {
            record.clock.end_epoch(epoch.epoch, learned.rows)?;
        }
        let metric = &self.settings.metric;
        state
            .learner
            .observe(epoch.train_loss, &predictions, metric, self.keeps_last());
        Ok(epoch)
    }

    fn is_best(epoch: &Epoch) -> bool {
        epoch.is_best
    }

    fn is_over(&self, history: &[Epoch]) -> bool {
        judged_epochs::is_over(history, self.settings) || (self.ends)(history)
    }

    fn begin_epoch(&mut self) {
        if let Some(record) = &mut self.record {
            record.clock.begin_epoch();
        }
    }

    fn after_batch(
        &mut self,
        _state: &mut HoldTrainingState,
        progress: &BatchProgress,
    ) -> Result<ControlFlow<()>> {
        Ok((self.listener)(TrainingUpdate::Batch {
            epoch: progress.epoch,
            batch: progress.batch,
            batches: progress.batches,
            loss: progress.loss,
        }))
    }

    fn after_epoch(&mut self, history: &[Epoch]) -> Result<()> {
        if let Some(record) = &self.record {
            write_history(record.dir, history)?;
        }
        if let Some(epoch) = history.last() {
            // A request to stop is ignored here. The listener can repeat it after the next batch,
            // if there is one.
            let _ = (self.listener)(TrainingUpdate::Epoch(epoch));
        }
        Ok(())
    }
}

impl<'a> HoldLearner<'a> {
    /// Prepares the training of a network for each of `cuts`, in memory.
    pub(crate) fn new(
        settings: &'a TrainingSettings,
        samples: SampleSet<'a>,
        cuts: Vec<TimeCut>,
        ends: &'a (dyn Fn(&[Epoch]) -> bool + Sync),
        listener: &'a ProgressListener<'a>,
    ) -> Result<HoldLearner<'a>> {
        let pos_weight = settings.parameters.pos_weight;
        let weights = |cut: &TimeCut| samples.loss_weights(&cut.learned, pos_weight);
        let weights = cuts.iter().map(weights).collect();
        let ranges = |cut: &TimeCut| samples.static_range(&cut.learned);
        let ranges = cuts.iter().map(ranges).collect();
        Ok(HoldLearner {
            settings,
            recipe: settings.recipe()?,
            samples,
            cuts,
            weights,
            ranges,
            record: None,
            gradient: Gradient::default(),
            ends,
            listener,
        })
    }

    /// Trains from `state` to the end, with the `checkpoint` of a run and the interval between its writes. The
    /// result does not depend on either.
    ///
    /// # Errors
    /// Fails when the listener stops it, and when a loss is NaN or infinite.
    pub(crate) fn train(
        mut self,
        state: &mut HoldTrainingState,
        checkpoint: Option<Checkpoint<'_>>,
        interval: Duration,
    ) -> Result<TrainedNetwork, TrainError> {
        let settings = self.settings;
        let training = TrainingLoop {
            batch_size: settings.parameters.batch_size,
            seed: settings.seed,
            adam: AdamSettings::from(&settings.parameters),
            schedule: self.recipe.schedule,
            epochs: settings.epochs,
            checkpoint,
            interval,
        };
        training.train(&mut self, state)?;

        state.restore_best();
        let static_range = self.last_range();
        let predictions = self.held_out_predictions(state)?;
        let last = state.networks.pop().context("there is no model")?;
        Ok(TrainedNetwork {
            network: LearnedNetwork {
                model: last.network,
                static_range,
            },
            predictions,
        })
    }

    /// Returns true if the last epoch counts, and not the best one.
    fn keeps_last(&self) -> bool {
        self.recipe.max_epochs.is_some()
    }

    /// The static feature range of the final model.
    fn last_range(&self) -> StaticRange {
        let last = self.ranges.last().cloned();
        last.unwrap_or_else(|| self.samples.static_range(&[]))
    }

    /// The predictions for samples that were not learned from. For each cut they are the logits of
    /// the epoch that the other cuts chose.
    fn held_out_predictions(&self, state: &HoldTrainingState) -> Result<RollingPredictions> {
        Ok(chosen_predictions(self.predict(state)?, &state.learner.0))
    }

    /// Predicts for each cut the samples that follow it, with that cut's model.
    fn predict(&self, state: &HoldTrainingState) -> Result<RollingPredictions> {
        let mut predictions = RollingPredictions::default();
        for (number, (cut, state)) in self.cuts.iter().zip(&state.networks).enumerate() {
            let logits = score_selected(
                &state.network,
                &self.samples,
                &self.ranges[number],
                &cut.predicted,
            )?;
            for (&sample, logit) in cut.predicted.iter().zip(logits) {
                predictions.push(RollingPrediction {
                    sample,
                    cluster: self.samples.cluster(sample),
                    cut: number,
                    logit,
                    label: self.samples.labels[sample],
                });
            }
        }
        Ok(predictions)
    }

    /// Returns the epoch after `history` with its scores, given the models' `predictions` after it.
    ///
    /// # Errors
    /// Fails with [`TrainError::NonFinite`] if the validation loss is NaN or infinite.
    fn judge_epoch(
        &self,
        history: &[Epoch],
        predictions: &RollingPredictions,
        learned: &LearnedEpoch,
    ) -> Result<Epoch, TrainError> {
        let LearnedEpoch {
            epoch, train_loss, ..
        } = *learned;
        let metric = &self.settings.metric;
        let mut judged = judged_epochs::judge_epoch(history, train_loss, predictions, metric);
        judged.is_best |= self.keeps_last();
        if !judged.validation_loss.is_finite() {
            return Err(NonFiniteLoss { epoch }.into());
        }
        Ok(judged)
    }
}
