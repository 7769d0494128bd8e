//! A model of any architecture in candle's operations, on any device: batch → logits, and candle's gradient of the loss.
//!
//! On a CPU a batch is cut into chunks that run in parallel and are added in order. Frames go through the model a few at a
//! time, and on the way back each few are computed anew from the states before them: a graph over all frames would be as
//! deep as there are frames, and its depth is that of candle's recursion.

use std::ops::Range;

use anyhow::Result;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use rayon::prelude::*;

use super::chunk::{Lesson, SCORED_ROWS, TRAINED_ROWS, cross_entropy};
use super::simd::LANES;
use super::{Architecture, Batch, Floats, Input, Parameter, Shape, Weights};
use crate::tensors::EMPTY_CELL;

/// Frames that are one graph.
const FRAMES: usize = 16;

/// A model without its parameters.
#[derive(Debug)]
pub(super) struct Graph {
    architecture: &'static dyn Architecture,
    shape: Shape,
    device: Device,
    /// Each parameter and where it begins in the flat vector.
    parameters: Vec<(Parameter, usize)>,
    /// Numbers in all, padded to whole vectors.
    pub(super) len: usize,
}

impl Graph {
    pub(super) fn new(
        architecture: &'static dyn Architecture,
        shape: Shape,
        parameters: &[Parameter],
        device: &Device,
    ) -> Graph {
        let mut end = 0;
        let place = |parameter: &Parameter| {
            let start = end;
            end += parameter.len();
            (parameter.clone(), start)
        };
        let parameters = parameters.iter().map(place).collect();
        Graph {
            architecture,
            shape,
            device: device.clone(),
            parameters,
            len: end.next_multiple_of(LANES),
        }
    }

    /// Where each element of a parameter is in the flat vector, in its row-major order.
    pub(super) fn places(&self, parameter: usize) -> impl Iterator<Item = usize> {
        let (parameter, start) = &self.parameters[parameter];
        let columns = parameter.dims[parameter.dims.len() - 1];
        let (rows, is_table, start) =
            (parameter.len() / columns.max(1), parameter.is_table, *start);
        (0..parameter.len()).map(move |at| {
            if is_table {
                start + at % columns * rows + at / columns
            } else {
                start + at
            }
        })
    }

    /// The logits of the samples of `batch` by the parameters `flat`.
    pub(super) fn logits(&self, flat: &[f32], batch: &Batch<'_>) -> Result<Vec<f32>> {
        let weights = self.weights(flat, |numbers, dims| {
            Tensor::from_slice(numbers, dims, &self.device)
        })?;
        let rows = self.rows(batch, SCORED_ROWS);
        let logits = batch
            .chunks(&self.shape, rows)
            .into_par_iter()
            .map(|batch| self.score(&weights, &batch, rows));
        Ok(logits.collect::<Result<Vec<Vec<f32>>>>()?.concat())
    }

    /// The logits of no more than `rows` samples. The order in which a product is summed depends on its number of rows, so
    /// that there are always as many, and a sample's logit is the same in every batch.
    fn score(&self, weights: &Weights, batch: &Batch<'_>, rows: usize) -> Result<Vec<f32>> {
        let Shape { m, j, s, .. } = self.shape;
        let (mut codes, mut statics) = (batch.codes.to_vec(), batch.statics.to_vec());
        codes.resize(rows * m * j, EMPTY_CELL);
        statics.resize(rows * s, 0.0);
        let filled = Batch {
            codes: &codes,
            statics: &statics,
            b: rows,
        };
        let input = Input {
            shape: &self.shape,
            batch: &filled,
            device: &self.device,
        };
        let states = self
            .segments()
            .into_iter()
            .try_fold(self.before(&input)?, |states, frames| {
                self.architecture.advance(weights, &input, frames, &states)
            })?;
        let mut logits = self
            .architecture
            .logits(weights, &input, &states)?
            .to_vec1()?;
        logits.truncate(batch.len());
        Ok(logits)
    }

    /// Adds the gradient of the mean loss of `batch` against `targets` to `gradient`; returns the sum of the losses.
    pub(super) fn gradient(
        &self,
        flat: &[f32],
        batch: &Batch<'_>,
        (targets, pos_weight): (&[f32], f32),
        gradient: &mut [f32],
    ) -> Result<f64> {
        let weights = self.weights(flat, |numbers, dims| {
            Ok(Var::from_slice(numbers, dims, &self.device)?
                .as_tensor()
                .clone())
        })?;
        let rows = self.rows(batch, TRAINED_ROWS);
        let scale = 1.0 / batch.len() as f32;
        let lessons = batch
            .chunks(&self.shape, rows)
            .into_iter()
            .zip(targets.chunks(rows));
        let lesson = |(batch, targets)| Lesson {
            batch,
            targets,
            pos_weight,
            scale,
        };
        let lessons: Vec<Lesson<'_>> = lessons.map(lesson).collect();
        let mut loss = 0.0;
        // As many at a time as have a thread: each part is as large as all parameters.
        for lessons in lessons.chunks(rayon::current_num_threads()) {
            let parts = lessons
                .par_iter()
                .map(|lesson| self.learn(&weights, lesson));
            for (part, d) in parts.collect::<Result<Vec<(f64, Floats)>>>()? {
                loss += part;
                gradient
                    .iter_mut()
                    .zip(d.iter())
                    .for_each(|(sum, d)| *sum += d);
            }
        }
        Ok(loss)
    }

