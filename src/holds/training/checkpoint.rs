//! Checkpoints: everything a training needs to go on as if it had never stopped, in one file. It is
//! written after each epoch, every few minutes within one, and when somebody asks the training to
//! stop.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_models::optim::Adam;
use super::cut_choice::CutChoice;
use super::epoch::{Epoch, write_history};
use super::progress::{TrainError, TrainingUpdate};
use poolcast_models::optim::TrainingStopped;
use super::run_dir::{CHECKPOINT_FILE, CHECKPOINT_FORMAT, TIMES_FILE};
use super::state::{ModelState, TrainingState};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_models::Model;
use poolcast_base::shard::{self, Shard, ShardColumn};

/// What a checkpoint says beside its vectors.
#[derive(Serialize, Deserialize)]
struct CheckpointNotes {
    key: String,
    /// Of each model: how often its weights were changed.
    steps: Vec<u64>,
    history: Vec<Epoch>,
    /// Of each model: the epochs as the predictions of the others judge them.
    judged_by_others: Vec<Vec<Epoch>>,
    batch: usize,
    loss_sum: f64,
}

/// The key of the training that left its checkpoint in `dir`.
pub fn checkpoint_key(dir: &Path) -> Option<String> {
    let shard = Shard::open(&dir.join(CHECKPOINT_FILE), CHECKPOINT_FORMAT).ok()?;
    shard.notes::<CheckpointNotes>().ok().map(|notes| notes.key)
}

/// Copies the checkpoint of the training in `from`, and when its epochs were, to the directory `to`,
/// where it goes on.
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

/// Writes the checkpoint of the training called `key` to its directory.
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

/// The column of what a model predicted after the epoch that the others choose for it.
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

/// Reads the checkpoint in `dir` into `models`, whatever their weights were.
///
/// # Errors
/// Fails when it belongs to a training with another `key`: other tensors or other settings.
pub(super) fn read_checkpoint(dir: &Path, key: &str, models: Vec<Model>) -> Result<TrainingState> {
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

/// Who watches a training, and may stop it after a batch.
pub(super) type ProgressListener<'a> = dyn Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync + 'a;

/// Writes the checkpoints of one training, and tells how far it is.
pub(super) struct CheckpointWriter<'a> {
    dir: &'a Path,
    key: &'a str,
    interval: Duration,
    last_written: Instant,
    listener: &'a ProgressListener<'a>,
}

impl<'a> CheckpointWriter<'a> {
    /// For the training called `key` in `dir`.
    pub(super) fn new(
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

    /// After a batch, one of `batches`: writes a checkpoint if it is time for one.
    ///
    /// # Errors
    /// Fails with [`TrainError::Stopped`], the checkpoint being written, when the listener wants no
    /// more.
    pub(super) fn after_batch(
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

    /// After an epoch, the last one of `state`: writes a checkpoint and the history.
    pub(super) fn after_epoch(&mut self, state: &TrainingState) -> Result<()> {
        self.write(state)?;
        write_history(self.dir, &state.history)?;
        if let Some(epoch) = state.history.last() {
            // A wish to stop is heard again after the next batch, if there is one.
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
