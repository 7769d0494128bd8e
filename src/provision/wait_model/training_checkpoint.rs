//! Checkpoint files, from which a training resumes with the same result as without an interruption.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::learning_state::{LearningEpoch, LearningState};
use poolcast_base::error::hinted;
use poolcast_base::shard::{self, ArtefactFormat, Shard, ShardColumn};
use poolcast_models::AlignedFloats;
use poolcast_models::optim::Adam;
use poolcast_models::series::{MAX_EXPERTS, SeriesNetwork};

/// Returns the path of the checkpoint of an unfinished training of the model in `dir`.
pub(super) fn checkpoint_path(dir: &Path) -> PathBuf {
    dir.join("checkpoint.safetensors")
}

/// Returns the checkpoint path of one expert of a mixture. The checkpoint of the joint training is
/// at `path`.
pub(super) fn expert_checkpoint_path(path: &Path, expert: usize) -> PathBuf {
    path.with_file_name(format!("checkpoint-expert-{expert}.safetensors"))
}

/// Returns all existing checkpoints in `dir`, in the order in which a training writes them.
pub(super) fn checkpoint_paths(dir: &Path) -> Vec<PathBuf> {
    let whole = checkpoint_path(dir);
    let mut paths = Vec::with_capacity(1 + MAX_EXPERTS);
    paths.extend((0..MAX_EXPERTS).map(|expert| expert_checkpoint_path(&whole, expert)));
    paths.push(whole);
    paths.retain(|path| path.is_file());
    paths
}

/// File format of a checkpoint.
const CHECKPOINT_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "wait model checkpoint",
    version: 1,
    rebuild: "poolcast provision train SAMPLES -o MODEL",
};

/// Metadata of a checkpoint, next to its vectors.
#[derive(Serialize, Deserialize)]
struct WaitCheckpointNotes {
    key: String,
    /// Number of weight updates.
    step: u64,
    history: Vec<LearningEpoch>,
    batch: usize,
    loss_sum: f64,
}

/// Training and progress of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCheckpoint {
    /// Key of the training.
    pub key: String,
    /// Finished epochs of the joint training; 0 while the experts of a mixture learn alone.
    pub epochs: usize,
}

/// Reads the last checkpoint in `dir`; `None` if there is none.
pub fn read_wait_checkpoint(dir: &Path) -> Option<WaitCheckpoint> {
    let path = checkpoint_paths(dir).pop()?;
    let notes = read_notes(&path)?;
    let is_joint = path == checkpoint_path(dir);
    Some(WaitCheckpoint {
        key: notes.key,
        epochs: if is_joint { notes.history.len() } else { 0 },
    })
}

/// Returns the key of the training that wrote the checkpoint at `path`.
pub(super) fn checkpoint_key(path: &Path) -> Option<String> {
    read_notes(path).map(|notes| notes.key)
}

fn read_notes(path: &Path) -> Option<WaitCheckpointNotes> {
    let shard = Shard::open(path, CHECKPOINT_FORMAT).ok()?;
    shard.notes().ok()
}

/// Writes the checkpoint of the training `key` to `path`.
pub(super) fn write_checkpoint(path: &Path, key: &str, state: &LearningState) -> Result<()> {
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
    shard::write(path, CHECKPOINT_FORMAT, &notes, columns)
}

/// Reads the state of the training `key` from the checkpoint at `path`. Without a checkpoint,
/// returns the initial state of `network`.
///
/// # Errors
/// Fails if the checkpoint belongs to another training.
pub(super) fn read_checkpoint(
    path: &Path,
    key: &str,
    mut network: SeriesNetwork,
) -> Result<LearningState> {
    if !path.is_file() {
        return Ok(LearningState::new(network));
    }
    let shard = Shard::open(path, CHECKPOINT_FORMAT)?;
    let notes: WaitCheckpointNotes = shard.notes()?;
    ensure!(
        notes.key == key,
        hinted(
            format!("`{}` belongs to another training", path.display()),
            "name another directory, or replace it with `provision train --overwrite`"
        )
    );

    let count = network.flat_weights().len();
    let vector = |name: &str| -> Result<&[f32]> {
        let vector: &[f32] = shard.column(name)?;
        ensure!(
            vector.len() == count,
            "`{}` has {} numbers in `{name}`, expected {count}",
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
