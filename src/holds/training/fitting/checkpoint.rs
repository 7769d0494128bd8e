//! Checkpoints: one file with everything that a training needs to resume as if it had never
//! stopped. A checkpoint is written after each epoch, every few minutes within an epoch, and when a
//! listener stops the training.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::cut_choice::CutChoice;
use super::epoch::{Epoch, write_history};
use super::progress::{TrainError, TrainingUpdate};
use super::state::{ModelState, TrainingState};
use crate::training::runs::{CHECKPOINT_FILE, CHECKPOINT_FORMAT, TIMES_FILE};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::shard::{self, Shard, ShardColumn};
use poolcast_models::Model;
use poolcast_models::optim::Adam;
use poolcast_models::optim::TrainingStopped;

/// Contents of a checkpoint apart from its vectors.
#[derive(Serialize, Deserialize)]
struct CheckpointNotes {
    key: String,
    /// Optimiser steps taken, for each model.
    steps: Vec<u64>,
    history: Vec<Epoch>,
    /// For each model, the epochs as judged by the predictions of the other models.
    judged_by_others: Vec<Vec<Epoch>>,
    batch: usize,
    loss_sum: f64,
}

/// The key of the training whose checkpoint is in `dir`. `None` without a readable checkpoint.
pub fn checkpoint_key(dir: &Path) -> Option<String> {
    let shard = Shard::open(&dir.join(CHECKPOINT_FILE), CHECKPOINT_FORMAT).ok()?;
    shard.notes::<CheckpointNotes>().ok().map(|notes| notes.key)
}

/// Copies the checkpoint and the epoch times of the training in `from` to the directory `to`, so
/// that the training can resume there.
pub fn copy_checkpoint(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    let times = from.join(TIMES_FILE);
    if times.is_file() {
        let bytes = files::read_artefact(&times, u64::MAX)?;
        files::write_atomic(&to.join(TIMES_FILE), &bytes)?;
    }
    let bytes = files::read_artefact(&from.join(CHECKPOINT_FILE), u64::MAX)?;
    files::write_atomic(&to.join(CHECKPOINT_FILE), &bytes)
}

/// Writes the checkpoint of the training with this `key` to its directory.
fn write_checkpoint(dir: &Path, key: &str, state: &TrainingState) -> Result<()> {
    let notes = CheckpointNotes {
        key: key.to_owned(),
        steps: state.models.iter().map(|state| state.adam.step).collect(),
        history: state.history.clone(),
        judged_by_others: state
            .cut_choices
            .iter()
            .map(|choice| choice.epochs.clone())
            .collect(),
        batch: state.batch,
        loss_sum: state.loss_sum,
    };

    let vectors: Vec<ModelVectors<'_>> = state.models.iter().map(ModelVectors::new).collect();
    let mut columns = Vec::new();
    for (number, (state, vectors)) in state.models.iter().zip(&vectors).enumerate() {
        for (group, vectors) in vectors.groups() {
            for (parameter, vector) in state.model.parameters().iter().zip(vectors) {
                let name = format!("{number}/{group}/{}", parameter.name);
                columns.push((name, ShardColumn::vector(vector)));
            }
        }
    }
    for (number, choice) in state.cut_choices.iter().enumerate() {
        let logits = ShardColumn::vector(&choice.logits);
        columns.push((chosen_logits_column(number), logits));
    }
    shard::write(
        &dir.join(CHECKPOINT_FILE),
        CHECKPOINT_FORMAT,
        &notes,
        columns,
    )
}

/// The name of the column with a model's predictions after the epoch that the other cuts choose for
/// it.
fn chosen_logits_column(number: usize) -> String {
    format!("{number}/chosen_logits")
}

/// The vectors of one model in a checkpoint, by parameter.
struct ModelVectors<'a> {
    weights: Vec<Vec<f32>>,
    first_moments: Vec<Vec<f32>>,
    second_moments: Vec<Vec<f32>>,
    best: &'a Vec<Vec<f32>>,
}

impl ModelVectors<'_> {
    fn new(state: &ModelState) -> ModelVectors<'_> {
        ModelVectors {
            weights: state.model.weights(),
            first_moments: state.model.split_by_parameter(&state.adam.first),
            second_moments: state.model.split_by_parameter(&state.adam.second),
            best: &state.best,
        }
    }

    fn groups(&self) -> [(&'static str, &Vec<Vec<f32>>); 4] {
        [
            ("weights", &self.weights),
            ("first", &self.first_moments),
            ("second", &self.second_moments),
            ("best", self.best),
        ]
    }
}

