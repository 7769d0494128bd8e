//! Adam (Kingma and Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov and Hutter 2019),
//! as PyTorch's `AdamW`, after clipping as PyTorch's `clip_grad_norm_`; in one pass over a flat
//! vector.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::config::NetworkParameters;
use crate::models::AlignedFloats;
use crate::models::simd::{multiply_add, run_kernel};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Numbers that one thread works on at a time.
const PIECE: usize = 1 << 14;

/// How far a step goes, and in which direction.
#[derive(Debug, Clone, Copy)]
pub struct AdamSettings {
    /// The learning rate.
    pub learning_rate: f64,
    /// The share of the learning rate by which every weight shrinks at each step.
    pub weight_decay: f64,
    /// The largest norm of a whole gradient; a longer one is shortened. 0 is no limit.
    pub clip_grad_norm: f64,
}

/// The optimiser's state: both moments of every parameter, in the model's flat order.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    pub(super) first: AlignedFloats,
    pub(super) second: AlignedFloats,
    /// Steps taken.
    pub(super) step: u64,
}

impl Adam {
    /// Before the first step, for so many parameters.
    pub fn new(parameters: usize) -> Adam {
        Adam {
            first: AlignedFloats::zeros(parameters),
            second: AlignedFloats::zeros(parameters),
            step: 0,
        }
    }

    /// Moves every weight against its gradient.
    pub fn step(&mut self, weights: &mut [f32], gradient: &[f32], settings: &AdamSettings) {
        self.step += 1;
        let step = self.step as i32;
        let second_correction = (1.0 - BETA2.powi(step)).sqrt();
        let rate = (settings.learning_rate * second_correction / (1.0 - BETA1.powi(step))) as f32;
        let epsilon = (EPSILON * second_correction) as f32;
        let keep = (1.0 - settings.learning_rate * settings.weight_decay) as f32;
        let scale = settings.gradient_scale(gradient);

        let moments = self
            .first
            .par_chunks_mut(PIECE)
            .zip(self.second.par_chunks_mut(PIECE));
        let pieces = weights
            .par_chunks_mut(PIECE)
            .zip(gradient.par_chunks(PIECE))
            .zip(moments);
        pieces.for_each(|((weights, gradient), (first, second))| {
            run_kernel(AdamStep {
                weights,
                gradient,
                first,
                second,
                rate,
                epsilon,
                keep,
                scale,
            });
        });
    }
}

impl From<&NetworkParameters> for AdamSettings {
    fn from(parameters: &NetworkParameters) -> AdamSettings {
        AdamSettings {
            learning_rate: parameters.learning_rate,
            weight_decay: parameters.weight_decay,
            clip_grad_norm: parameters.clip_grad_norm,
        }
    }
}

impl AdamSettings {
    /// What the gradient is multiplied by.
    fn gradient_scale(&self, gradient: &[f32]) -> f32 {
        if self.clip_grad_norm == 0.0 {
            return 1.0;
        }
        // Pieces and their order are fixed, so that the sum does not depend on threads.
        let squares: Vec<f64> = gradient.par_chunks(PIECE).map(sum_of_squares).collect();
        let norm = squares.iter().sum::<f64>().sqrt();
        (self.clip_grad_norm / (norm + 1e-6)).min(1.0) as f32
    }
}

fn sum_of_squares(numbers: &[f32]) -> f64 {
    numbers.iter().map(|&g| f64::from(g) * f64::from(g)).sum()
}

/// One step of some weights.
struct AdamStep<'a> {
    weights: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    rate: f32,
    epsilon: f32,
    /// What is left of a weight.
    keep: f32,
    /// What the gradient is multiplied by.
    scale: f32,
}

impl WithSimd for AdamStep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (gradient, _) = S::as_simd_f32s(self.gradient);
        let (weights, _) = S::as_mut_simd_f32s(self.weights);
        let (first, _) = S::as_mut_simd_f32s(self.first);
        let (second, _) = S::as_mut_simd_f32s(self.second);
        let [keep1, add1] = [BETA1, 1.0 - BETA1].map(|factor| simd.splat_f32s(factor as f32));
        let [keep2, add2] = [BETA2, 1.0 - BETA2].map(|factor| simd.splat_f32s(factor as f32));
        let rate = simd.splat_f32s(-self.rate);
        let epsilon = simd.splat_f32s(self.epsilon);
        let keep = simd.splat_f32s(self.keep);
        let scale = simd.splat_f32s(self.scale);

        for (((weight, &g), first), second) in
            weights.iter_mut().zip(gradient).zip(first).zip(second)
        {
            let g = simd.mul_f32s(scale, g);
            *first = multiply_add(simd, keep1, *first, simd.mul_f32s(add1, g));
            *second = multiply_add(
                simd,
                keep2,
                *second,
                simd.mul_f32s(simd.mul_f32s(add2, g), g),
            );

            let spread = simd.add_f32s(simd.sqrt_f32s(*second), epsilon);
            let kept = simd.mul_f32s(keep, *weight);
            *weight = simd.add_f32s(kept, simd.div_f32s(simd.mul_f32s(rate, *first), spread));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps by the equations, one weight at a time.
    #[test]
    fn decay_and_clipping_by_hand() {
        let settings = AdamSettings {
            learning_rate: 0.1,
            weight_decay: 0.5,
            clip_grad_norm: 1.0,
        };
        let gradients = [
            [3.0f32, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.3, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ];
        let mut weights = [1.0f32, -2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let mut adam = Adam::new(weights.len());
        let (mut expected, mut first, mut second) = (weights.map(f64::from), [0.0; 8], [0.0; 8]);
        for (gradient, step) in gradients.iter().zip(1..) {
            adam.step(&mut weights, gradient, &settings);
            let norm = gradient
                .iter()
                .map(|&g| f64::from(g).powi(2))
                .sum::<f64>()
                .sqrt();
            for at in 0..8 {
                let g = f64::from(gradient[at]) * (1.0 / norm).min(1.0);
                first[at] = BETA1 * first[at] + (1.0 - BETA1) * g;
                second[at] = BETA2 * second[at] + (1.0 - BETA2) * g * g;
                let (mean, square) = (
                    first[at] / (1.0 - BETA1.powi(step)),
                    second[at] / (1.0 - BETA2.powi(step)),
                );
                expected[at] =
                    expected[at] * (1.0 - 0.1 * 0.5) - 0.1 * mean / (square.sqrt() + EPSILON);
            }
        }
        for (weight, expected) in weights.iter().zip(expected) {
            assert!(
                (f64::from(*weight) - expected).abs() < 1e-6,
                "{weight} instead of {expected}"
            );
        }
    }
}
