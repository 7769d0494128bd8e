//! Codes `[b, m, j]` → layers → last state beside the static features → linear → logits `[b]`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::chunk::ChunkActivations;
use super::layout::FlatLayout;
use crate::labelled_chunk::SCORED_ROWS;
use crate::{ModelShape, SampleBatch};

/// An LSTM without its parameters.
pub(in crate) struct FusedLstm {
    pub(super) layout: FlatLayout,
    /// Memory that nobody uses now. To allocate it takes as long as to score some samples.
    idle: Mutex<Vec<ChunkActivations>>,
}

impl FusedLstm {
    pub(in crate) fn new(shape: ModelShape) -> FusedLstm {
        FusedLstm {
            layout: FlatLayout::new(shape),
            idle: Mutex::default(),
        }
    }

    /// How many numbers the flat vector of parameters has.
    pub(in crate) fn flat_len(&self) -> usize {
        self.layout.len
    }

    /// Where each element of a parameter is in the flat vector, in its row-major order.
    pub(in crate) fn element_positions(
        &self,
        parameter: usize,
    ) -> impl Iterator<Item = usize> {
        self.layout.element_positions(parameter)
    }

    /// The logits of the samples of `batch` by the parameters `flat`.
    pub(in crate) fn logits(&self, flat: &[f32], batch: &SampleBatch<'_>) -> Vec<f32> {
        let chunks = batch.split_into_chunks(&self.layout.shape, SCORED_ROWS);
        let logits = chunks.par_iter().map(|chunk| {
            let idle = self.lock_idle().pop();
            let mut activations =
                idle.unwrap_or_else(|| ChunkActivations::for_scoring(&self.layout));
            activations.forward(&self.layout, flat, chunk);

            let logits = activations.logits.clone();
            self.lock_idle().push(activations);
            logits
        });
        logits.collect::<Vec<Vec<f32>>>().concat()
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<ChunkActivations>> {
        // Memory is put back whole or not at all, so a panic elsewhere leaves nothing half done.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
