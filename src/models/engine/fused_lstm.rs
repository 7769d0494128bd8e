//! LSTM inference in the fused engine: codes `[b, m, j]` → layers → last state, joined with the
//! static features → linear → logits `[b]`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::chunk::ChunkActivations;
use super::layout::FlatLayout;
use crate::labelled_chunk::SCORED_ROWS;
use crate::{ModelShape, SampleBatch};

/// An LSTM without its parameters.
pub(crate) struct FusedLstm {
    pub(super) layout: FlatLayout,
    /// Workspaces that are not in use. Allocating one takes as long as scoring some samples.
    idle: Mutex<Vec<ChunkActivations>>,
}

impl FusedLstm {
    pub(crate) fn new(shape: ModelShape) -> FusedLstm {
        FusedLstm {
            layout: FlatLayout::new(shape),
            idle: Mutex::default(),
        }
    }

    /// The length of the flat vector of parameters.
    pub(crate) fn flat_len(&self) -> usize {
        self.layout.len
    }

    /// Indices in the flat vector of a parameter's elements, in row-major order of the parameter.
    pub(crate) fn element_positions(&self, parameter: usize) -> impl Iterator<Item = usize> {
        self.layout.element_positions(parameter)
    }

    /// Computes the logits of the samples of `batch` with the parameters `flat`.
    pub(crate) fn logits(&self, flat: &[f32], batch: &SampleBatch<'_>) -> Vec<f32> {
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
        // Each access pushes or pops a whole workspace, so the list is valid even after a panic
        // elsewhere.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
