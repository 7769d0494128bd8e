//! Checkpoint files, from which a training resumes with the same result as without an interruption.

use std::path::{Path, PathBuf};

use anyhow::Result;

use poolcast_base::shard::{ArtefactFormat, Shard};
use poolcast_models::optim::{CheckpointFormat, CheckpointLayout, CheckpointSummary, LearnerState};
use poolcast_published::series::MAX_EXPERTS;

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
pub(super) const CHECKPOINT_FORMAT: CheckpointFormat = CheckpointFormat {
    artefact: ArtefactFormat {
        name: "wait model checkpoint",
        version: 1,
        rebuild: "poolcast provision train SAMPLES -o MODEL",
    },
    layout: CheckpointLayout::SingleNetwork,
    other_training: "belongs to another training",
    hint: "name another directory",
};

/// Reads the last checkpoint in `dir`; `None` if there is none. While the experts of a mixture
/// learn alone, no epoch of the joint training has finished.
pub fn read_wait_checkpoint(dir: &Path) -> Option<CheckpointSummary> {
    let path = checkpoint_paths(dir).pop()?;
    let mut found = CheckpointSummary::read(&path, &CHECKPOINT_FORMAT)?;
    if path != checkpoint_path(dir) {
        found.epochs = 0;
    }
    Some(found)
}

/// Returns the key of the training that wrote the checkpoint at `path`.
pub(super) fn checkpoint_key(path: &Path) -> Option<String> {
    let found = CheckpointSummary::read(path, &CHECKPOINT_FORMAT)?;
    Some(found.key)
}

/// Weights of the target network, as they are in a checkpoint.
#[derive(Debug)]
pub(super) struct TargetWeights(pub(super) Vec<f32>);

impl LearnerState for TargetWeights {
    type Notes = ();

    fn notes(&self) {}

    fn columns(&self) -> Vec<(String, &[f32])> {
        vec![(TARGET_COLUMN.to_owned(), &self.0)]
    }

    fn read((): (), shard: &Shard, _networks: usize) -> Result<TargetWeights> {
        Ok(TargetWeights(shard.column(TARGET_COLUMN)?.to_vec()))
    }
}

const TARGET_COLUMN: &str = "earlier";
