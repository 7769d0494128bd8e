//! Checkpoints: everything a training needs to go on as if it had never stopped, in one file, written after each epoch.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::train::Epoch;
use crate::error::hinted;
use crate::models::Model;
use crate::shard::{self, Column, Format, Shard};

/// The checkpoint's file name in a run.
pub(super) const FILE: &str = "checkpoint.safetensors";

const FORMAT: Format = Format { name: "checkpoint", version: 2, rebuild: "poolcast train TENSORS -o RUN --overwrite" };

/// The state of a training between two epochs. Batches and their order follow from seed and epoch, so no generator's
/// state is needed.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) model: Model,
    pub(super) adam: Adam,
    /// The weights of the best epoch so far, in the model's order.
    pub(super) best: Vec<Vec<f32>>,
    /// The epochs so far.
    pub(super) history: Vec<Epoch>,
}

#[derive(Serialize, Deserialize)]
struct Notes {
    key: String,
    step: u64,
    history: Vec<Epoch>,
}

/// The key of the training that left its checkpoint in `dir`.
pub fn checkpoint_key(dir: &Path) -> Option<String> {
    let shard = Shard::open(&dir.join(FILE), FORMAT).ok()?;
    shard.notes::<Notes>().ok().map(|notes| notes.key)
}

impl Checkpoint {
    /// Writes the checkpoint of the training called `key` to the run `dir`.
    pub(super) fn write(&self, dir: &Path, key: &str) -> Result<()> {
        let notes = Notes { key: key.to_owned(), step: self.adam.step, history: self.history.clone() };
        let weights = self.model.weights();
        let (first, second) = (self.model.split(&self.adam.first), self.model.split(&self.adam.second));
        let groups = [("weights", &weights), ("first", &first), ("second", &second), ("best", &self.best)];
        let names: Vec<&str> = self.model.parameters().iter().map(|parameter| &*parameter.name).collect();
        let columns = groups.iter().flat_map(|(group, vectors)| {
            names.iter().zip(*vectors).map(move |(name, vector)| (format!("{group}/{name}"), Column::vector(vector)))
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
                format!("`{}` belongs to a training on other tensors or with other settings", path.display()),
                "use its tensors and settings, or start anew with `--overwrite`"
            )
        );
        let column = |group: &str, name: &str| shard.column(&format!("{group}/{name}"));
        let group = |group: &str| model.join(|name| column(group, name));
        let weights = group("weights")?;
        let adam = Adam { first: group("first")?, second: group("second")?, step: notes.step };
        let best = model.split(&group("best")?);
        model.flat_mut().copy_from_slice(&weights);
        Ok(Checkpoint { model, adam, best, history: notes.history })
    }
}
