//! Logits and gradients of a batch, in chunks that run in parallel and are added in order.

use anyhow::Result;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::member_gradient::backward;
use super::member_weights::{HeadWeights, MemberLayout};
use super::sample_pass::{SamplePass, SampleTokens};
use crate::architectures::members::MEMBERS;
use crate::cross_entropy::cross_entropy;
use crate::labelled_chunk::{LabelledChunk, SCORED_ROWS, TRAINED_ROWS};
use crate::parameter::{IndexedParameter, ParameterSpec, place_parameters};
use crate::simd::run_wide_kernel;
use crate::{ModelShape, SampleBatch, Targets};

/// The networks over outcome tokens, without their parameters.
#[derive(Debug)]
pub(crate) struct FusedRecords {
    shape: ModelShape,
    parameters: Vec<IndexedParameter>,
    members: [MemberLayout; MEMBERS],
    flat_len: usize,
}

impl FusedRecords {
    pub(crate) fn new(shape: ModelShape, parameters: &[ParameterSpec]) -> FusedRecords {
        let (parameters, flat_len) = place_parameters(parameters.iter().cloned());
        FusedRecords {
            shape,
            members: std::array::from_fn(|member| MemberLayout::new(&parameters, member)),
            parameters,
            flat_len,
        }
    }

    /// The length of the flat vector of parameters.
    pub(crate) fn flat_len(&self) -> usize {
        self.flat_len
    }

    /// Indices in the flat vector of a parameter's elements, in row-major order of the parameter.
    pub(crate) fn element_positions(&self, parameter: usize) -> impl Iterator<Item = usize> {
        self.parameters[parameter].element_positions()
    }

    fn head_weights(&self, flat: &[f32]) -> Vec<HeadWeights> {
        let members = self.members.iter();
        members.map(|layout| layout.head_weights(flat)).collect()
    }

    /// Computes the logits of the samples of `batch` with the parameters `flat`.
    pub(crate) fn logits(&self, flat: &[f32], batch: &SampleBatch<'_>) -> Result<Vec<f32>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        batch.tokens()?;
        let heads = self.head_weights(flat);
        let chunks = batch.split_into_chunks(&self.shape, SCORED_ROWS);
        let logits = chunks.par_iter().map(|chunk| -> Result<Vec<f32>> {
            let mut means = vec![0.0; chunk.len()];
            run_wide_kernel(ScoreChunk {
                records: self,
                heads: &heads,
                flat,
                chunk,
                means: &mut means,
            })?;
            Ok(means)
        });
        Ok(logits.collect::<Result<Vec<Vec<f32>>>>()?.concat())
    }

    /// Adds the gradient of the mean loss of `batch` against `targets` to `gradient`. Returns the
    /// sum of the losses. A sample's loss is the mean of the losses of the networks.
    pub(crate) fn add_gradient(
        &self,
        flat: &[f32],
        batch: &SampleBatch<'_>,
        targets: &Targets<'_>,
        gradient: &mut [f32],
    ) -> Result<f64> {
        let heads = self.head_weights(flat);
        let chunks = LabelledChunk::split(&self.shape, batch, targets, TRAINED_ROWS);
        let parts = chunks.par_iter().map(|chunk| -> Result<ChunkPart> {
            let mut part = ChunkPart {
                loss: 0.0,
                gradient: vec![0.0; self.flat_len],
                heads: vec![HeadWeights::ZEROS; MEMBERS],
            };
            run_wide_kernel(TrainChunk {
                records: self,
                heads: &heads,
                flat,
                chunk,
                part: &mut part,
            })?;
            Ok(part)
        });

        let mut loss = 0.0;
        for part in parts.collect::<Result<Vec<ChunkPart>>>()? {
            loss += part.loss;
            for (sum, d) in gradient.iter_mut().zip(&part.gradient) {
                *sum += d;
            }
            let of_members = self.members.iter().zip(&heads).zip(&part.heads);
            for ((layout, weights), d) in of_members {
                layout.add_head_gradient(flat, weights, d, gradient);
            }
        }
        Ok(loss)
    }
}

/// The loss of a chunk, and its part of the gradient.
struct ChunkPart {
    loss: f64,
    /// Gradient of all parameters except in the heads.
    gradient: Vec<f32>,
    heads: Vec<HeadWeights>,
}

/// Kernel that computes the logits of a chunk.
struct ScoreChunk<'a> {
    records: &'a FusedRecords,
    heads: &'a [HeadWeights],
    flat: &'a [f32],
    chunk: &'a SampleBatch<'a>,
    /// Mean logit of each sample.
    means: &'a mut [f32],
}

impl WithSimd for ScoreChunk<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Result<()> {
        let batch = self.chunk.tokens()?;
        let width = self.records.shape.hidden_size;
        let mut pass = SamplePass::new(width);
        let mut tokens = Vec::new();
        for (row, mean) in self.means.iter_mut().enumerate() {
            let sample = SampleTokens::read(batch, self.chunk.len(), row, tokens);
            let mut sum = 0.0;
            for (member, heads) in self.heads.iter().enumerate() {
                let layout = &self.records.members[member];
                let kept = sample.kept_by(member, width);
                pass.forward(simd, layout, heads, self.flat, &sample, kept);
                sum += pass.logit;
            }
            *mean = sum / MEMBERS as f32;
            tokens = sample.tokens;
        }
        Ok(())
    }
}

/// Kernel that computes the loss and the gradient of a chunk.
struct TrainChunk<'a> {
    records: &'a FusedRecords,
    heads: &'a [HeadWeights],
    flat: &'a [f32],
    chunk: &'a LabelledChunk<'a>,
    part: &'a mut ChunkPart,
}

impl WithSimd for TrainChunk<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Result<()> {
        let LabelledChunk {
            batch: samples,
            labels,
            weights,
            scale,
        } = self.chunk;
        let batch = samples.tokens()?;
        let width = self.records.shape.hidden_size;
        let mut pass = SamplePass::new(width);
        let mut tokens = Vec::new();
        for (row, (&label, &weight)) in labels.iter().zip(*weights).enumerate() {
            let sample = SampleTokens::read(batch, samples.len(), row, tokens);
            for (member, heads) in self.heads.iter().enumerate() {
                let layout = &self.records.members[member];
                let kept = sample.kept_by(member, width);
                pass.forward(simd, layout, heads, self.flat, &sample, kept);
                let loss = cross_entropy(pass.logit, label, weight);
                self.part.loss += loss.loss / MEMBERS as f64;
                backward(
                    simd,
                    layout,
                    heads,
                    self.flat,
                    &sample,
                    &pass,
                    loss.slope * scale / MEMBERS as f32,
                    &mut self.part.heads[member],
                    &mut self.part.gradient,
                );
            }
            tokens = sample.tokens;
        }
        Ok(())
    }
}
