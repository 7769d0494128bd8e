//! Models of any architecture in candle's operations, on any device: logits of a batch, and
//! candle's gradient of the loss.
//!
//! On a CPU a batch is cut into chunks that run in parallel and are added in order. Frames go
//! through the model one segment at a time. The backward pass recomputes each segment from the
//! states before it. A graph over all frames would be as deep as the number of frames, and candle's
//! recursion as deep as the graph.

use std::ops::Range;

use anyhow::Result;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use rayon::prelude::*;

use super::cross_entropy::cross_entropy;
use super::labelled_chunk::{LabelledChunk, SCORED_ROWS, TRAINED_ROWS};
use super::parameter::{IndexedParameter, place_parameters};
use super::{
    AlignedFloats, Architecture, ModelInput, ModelShape, ParameterSpec, SampleBatch, Targets,
    Weights,
};
use crate::EMPTY_CELL;
use crate::token_batch::TokenColumns;

/// Frames per segment. Each segment is one graph.
const SEGMENT_FRAMES: usize = 16;

/// A model without its parameters.
#[derive(Debug)]
pub(super) struct CandleGraph {
    architecture: &'static dyn Architecture,
    shape: ModelShape,
    device: Device,
    parameters: Vec<IndexedParameter>,
    /// Number of elements of the flat vector, padded to whole vectors.
    pub(super) flat_len: usize,
}

/// The loss of a chunk, and its part of the gradient.
struct ChunkLoss {
    /// Sum of the losses of the chunk's samples.
    loss: f64,
    /// Gradient, in the order of the flat vector.
    gradient: AlignedFloats,
}

impl CandleGraph {
    pub(super) fn new(
        architecture: &'static dyn Architecture,
        shape: ModelShape,
        parameters: &[ParameterSpec],
        device: &Device,
    ) -> CandleGraph {
        let (parameters, flat_len) = place_parameters(parameters.iter().cloned());
        CandleGraph {
            architecture,
            shape,
            device: device.clone(),
            parameters,
            flat_len,
        }
    }

    /// Indices in the flat vector of a parameter's elements, in row-major order of the parameter.
    pub(super) fn element_positions(&self, parameter: usize) -> impl Iterator<Item = usize> {
        self.parameters[parameter].element_positions()
    }

    /// Computes the logits of the samples of `batch` with the parameters `flat`.
    pub(super) fn logits(&self, flat: &[f32], batch: &SampleBatch<'_>) -> Result<Vec<f32>> {
        let weights = self.make_weights(flat, |numbers, dims| {
            Tensor::from_slice(numbers, dims, &self.device)
        })?;
        let rows = self.chunk_rows(batch, SCORED_ROWS);
        let logits = batch
            .split_into_chunks(&self.shape, rows)
            .into_par_iter()
            .map(|chunk| self.score_chunk(&weights, &chunk, rows));
        Ok(logits.collect::<Result<Vec<Vec<f32>>>>()?.concat())
    }

    /// Computes the logits of at most `rows` samples.
    fn score_chunk(
        &self,
        weights: &Weights,
        chunk: &SampleBatch<'_>,
        rows: usize,
    ) -> Result<Vec<f32>> {
        let ModelShape { m, j, s, .. } = self.shape;
        let mut shared = chunk.shared.to_vec();
        shared.resize(rows * self.shape.shared_bytes(), 0);
        // The number of rows of a product determines the order of its sums. Padding every chunk to
        // `rows` samples keeps a sample's logit the same in every batch.
        let mut codes = chunk.codes.to_vec();
        let mut statics = chunk.statics.to_vec();
        codes.resize(rows * m * j, EMPTY_CELL);
        statics.resize(rows * s, 0.0);
        let tokens = chunk
            .tokens
            .map(|tokens| TokenColumns::padded(&tokens, chunk.b, rows));
        let filled = SampleBatch {
            codes: &codes,
            shared: &shared,
            statics: &statics,
            tokens: tokens.as_ref().map(TokenColumns::batch),
            b: rows,
        };
        let input = ModelInput {
            shape: &self.shape,
            batch: &filled,
            device: &self.device,
        };

        let mut states = self.initial_states(&input)?;
        for frames in self.segments() {
            states = self
                .architecture
                .advance(weights, &input, frames, &states)?;
        }
        let logits = self.architecture.logits(weights, &input, &states)?;

        let logits = logits.flatten_all()?.to_vec1::<f32>()?;
        let networks = logits.len() / rows;
        let of_samples = logits.chunks_exact(networks).take(chunk.len());
        let mean = |of_networks: &[f32]| of_networks.iter().sum::<f32>() / networks as f32;
        Ok(of_samples.map(mean).collect())
    }

