//! The LSTM as the CPU runs it: codes `[b, m, j]` → layers → last state beside static features → linear → logit `[b]`.
//!
//! Names, gate order (input, forget, cell, output) and initial ranges are those of PyTorch's `nn.LSTM` and `nn.Linear`,
//! so that weights travel between the two.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use rand::Rng as _;
use rayon::prelude::*;

use super::chunk::{Chunk, SCORED_ROWS};
use super::layout::Layout;
use super::{Batch, Floats, Parameter, Shape};

/// A model: its shape and its parameters.
#[derive(Debug)]
pub struct Lstm {
    /// The shapes of its weights.
    pub shape: Shape,
    pub(super) layout: Layout,
    flat: Floats,
    /// Chunks that nobody uses now: to allocate one takes as long as to score some of its samples.
    idle: Mutex<Vec<Chunk>>,
}

impl Lstm {
    /// A model with PyTorch's initial weights: uniform in `±1/sqrt(hidden_size)`, drawn from `seed` by parameter name.
    pub fn new(shape: Shape, seed: u64) -> Lstm {
        let bound = 1.0 / (shape.hidden_size as f32).sqrt();
        let draw = |parameter: Parameter| {
            let mut generator = crate::seed::generator(seed, &format!("weights {}", parameter.name()), &[]);
            let values = (0..parameter.len(&shape)).map(|_| generator.random_range(-bound..bound));
            Ok::<_, std::convert::Infallible>(values.collect())
        };
        let layout = Layout::new(shape);
        let Ok(flat) = layout.join(draw);
        Lstm { shape, layout, flat, idle: Mutex::default() }
    }

