//! Checkpoints: everything that a training needs to go on as if it had never stopped, in one file.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::learning_state::{LearningEpoch, LearningState};
use crate::error::hinted;
use crate::models::AlignedFloats;
use crate::models::series::SeriesNetwork;
use crate::shard::{self, ArtefactFormat, Shard, ShardColumn};
use crate::training::Adam;

/// Its file beside the model that is not done yet.
pub(super) const CHECKPOINT_FILE: &str = "checkpoint.safetensors";

/// Checkpoints of models of waits.
const CHECKPOINT_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "wait model checkpoint",
    version: 1,
    rebuild: "poolcast provision train SAMPLES -o MODEL",
};

/// What a checkpoint says beside its vectors.
#[derive(Serialize, Deserialize)]
struct WaitCheckpointNotes {
    key: String,
    /// How often the weights were changed.
    step: u64,
    history: Vec<LearningEpoch>,
    batch: usize,
    loss_sum: f64,
}

/// What a checkpoint is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCheckpoint {
    /// The key of its training.
    pub key: String,
    /// The epochs that this has gone through.
    pub epochs: usize,
}

/// What the checkpoint in `dir` is of, if there is one.
pub fn read_wait_checkpoint(dir: &Path) -> Option<WaitCheckpoint> {
    let shard = Shard::open(&dir.join(CHECKPOINT_FILE), CHECKPOINT_FORMAT).ok()?;
    let notes: WaitCheckpointNotes = shard.notes().ok()?;
    Some(WaitCheckpoint {
        key: notes.key,
        epochs: notes.history.len(),
    })
}

/// Writes the checkpoint of the training called `key`.
pub(super) fn write_checkpoint(dir: &Path, key: &str, state: &LearningState) -> Result<()> {
    let notes = WaitCheckpointNotes {
        key: key.to_owned(),
        step: state.adam.step,
        history: state.history.clone(),
        batch: state.batch,
        loss_sum: state.loss_sum,
    };
    let vectors: [(&str, &[f32]); 5] = [
        ("weights", state.network.flat_weights()),
        ("first", &state.adam.first),
        ("second", &state.adam.second),
        ("best", &state.best),
        ("earlier", &state.earlier),
    ];
    let column = |(name, vector): (&str, _)| (str::to_owned(name), ShardColumn::vector(vector));
    let columns = vectors.map(column).into();
    shard::write(
        &dir.join(CHECKPOINT_FILE),
        CHECKPOINT_FORMAT,
        &notes,
        columns,
    )
}

/// The state of the training called `key`: that of the checkpoint in `dir`, or the first one of
/// `network` where there is none.
///
/// # Errors
/// Fails when the checkpoint belongs to another training.
pub(super) fn read_checkpoint(
    dir: &Path,
    key: &str,
    mut network: SeriesNetwork,
) -> Result<LearningState> {
    let path = dir.join(CHECKPOINT_FILE);
    if !path.is_file() {
        return Ok(LearningState::new(network));
    }
    let shard = Shard::open(&path, CHECKPOINT_FORMAT)?;
    let notes: WaitCheckpointNotes = shard.notes()?;
    ensure!(
        notes.key == key,
        hinted(
            format!("`{}` belongs to another training", path.display()),
            "name another directory; `--help` says how one is replaced"
        )
    );

    let count = network.flat_weights().len();
    let vector = |name: &str| -> Result<&[f32]> {
        let vector: &[f32] = shard.column(name)?;
        ensure!(
            vector.len() == count,
            "`{}` has {} numbers in `{name}`, not {count}",
            path.display(),
            vector.len()
        );
        Ok(vector)
    };
    let adam = Adam {
        first: aligned(vector("first")?),
        second: aligned(vector("second")?),
        step: notes.step,
    };
    network
        .flat_weights_mut()
        .copy_from_slice(vector("weights")?);
    Ok(LearningState {
        network,
        adam,
        best: vector("best")?.to_vec(),
        earlier: vector("earlier")?.to_vec(),
        history: notes.history,
        batch: notes.batch,
        loss_sum: notes.loss_sum,
    })
}

fn aligned(numbers: &[f32]) -> AlignedFloats {
    let mut aligned = AlignedFloats::zeros(numbers.len());
    aligned.copy_from_slice(numbers);
    aligned
}