    /// Adds the gradient of the mean loss of `batch` against `targets` to `gradient`. Returns the
    /// sum of the losses.
    pub(super) fn add_gradient(
        &self,
        flat: &[f32],
        batch: &SampleBatch<'_>,
        targets: &Targets<'_>,
        gradient: &mut [f32],
    ) -> Result<f64> {
        let weights = self.make_weights(flat, |numbers, dims| {
            Ok(Var::from_slice(numbers, dims, &self.device)?
                .as_tensor()
                .clone())
        })?;
        let rows = self.chunk_rows(batch, TRAINED_ROWS);
        let chunks = LabelledChunk::split(&self.shape, batch, targets, rows);

        let mut loss = 0.0;
        // Process as many chunks at a time as there are threads, because each part is as large as
        // all parameters.
        for chunks in chunks.chunks(rayon::current_num_threads()) {
            let parts = chunks
                .par_iter()
                .map(|chunk| self.chunk_gradient(&weights, chunk));
            for part in parts.collect::<Result<Vec<ChunkLoss>>>()? {
                loss += part.loss;
                for (sum, d) in gradient.iter_mut().zip(part.gradient.iter()) {
                    *sum += d;
                }
            }
        }
        Ok(loss)
    }

    /// Computes the loss of a chunk and its part of the gradient, segment by segment from the last
    /// to the first.
    fn chunk_gradient(&self, weights: &Weights, chunk: &LabelledChunk<'_>) -> Result<ChunkLoss> {
        let input = ModelInput {
            shape: &self.shape,
            batch: &chunk.batch,
            device: &self.device,
        };
        let states_before = self.states_before_segments(weights, &input)?;

        let mut loss = 0.0;
        let mut gradient = AlignedFloats::zeros(self.flat_len);
        let mut d_after: Vec<Tensor> = Vec::new();
        for (frames, before) in self.segments().into_iter().zip(states_before).rev() {
            let is_last = frames.end == self.shape.m;
            let before: Vec<Var> = before
                .iter()
                .map(Var::from_tensor)
                .collect::<candle_core::Result<_>>()?;
            let states: Vec<Tensor> = before.iter().map(|var| var.as_tensor().clone()).collect();
            let after = self
                .architecture
                .advance(weights, &input, frames, &states)?;

            // Backpropagate through a weighted sum. The slopes are constants in its graph, so its
            // gradient equals the gradient of the loss.
            let weighted_sum = if is_last {
                let logits = self.architecture.logits(weights, &input, &after)?;
                let slopes = loss_slopes(&logits, chunk)?;
                loss = slopes.loss;
                (logits * slopes.d_logits)?.sum_all()?
            } else {
                sum_of_products(&after, &d_after)?
            };
            let store = weighted_sum.backward()?;
            self.add_parameter_gradients(&store, weights, &mut gradient)?;

            if before.is_empty() {
                break; // The model carries no states, so only the last segment matters.
            }
            d_after = state_gradients(&store, &states)?;
        }
        Ok(ChunkLoss { loss, gradient })
    }

    /// Computes the states before each segment, without a graph for gradients.
    fn states_before_segments(
        &self,
        weights: &Weights,
        input: &ModelInput<'_>,
    ) -> Result<Vec<Vec<Tensor>>> {
        let segments = self.segments();
        let detached = weights.detached();
        let mut all = vec![self.initial_states(input)?];
        for frames in &segments[..segments.len() - 1] {
            let before = &all[all.len() - 1];
            let after = self
                .architecture
                .advance(&detached, input, frames.clone(), before)?;
            all.push(after);
        }
        Ok(all)
    }

