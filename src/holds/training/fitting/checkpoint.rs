//! Checkpoints of a run that another directory or program reads.

use std::path::Path;

use anyhow::Result;

use crate::training::runs::{CHECKPOINT_FILE, CHECKPOINT_FORMAT, TIMES_FILE};
use poolcast_base::files;
use poolcast_models::optim::CheckpointSummary;

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