    /// The sum of the losses of a lesson, and its part of the gradient.
    fn learn(&self, weights: &Weights, lesson: &Lesson<'_>) -> Result<(f64, Floats)> {
        let input = Input {
            shape: &self.shape,
            batch: &lesson.batch,
            device: &self.device,
        };
        let segments = self.segments();
        let mut before = vec![self.before(&input)?];
        let fixed = weights.detached();
        for frames in &segments[..segments.len() - 1] {
            before.push(self.architecture.advance(
                &fixed,
                &input,
                frames.clone(),
                &before[before.len() - 1],
            )?);
        }
        let (mut loss, mut gradient) = (0.0, Floats::zeros(self.len));
        let mut d_after: Vec<Tensor> = Vec::new();
        for (frames, before) in segments.into_iter().zip(before).rev() {
            let is_last = frames.end == self.shape.m;
            let before: Vec<Var> = before
                .iter()
                .map(Var::from_tensor)
                .collect::<candle_core::Result<_>>()?;
            let states: Vec<Tensor> = before.iter().map(|var| var.as_tensor().clone()).collect();
            let after = self
                .architecture
                .advance(weights, &input, frames, &states)?;
            let worth = if is_last {
                let logits = self.architecture.logits(weights, &input, &after)?;
                let (losses, d_logits) = slopes(&logits, lesson)?;
                loss = losses;
                (logits * d_logits)?.sum_all()?
            } else {
                dot(&after, &d_after)?
            };
            let store = worth.backward()?;
            self.add(&store, weights, &mut gradient)?;
            if before.is_empty() {
                break;
            }
            // Gradients come with graphs of their own, which the next one must not go through.
            let d_before = |state| {
                store
                    .get(state)
                    .map_or_else(|| state.zeros_like(), |d| Ok(d.detach()))
            };
            d_after = states
                .iter()
                .map(d_before)
                .collect::<candle_core::Result<_>>()?;
        }
        Ok((loss, gradient))
    }

    /// Adds what `store` holds of each parameter to `gradient`.
    fn add(&self, store: &GradStore, weights: &Weights, gradient: &mut [f32]) -> Result<()> {
        for (parameter, start) in &self.parameters {
            if let Some(d) = store.get(weights.get(&parameter.name)?) {
                let d = d.flatten_all()?.to_vec1::<f32>()?;
                gradient[*start..]
                    .iter_mut()
                    .zip(d)
                    .for_each(|(sum, d)| *sum += d);
            }
        }
        Ok(())
    }

    /// The parameters in `flat`, each made by `tensor` from its numbers and dimensions in memory.
    fn weights(
        &self,
        flat: &[f32],
        tensor: impl Fn(&[f32], Vec<usize>) -> candle_core::Result<Tensor>,
    ) -> Result<Weights> {
        Weights::new(self.parameters.iter().map(|(parameter, start)| {
            let mut dims = parameter.dims.clone();
            if parameter.is_table {
                dims.reverse();
            }
            Ok((
                parameter.name.clone(),
                tensor(&flat[*start..][..parameter.len()], dims)?,
            ))
        }))
    }

    /// The states before the first frame.
    fn before(&self, input: &Input<'_>) -> Result<Vec<Tensor>> {
        let zeros = || {
            Tensor::zeros(
                (input.len(), self.shape.hidden_size),
                DType::F32,
                &self.device,
            )
        };
        let states = (0..self.architecture.states(&self.shape)).map(|_| zeros());
        Ok(states.collect::<candle_core::Result<_>>()?)
    }

    fn segments(&self) -> Vec<Range<usize>> {
        let m = self.shape.m;
        (0..m)
            .step_by(FRAMES)
            .map(|start| start..m.min(start + FRAMES))
            .collect()
    }

    /// How many samples of `batch` are worked on at a time: `rows` by a thread; other devices have threads of their own.
    fn rows(&self, batch: &Batch<'_>, rows: usize) -> usize {
        if self.device.is_cpu() {
            rows
        } else {
            batch.len().max(1)
        }
    }
}

/// The sum of the losses of a lesson's samples, and what a step of each logit is worth.
fn slopes(logits: &Tensor, lesson: &Lesson<'_>) -> Result<(f64, Tensor)> {
    let numbers = logits.to_vec1::<f32>()?;
    let of_samples = numbers
        .iter()
        .zip(lesson.targets)
        .map(|(&logit, &target)| cross_entropy(logit, target, lesson.pos_weight));
    let (losses, slopes): (Vec<f64>, Vec<f32>) = of_samples.unzip();
    let slopes: Vec<f32> = slopes
        .into_iter()
        .map(|slope| slope * lesson.scale)
        .collect();
    Ok((
        losses.iter().sum(),
        Tensor::from_vec(slopes, numbers.len(), logits.device())?,
    ))
}

/// The sum of the products of the elements of `a` and `b`.
fn dot(a: &[Tensor], b: &[Tensor]) -> candle_core::Result<Tensor> {
    let products = a.iter().zip(b).map(|(a, b)| (a * b)?.sum_all());
    Tensor::stack(&products.collect::<candle_core::Result<Vec<Tensor>>>()?, 0)?.sum_all()
}