/// Reads the checkpoint in `dir` into `models` and replaces their weights.
///
/// # Errors
/// Fails when the checkpoint belongs to a training with another `key`: other tensors or other
/// settings.
pub(crate) fn read_checkpoint(dir: &Path, key: &str, models: Vec<Model>) -> Result<TrainingState> {
    let path = dir.join(CHECKPOINT_FILE);
    let shard = Shard::open(&path, CHECKPOINT_FORMAT)?;
    let notes: CheckpointNotes = shard.notes()?;
    ensure!(
        notes.key == key && [notes.steps.len(), notes.judged_by_others.len()] == [models.len(); 2],
        hinted(
            format!(
                "`{}` belongs to a training on other tensors or with other settings",
                path.display()
            ),
            "use its tensors and settings, or name another directory"
        )
    );

    let mut cut_choices = Vec::with_capacity(models.len());
    for (number, epochs) in notes.judged_by_others.into_iter().enumerate() {
        let logits = shard.column::<f32>(&chosen_logits_column(number))?.to_vec();
        cut_choices.push(CutChoice { epochs, logits });
    }

    let mut states = Vec::with_capacity(models.len());
    for ((number, model), step) in models.into_iter().enumerate().zip(notes.steps) {
        states.push(read_model_state(&shard, number, model, step)?);
    }
    Ok(TrainingState {
        models: states,
        history: notes.history,
        cut_choices,
        batch: notes.batch,
        loss_sum: notes.loss_sum,
    })
}

fn read_model_state(
    shard: &Shard,
    number: usize,
    mut model: Model,
    step: u64,
) -> Result<ModelState> {
    let read_group = |group: &str| {
        model.join_parameters(|name| shard.column(&format!("{number}/{group}/{name}")))
    };
    let weights = read_group("weights")?;
    let adam = Adam {
        first: read_group("first")?,
        second: read_group("second")?,
        step,
    };
    let best = model.split_by_parameter(&read_group("best")?);
    model.flat_weights_mut().copy_from_slice(&weights);
    Ok(ModelState { model, adam, best })
}

/// A callback that watches a training and may stop it after a batch.
pub(crate) type ProgressListener<'a> = dyn Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync + 'a;

/// Writes the checkpoints of one training, and reports its progress to the listener.
pub(crate) struct CheckpointWriter<'a> {
    dir: &'a Path,
    key: &'a str,
    interval: Duration,
    last_written: Instant,
    listener: &'a ProgressListener<'a>,
}

impl<'a> CheckpointWriter<'a> {
    /// Creates a writer for the training with this `key` in `dir`.
    pub(crate) fn new(
        dir: &'a Path,
        key: &'a str,
        interval: Duration,
        listener: &'a ProgressListener<'a>,
    ) -> CheckpointWriter<'a> {
        CheckpointWriter {
            dir,
            key,
            interval,
            last_written: Instant::now(),
            listener,
        }
    }

    /// Reports a batch to the listener. `batches` is the number of batches in an epoch. Writes a
    /// checkpoint if the interval has passed or the listener stops the training.
    ///
    /// # Errors
    /// Fails with [`TrainError::Stopped`] when the listener stops the training. The checkpoint has
    /// been written by then.
    pub(crate) fn after_batch(
        &mut self,
        state: &TrainingState,
        batches: usize,
        loss: f64,
    ) -> Result<(), TrainError> {
        let epoch = state.epoch();
        let batch = state.batch;
        let progress = TrainingUpdate::Batch {
            epoch,
            batch,
            batches,
            loss,
        };
        let stops = (self.listener)(progress).is_break();

        if stops || self.last_written.elapsed() >= self.interval {
            self.write(state)?;
        }
        if stops {
            return Err(TrainError::Stopped(TrainingStopped {
                epoch,
                batch,
                batches,
            }));
        }
        Ok(())
    }

    /// Writes a checkpoint and the history after the last epoch of `state`, then reports the epoch
    /// to the listener.
    pub(crate) fn after_epoch(&mut self, state: &TrainingState) -> Result<()> {
        self.write(state)?;
        write_history(self.dir, &state.history)?;
        if let Some(epoch) = state.history.last() {
            // A request to stop is ignored here. The listener can repeat it after the next batch,
            // if there is one.
            let _ = (self.listener)(TrainingUpdate::Epoch(epoch));
        }
        Ok(())
    }

    fn write(&mut self, state: &TrainingState) -> Result<()> {
        write_checkpoint(self.dir, self.key, state)?;
        self.last_written = Instant::now();
        Ok(())
    }
}
