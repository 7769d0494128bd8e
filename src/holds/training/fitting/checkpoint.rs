//! Checkpoints of a run. A checkpoint is written after each epoch, every few minutes within an
//! epoch, and when a listener stops the training.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::epoch::write_history;
use super::progress::{TrainError, TrainingUpdate};
use super::state::TrainingState;
use crate::training::runs::{CHECKPOINT_FILE, CHECKPOINT_FORMAT, TIMES_FILE};
use poolcast_base::files;
use poolcast_models::optim::{Checkpoint, CheckpointSummary, TrainingStopped};

/// The key of the training whose checkpoint is in `dir`. `None` without a readable checkpoint.
pub fn checkpoint_key(dir: &Path) -> Option<String> {
    let found = CheckpointSummary::read(&dir.join(CHECKPOINT_FILE), &CHECKPOINT_FORMAT)?;
    Some(found.key)
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

/// A callback that watches a training and may stop it after a batch.
pub(crate) type ProgressListener<'a> = dyn Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync + 'a;

/// Writes the checkpoints of one training, and reports its progress to the listener.
pub(crate) struct CheckpointWriter<'a> {
    dir: &'a Path,
    checkpoint: Checkpoint<'a>,
    interval: Duration,
    last_written: Instant,
    listener: &'a ProgressListener<'a>,
}

impl<'a> CheckpointWriter<'a> {
    /// Creates a writer for the training in `dir`.
    pub(crate) fn new(
        dir: &'a Path,
        checkpoint: Checkpoint<'a>,
        interval: Duration,
        listener: &'a ProgressListener<'a>,
    ) -> CheckpointWriter<'a> {
        CheckpointWriter {
            dir,
            checkpoint,
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
        self.checkpoint.write(state)?;
        self.last_written = Instant::now();
        Ok(())
    }
}
