//! Adam (Kingma and Ba 2015, algorithm 1), as PyTorch's `Adam` without weight decay, with moments that can be saved.

use anyhow::{Context as _, Result};
use candle_core::Tensor;
use candle_core::backprop::GradStore;

use crate::models::Lstm;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The optimiser's state: one vector of each moment per parameter, in the model's order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Adam {
    pub(super) first: Vec<Vec<f32>>,
    pub(super) second: Vec<Vec<f32>>,
    /// Steps taken.
    pub(super) step: u64,
}

impl Adam {
    pub(super) fn new(model: &Lstm) -> Adam {
        let zeros: Vec<Vec<f32>> = model.parameters().iter().map(|(_, var)| vec![0.0; var.elem_count()]).collect();
        Adam { first: zeros.clone(), second: zeros, step: 0 }
    }

    /// Moves every parameter of `model` against its gradient.
    pub(super) fn step(&mut self, model: &Lstm, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        self.step += 1;
        let step = self.step as i32;
        let rate = (learning_rate * (1.0 - BETA2.powi(step)).sqrt() / (1.0 - BETA1.powi(step))) as f32;
        let epsilon = (EPSILON * (1.0 - BETA2.powi(step)).sqrt()) as f32;
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((name, var), (first, second)) in model.parameters().iter().zip(moments) {
            let gradient = gradients.get(var).with_context(|| format!("`{name}` has no gradient"))?;
            let gradient: Vec<f32> = gradient.flatten_all()?.to_vec1()?;
            let mut weights: Vec<f32> = var.flatten_all()?.to_vec1()?;
            let cells = weights.iter_mut().zip(first).zip(second).zip(gradient);
            for (((weight, first), second), g) in cells {
                *first = BETA1 as f32 * *first + (1.0 - BETA1) as f32 * g;
                *second = BETA2 as f32 * *second + (1.0 - BETA2) as f32 * g * g;
                *weight -= rate * *first / (second.sqrt() + epsilon);
            }
            var.set(&Tensor::from_vec(weights, var.dims(), var.device())?)?;
        }
        Ok(())
    }
}
