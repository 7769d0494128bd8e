//! Exports the runs of a directory as the files of a tracker, without a network.

use std::path::Path;

use anyhow::Result;

use super::tensorboard::export_to_tensorboard;
use super::wandb_export::export_to_wandb;
use crate::runs::{TrackedOutcome, TrackedSource};

/// File format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// W&B's offline files, for `wandb sync` and `wandb leet`.
    Wandb,
    /// TensorBoard's event files.
    Tensorboard,
}

/// Counts of exported and skipped runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportedRuns {
    /// Runs that were written to files.
    pub written: usize,
    /// Runs that were skipped because they have not ended.
    pub left_out: usize,
}

/// Writes the runs of `source` below `dir`. The files of a run are byte-identical each time.
///
/// A run that has not ended gets no W&B file. `wandb sync` would take a file without an exit record
/// for a failed run. Sending the run again after its end would double its history.
///
/// # Errors
/// Fails if a file cannot be read or written.
pub fn export_runs(
    source: &TrackedSource,
    format: ExportFormat,
    dir: &Path,
) -> Result<ExportedRuns> {
    let wandb = &source.config().wandb;
    let entity = wandb.entity.as_deref().unwrap_or_default();
    let project = wandb.project.as_deref().unwrap_or_default();
    let mut exported = ExportedRuns::default();

    source.visit_runs(|run| {
        match format {
            ExportFormat::Wandb if run.outcome == TrackedOutcome::Running => {
                exported.left_out += 1;
                return Ok(());
            }
            ExportFormat::Wandb => export_to_wandb(&run, entity, project, dir)?,
            ExportFormat::Tensorboard => export_to_tensorboard(&run, dir)?,
        }
        exported.written += 1;
        Ok(())
    })?;
    Ok(exported)
}
