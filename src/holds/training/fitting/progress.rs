//! Progress updates of a training.

use std::ops::ControlFlow;

use super::epoch::Epoch;

/// A progress update for the listener.
#[derive(Debug)]
pub enum TrainingUpdate<'a> {
    /// The training has learned from a batch.
    Batch {
        /// Number of the current epoch, from 1.
        epoch: usize,
        /// Batches of this epoch so far.
        batch: usize,
        /// Batches in an epoch.
        batches: usize,
        /// Mean loss over the epoch so far.
        loss: f64,
    },
    /// An epoch has ended, and its checkpoint is on disk.
    Epoch(&'a Epoch),
}

/// A callback that watches a training and may stop it after a batch.
pub(crate) type ProgressListener<'a> = dyn Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync + 'a;
