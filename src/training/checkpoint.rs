//! Checkpoints: everything a training needs to go on as if it had never stopped, in one file, written after each epoch,
//! every few minutes within one, and when somebody asks the training to stop.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::run::write_history;
use super::train::{Epoch, Progress, Stopped};
use crate::error::hinted;
use crate::models::Model;
use crate::shard::{self, ArtefactFormat, Shard, ShardColumn};

/// The checkpoint's file name in a run.
pub(super) const FILE: &str = "checkpoint.safetensors";

const FORMAT: ArtefactFormat = ArtefactFormat {
    name: "checkpoint",
    version: 3,
    rebuild: "poolcast train TENSORS -o RUN",
};

/// The state of a training between two batches. What is random in an epoch, the order of its samples, follows from the
/// seed and the epoch by name, so the state of that generator is the epoch and the place in it.
#[derive(Debug)]
pub(super) struct Checkpoint {
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

#[derive(Serialize, Deserialize)]
struct Notes {
    key: String,
    step: u64,
    history: Vec<Epoch>,
    batch: usize,
    loss_sum: f64,
}

/// The key of the training that left its checkpoint in `dir`.
pub fn checkpoint_key(dir: &Path) -> Option<String> {
    let shard = Shard::open(&dir.join(FILE), FORMAT).ok()?;
    shard.notes::<Notes>().ok().map(|notes| notes.key)
}

/// Copies the checkpoint of the training in `from` to the directory `to`, where it goes on.
pub fn copy_checkpoint(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    crate::files::write_atomic(
        &to.join(FILE),
        &crate::files::read_artefact(&from.join(FILE), u64::MAX)?,
    )
}

impl Checkpoint {
    /// Writes the checkpoint of the training called `key` to the run `dir`.
    pub(super) fn write(&self, dir: &Path, key: &str) -> Result<()> {
        let Checkpoint {
            batch, loss_sum, ..
        } = *self;
        let (key, history) = (key.to_owned(), self.history.clone());
        let notes = Notes {
            key,
            step: self.adam.step,
            history,
            batch,
            loss_sum,
        };
        let weights = self.model.weights();
        let (first, second) = (
            self.model.split_by_parameter(&self.adam.first),
            self.model.split_by_parameter(&self.adam.second),
        );
        let groups = [
            ("weights", &weights),
            ("first", &first),
            ("second", &second),
            ("best", &self.best),
        ];
        let names: Vec<&str> = self
            .model
            .parameters()
            .iter()
            .map(|parameter| &*parameter.name)
            .collect();
        let columns = groups.iter().flat_map(|(group, vectors)| {
            names
                .iter()
                .zip(*vectors)
                .map(move |(name, vector)| (format!("{group}/{name}"), ShardColumn::vector(vector)))
        });
        shard::write(&dir.join(FILE), FORMAT, &notes, columns.collect())
    }

    /// Reads the checkpoint in the run `dir` into `model`, whatever its weights were.
    ///
    /// # Errors
    /// Fails when it belongs to a training with another `key`: other tensors or other settings.
    pub(super) fn read(dir: &Path, key: &str, mut model: Model) -> Result<Checkpoint> {
        let path = dir.join(FILE);
        let shard = Shard::open(&path, FORMAT)?;
        let notes: Notes = shard.notes()?;
        ensure!(
            notes.key == key,
            hinted(
                format!(
                    "`{}` belongs to a training on other tensors or with other settings",
                    path.display()
                ),
                "use its tensors and settings, or name another directory"
            )
        );
        let column = |group: &str, name: &str| shard.column(&format!("{group}/{name}"));
        let group = |group: &str| model.join_parameters(|name| column(group, name));
        let weights = group("weights")?;
        let adam = Adam {
            first: group("first")?,
            second: group("second")?,
            step: notes.step,
        };
        let best = model.split_by_parameter(&group("best")?);
        model.flat_weights_mut().copy_from_slice(&weights);
        let Notes {
            history,
            batch,
            loss_sum,
            ..
        } = notes;
        Ok(Checkpoint {
            model,
            adam,
            best,
            history,
            batch,
            loss_sum,
        })
    }

    /// The epoch at work, counted from 1.
    pub(super) fn epoch(&self) -> usize {
        self.history.len() + 1
    }

    /// Ends the epoch at work.
    pub(super) fn end(&mut self, epoch: Epoch) {
        if epoch.is_best {
            self.best = self.model.weights();
        }
        self.history.push(epoch);
        (self.batch, self.loss_sum) = (0, 0.0);
    }
}

/// Writes the checkpoints of one training, and tells how far it is.
pub(super) struct Keeper<'a> {
    dir: &'a Path,
    key: &'a str,
    every: Duration,
    last: Instant,
    hear: &'a (dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync),
}

impl<'a> Keeper<'a> {
    /// The keeper of the training called `key` in the run `dir`.
    pub(super) fn new(
        dir: &'a Path,
        key: &'a str,
        every: Duration,
        hear: &'a (dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync),
    ) -> Keeper<'a> {
        Keeper {
            dir,
            key,
            every,
            last: Instant::now(),
            hear,
        }
    }

    /// After a batch, one of `batches`: writes a checkpoint if it is time for one.
    ///
    /// # Errors
    /// Fails with [`Stopped`], the checkpoint being written, when the listener wants no more.
    pub(super) fn after_batch(
        &mut self,
        state: &Checkpoint,
        batches: usize,
        loss: f64,
    ) -> Result<()> {
        let (epoch, batch) = (state.epoch(), state.batch);
        let stops = (self.hear)(Progress::Batch {
            epoch,
            batch,
            batches,
            loss,
        })
        .is_break();
        if stops || self.last.elapsed() >= self.every {
            self.write(state)?;
        }
        ensure!(
            !stops,
            Stopped {
                epoch,
                batch,
                batches
            }
        );
        Ok(())
    }

    /// After an epoch, the last one of `state`: writes a checkpoint and the history.
    pub(super) fn after_epoch(&mut self, state: &Checkpoint) -> Result<()> {
        self.write(state)?;
        write_history(self.dir, &state.history)?;
        // A wish to stop is heard again after the next batch, if there is one.
        let _ = state
            .history
            .last()
            .map(|epoch| (self.hear)(Progress::Epoch(epoch)));
        Ok(())
    }

    fn write(&mut self, state: &Checkpoint) -> Result<()> {
        state.write(self.dir, self.key)?;
        self.last = Instant::now();
        Ok(())
    }
}
