//! The runs of a directory → the files of a tracker, without a network.

use std::path::Path;

use anyhow::Result;

use super::source::TrackedSource;
use super::tensorboard::export_to_tensorboard;
use super::tracked_run::TrackedOutcome;
use super::wandb_export::export_to_wandb;

/// Whose files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// W&B's offline files, for `wandb sync` and `wandb leet`.
    Wandb,
    /// TensorBoard's event files.
    Tensorboard,
}

/// How many runs were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportedRuns {
    /// Those that are in files now.
    pub written: usize,
    /// Those that are in none, as they have not ended.
    pub left_out: usize,
}

/// Writes the runs of `source` below `dir`. The same runs have the same bytes each time.
///
/// A run that goes on has no file of W&B's: `wandb sync` takes what has no end for failed, and to
/// send the run again once it has ended doubles its history.
///
/// # Errors
/// Fails for files that cannot be read or written.
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