    /// A model with given weights; `weight` returns the elements of the parameter of a name, in row-major order.
    ///
    /// # Errors
    /// Fails when no model has that shape, and when a parameter is missing or of another size.
    pub fn with_weights<'a>(shape: Shape, weight: impl Fn(&str) -> Result<&'a [f32]>) -> Result<Lstm> {
        shape.check()?;
        let layout = Layout::new(shape);
        let flat = join(&layout, weight)?;
        Ok(Lstm { shape, layout, flat, idle: Mutex::default() })
    }

    /// A copy of every parameter's elements, in the order of [`Shape::parameters`].
    pub fn weights(&self) -> Vec<Vec<f32>> {
        self.split(&self.flat)
    }

    /// All parameters in the order in which the engine reads them; padding in between is zero.
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// The same, to be changed. Padding has to stay zero, as it does where its gradient is.
    pub fn flat_mut(&mut self) -> &mut [f32] {
        &mut self.flat
    }

    /// The parts of a vector in the order of [`Lstm::flat`], such as a gradient, that belong to each parameter.
    pub fn split(&self, flat: &[f32]) -> Vec<Vec<f32>> {
        self.layout.split(flat)
    }

    /// A vector in the order of [`Lstm::flat`] from the parts that belong to each parameter, by name.
    ///
    /// # Errors
    /// Fails when a part is missing or of another size.
    pub fn join<'a>(&self, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<Floats> {
        join(&self.layout, part)
    }

    /// The logits `[b]` of the success of the samples of `batch`.
    ///
    /// Row `b` of the result depends on no other row, and not on the number of threads.
    pub fn logits(&self, batch: &Batch<'_>) -> Vec<f32> {
        let chunks = batch.chunks(&self.shape, SCORED_ROWS);
        let logits = chunks.par_iter().map(|batch| {
            let idle = self.idle().pop();
            let mut chunk = idle.unwrap_or_else(|| Chunk::for_scoring(&self.layout));
            chunk.forward(&self.layout, &self.flat, batch);
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

fn join<'a>(layout: &Layout, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<Floats> {
    let checked = |parameter: Parameter| {
        let name = parameter.name();
        let (values, count) = (part(&name)?, parameter.len(&layout.shape));
        let dims = parameter.dims(&layout.shape);
        ensure!(values.len() == count, "`{name}` has {} elements, expected {count} for {dims:?}", values.len());
        Ok(values)
    };
    // All of them before any memory is taken, so that a damaged file cannot ask for more than there is.
    layout.shape.parameters().into_iter().try_for_each(|parameter| checked(parameter).map(drop))?;
    layout.join(|parameter| Ok(checked(parameter)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::EMPTY;

    const SHAPE: Shape = Shape { e: 49, m: 5, j: 3, s: 2, hidden_size: 4, lstm_layers: 2 };

    fn logits(model: &Lstm, codes: &[u8], statics: &[f32]) -> Vec<f32> {
        model.logits(&Batch::new(&model.shape, codes, statics).expect("a batch"))
    }

    #[test]
    fn rows_do_not_touch_each_other() {
        let model = Lstm::new(SHAPE, 1);
        let samples = 2 * SCORED_ROWS + 3;
        let codes: Vec<u8> = (0..samples * 15).map(|i| if i % 7 == 0 { EMPTY } else { (i % 49) as u8 }).collect();
        let statics: Vec<f32> = (0..samples * 2).map(|i| i as f32 / 64.0).collect();
        let together = logits(&model, &codes, &statics);
        let alone = codes.chunks(15).zip(statics.chunks(2)).flat_map(|(codes, statics)| logits(&model, codes, statics));
        assert_eq!(together, alone.collect::<Vec<f32>>());
        assert_ne!(together[0], together[1]);
    }

    #[test]
    fn weights_depend_on_seed_and_name_alone() {
        let weights = |seed| Lstm::new(SHAPE, seed).weights();
        assert_eq!(weights(1), weights(1));
        assert_ne!(weights(1), weights(2));
        let bound = 0.5;
        assert!(weights(1).iter().flatten().all(|w| w.abs() <= bound));
    }

    /// A step by hand, by the equations of `nn.LSTM`.
    #[test]
    fn one_cell_by_hand() {
        let shape = Shape { e: 49, m: 2, j: 1, s: 1, hidden_size: 1, lstm_layers: 1 };
        let model = Lstm::new(shape, 3);
        let names = shape.parameters().into_iter().map(|parameter| parameter.name());
        let weights: std::collections::BTreeMap<String, Vec<f32>> = names.zip(model.weights()).collect();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let (mut state, mut cell) = (0f32, 0f32);
        for code in [0usize, 12] {
            let gate = |k: usize| {
                weights["lstm.weight_ih_l0"][k * 49 + code]
                    + weights["lstm.weight_hh_l0"][k] * state
                    + weights["lstm.bias_ih_l0"][k]
                    + weights["lstm.bias_hh_l0"][k]
            };
            cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * gate(2).tanh();
            state = sigmoid(gate(3)) * cell.tanh();
        }
        let head = &weights["linear.weight"];
        let expected = head[0] * state + head[1] * 0.25 + weights["linear.bias"][0];
        assert!((logits(&model, &[0, 12], &[0.25])[0] - expected).abs() < 1e-6);
    }

    #[test]
    fn weights_of_another_shape_and_foreign_codes_are_refused() {
        let short = [0f32; 3];
        assert!(Lstm::with_weights(SHAPE, |_| Ok(&short)).is_err());
        for shape in [Shape { lstm_layers: 0, ..SHAPE }, Shape { j: usize::MAX, ..SHAPE }, Shape { m: 0, ..SHAPE }] {
            assert!(Lstm::with_weights(shape, |_| Ok(&short)).is_err() && Batch::new(&shape, &[], &[]).is_err());
        }
        let refused = |codes: &[u8], statics: &[f32]| Batch::new(&SHAPE, codes, statics).is_err();
        assert!(!refused(&[48; 15], &[0.0; 2]) && refused(&[49; 15], &[0.0; 2]));
        assert!(refused(&[0; 14], &[0.0; 2]) && refused(&[0; 15], &[0.0; 3]));
    }
}