    /// Adds each parameter's gradient in `store` to `gradient`.
    fn add_parameter_gradients(
        &self,
        store: &GradStore,
        weights: &Weights,
        gradient: &mut [f32],
    ) -> Result<()> {
        for IndexedParameter { spec, start } in &self.parameters {
            if let Some(d) = store.get(weights.get(&spec.name)?) {
                let d = d.flatten_all()?.to_vec1::<f32>()?;
                for (sum, d) in gradient[*start..].iter_mut().zip(d) {
                    *sum += d;
                }
            }
        }
        Ok(())
    }

    /// Builds the parameters in `flat`. `tensor` makes each from its numbers and its dimensions in
    /// memory.
    fn make_weights(
        &self,
        flat: &[f32],
        tensor: impl Fn(&[f32], Vec<usize>) -> candle_core::Result<Tensor>,
    ) -> Result<Weights> {
        Weights::new(
            self.parameters
                .iter()
                .map(|IndexedParameter { spec, start }| {
                    let mut dims = spec.dims.clone();
                    if spec.is_table {
                        dims.reverse();
                    }
                    let numbers = &flat[*start..][..spec.len()];
                    Ok((spec.name.clone(), tensor(numbers, dims)?))
                }),
        )
    }

    /// The states before the first frame.
    fn initial_states(&self, input: &ModelInput<'_>) -> Result<Vec<Tensor>> {
        let dims = (input.len(), self.shape.hidden_size);
        let states = (0..self.architecture.state_count(&self.shape))
            .map(|_| Tensor::zeros(dims, DType::F32, &self.device));
        Ok(states.collect::<candle_core::Result<_>>()?)
    }

    /// The frame range of each segment.
    fn segments(&self) -> Vec<Range<usize>> {
        let m = self.shape.m;
        (0..m)
            .step_by(SEGMENT_FRAMES)
            .map(|start| start..m.min(start + SEGMENT_FRAMES))
            .collect()
    }

    /// The number of samples of `batch` per chunk. On a CPU it is `rows`, for one thread. Other
    /// devices parallelise on their own and take the whole batch.
    fn chunk_rows(&self, batch: &SampleBatch<'_>, rows: usize) -> usize {
        if self.device.is_cpu() {
            rows
        } else {
            batch.len().max(1)
        }
    }
}

/// The loss of a chunk, and its derivative with respect to the logits.
struct LossSlopes {
    /// Sum of the losses of the samples.
    loss: f64,
    /// Derivative with respect to the logits, in their shape.
    d_logits: Tensor,
}

fn loss_slopes(logits: &Tensor, chunk: &LabelledChunk<'_>) -> Result<LossSlopes> {
    let numbers = logits.flatten_all()?.to_vec1::<f32>()?;
    let networks = numbers.len() / chunk.labels.len();
    let mut losses = Vec::with_capacity(numbers.len());
    let mut slopes = Vec::with_capacity(numbers.len());
    let samples = numbers.chunks_exact(networks);
    for ((logits, &label), &weight) in samples.zip(chunk.labels).zip(chunk.weights) {
        for &logit in logits {
            let sample = cross_entropy(logit, label, weight);
            losses.push(sample.loss / networks as f64);
            slopes.push(sample.slope * chunk.scale / networks as f32);
        }
    }
    Ok(LossSlopes {
        loss: losses.iter().sum(),
        d_logits: Tensor::from_vec(slopes, logits.shape(), logits.device())?,
    })
}

/// The gradients of some states, or zeros where the graph does not reach a state.
fn state_gradients(store: &GradStore, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut gradients = Vec::with_capacity(states.len());
    for state in states {
        gradients.push(match store.get(state) {
            // A gradient carries its own graph. Detaching keeps the next backward pass out of it.
            Some(gradient) => gradient.detach(),
            None => state.zeros_like()?,
        });
    }
    Ok(gradients)
}

/// The sum of the elementwise products of `a` and `b`.
fn sum_of_products(a: &[Tensor], b: &[Tensor]) -> candle_core::Result<Tensor> {
    let products = a.iter().zip(b).map(|(a, b)| (a * b)?.sum_all());
    Tensor::stack(&products.collect::<candle_core::Result<Vec<Tensor>>>()?, 0)?.sum_all()
}
