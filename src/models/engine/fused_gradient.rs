//! Gradient of the LSTM's parameters for a batch and its targets, in chunks that run in parallel
//! and are added in order.

use rayon::prelude::*;

use super::chunk::ChunkActivations;
use super::chunk_gradient::ChunkGradient;
use super::fused_lstm::FusedLstm;
use super::gather;
use super::layout::{FlatLayout, PANEL};
use super::transposed_weights::TransposedWeights;
use crate::labelled_chunk::{LabelledChunk, TRAINED_ROWS};
use crate::{ModelShape, SampleBatch, Targets};

/// Working memory of a gradient, reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct FusedGradient {
    /// Shape of the model that the memory fits.
    shape: Option<ModelShape>,
    transposed: TransposedWeights,
    chunks: Vec<ChunkWorkspace>,
}

/// Working memory of one chunk.
#[derive(Debug)]
struct ChunkWorkspace {
    activations: ChunkActivations,
    gradient: ChunkGradient,
}

impl FusedGradient {
    /// Adds the gradient of the mean loss of `batch` against `targets` to `gradient`. Returns the
    /// sum of the losses.
    pub(crate) fn add_gradient(
        &mut self,
        lstm: &FusedLstm,
        flat: &[f32],
        batch: &SampleBatch<'_>,
        targets: &Targets<'_>,
        gradient: &mut [f32],
    ) -> f64 {
        let layout = &lstm.layout;
        let chunks = LabelledChunk::split(&layout.shape, batch, targets, TRAINED_ROWS);
        // One workspace per thread keeps the memory small and mostly in a near cache. The gradients
        // are added in the order of the chunks, regardless of the number of threads.
        let together = rayon::current_num_threads();
        self.prepare(layout, flat, chunks.len().min(together));

        let mut loss = 0.0;
        for chunks in chunks.chunks(together) {
            let transposed = &self.transposed;
            let workspaces = &mut self.chunks[..chunks.len()];
            workspaces
                .par_iter_mut()
                .zip(chunks)
                .for_each(|(workspace, chunk)| {
                    let ChunkWorkspace {
                        activations,
                        gradient,
                    } = workspace;
                    activations.forward(layout, flat, &chunk.batch);
                    gradient.backward(layout, flat, transposed, activations, chunk);
                });

            for workspace in workspaces.iter() {
                loss += workspace.gradient.loss;
            }
            let (dense, table) = gradient.split_at_mut(layout.table_start);
            add_dense_gradients(workspaces, dense);
            add_table_gradients(workspaces, layout, table);
        }
        loss
    }

    /// Allocates memory for `needed` chunks of the model, and transposes its weights for the
    /// backward pass.
    fn prepare(&mut self, layout: &FlatLayout, flat: &[f32], needed: usize) {
        if self.shape != Some(layout.shape) {
            *self = FusedGradient {
                shape: Some(layout.shape),
                ..FusedGradient::default()
            };
        }
        self.transposed.transpose(layout, flat);
        while self.chunks.len() < needed {
            self.chunks.push(ChunkWorkspace {
                activations: ChunkActivations::for_training(layout),
                gradient: ChunkGradient::new(layout),
            });
        }
    }
}

/// Adds the gradients of all parameters except the first layer's `weight_ih`.
fn add_dense_gradients(workspaces: &[ChunkWorkspace], dense: &mut [f32]) {
    for workspace in workspaces {
        for (sum, part) in dense.iter_mut().zip(workspace.gradient.dense.iter()) {
            *sum += part;
        }
    }
}

/// Adds the gradient of the first layer's `weight_ih`. It is too large for one copy per chunk.
/// Instead, threads divide its panels, and each adds all chunks to its panels.
fn add_table_gradients(workspaces: &[ChunkWorkspace], layout: &FlatLayout, table: &mut [f32]) {
    let panel_len = layout.table_rows() * PANEL;
    table
        .par_chunks_mut(gather::MAX_PANELS * panel_len)
        .enumerate()
        .for_each(|(index, d_table)| {
            let first_panel = index * gather::MAX_PANELS;
            let panels = d_table.len() / panel_len;
            for workspace in workspaces {
                workspace
                    .activations
                    .scatter_gradient(first_panel, panels, d_table);
            }
        });
}
