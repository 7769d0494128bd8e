//! The LSTM as the CPU runs it: codes `[b, m, j]` → layers → last state beside static features → linear → logit `[b]`.
//!
//! It computes what `lstm.rs` says in candle's operations, with kernels of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::chunk::{Chunk, SCORED_ROWS};
use super::layout::Layout;
use super::{Batch, Shape};

/// An LSTM without its parameters.
pub(super) struct Fused {
    pub(super) layout: Layout,
    /// Chunks that nobody uses now: to allocate one takes as long as to score some of its samples.
    idle: Mutex<Vec<Chunk>>,
}

impl Fused {
    pub(super) fn new(shape: Shape) -> Fused {
        Fused {
            layout: Layout::new(shape),
            idle: Mutex::default(),
        }
    }

    /// The logits of the samples of `batch` by the parameters `flat`.
    pub(super) fn logits(&self, flat: &[f32], batch: &Batch<'_>) -> Vec<f32> {
        let chunks = batch.chunks(&self.layout.shape, SCORED_ROWS);
        let logits = chunks.par_iter().map(|batch| {
            let idle = self.idle().pop();
            let mut chunk = idle.unwrap_or_else(|| Chunk::for_scoring(&self.layout));
            chunk.forward(&self.layout, flat, batch);
            let logits = chunk.logits.clone();
            self.idle().push(chunk);
            logits
        });
        logits.collect::<Vec<Vec<f32>>>().concat()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Chunk>> {
        // A chunk is put back whole or not at all, so a panic elsewhere leaves nothing half done.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
