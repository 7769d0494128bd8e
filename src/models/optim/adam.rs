//! The Adam optimiser (Kingma and Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov and
//! Hutter 2019), like PyTorch's `AdamW`. Gradients are clipped first, like in PyTorch's
//! `clip_grad_norm_`. One pass over a flat vector.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::AlignedFloats;
use crate::simd::{multiply_add, run_wide_kernel};
use poolcast_config::NetworkParameters;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Parameters per parallel task.
const PARAMETERS_PER_TASK: usize = 1 << 14;

/// Settings of an optimiser step.
#[derive(Debug, Clone, Copy)]
pub struct AdamSettings {
    /// Learning rate.
    pub learning_rate: f64,
    /// Share of the learning rate by which every weight shrinks at each step.
    pub weight_decay: f64,
    /// Maximum norm of the whole gradient. A longer gradient is scaled down to it. 0 means no
    /// limit.
    pub clip_grad_norm: f64,
}

/// The optimiser's state: both moments of every parameter, in the model's flat order.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// Running means of the gradients.
    pub first: AlignedFloats,
    /// Running means of the squared gradients.
    pub second: AlignedFloats,
    /// Steps taken.
    pub step: u64,
}

impl Adam {
    /// The state before the first step, for a number of `parameters`.
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
            .par_chunks_mut(PARAMETERS_PER_TASK)
            .zip(self.second.par_chunks_mut(PARAMETERS_PER_TASK));
        let pieces = weights
            .par_chunks_mut(PARAMETERS_PER_TASK)
            .zip(gradient.par_chunks(PARAMETERS_PER_TASK))
            .zip(moments);
        pieces.for_each(|((weights, gradient), (first, second))| {
            run_wide_kernel(AdamStep {
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
            weight_decay: parameters.weight_decay.unwrap_or(0.0),
            clip_grad_norm: parameters.clip_grad_norm.unwrap_or(0.0),
        }
    }
}

impl AdamSettings {
    /// Returns the settings with the learning rate times `factor`.
    pub(super) fn with_rate_factor(self, factor: f64) -> AdamSettings {
        AdamSettings {
            learning_rate: self.learning_rate * factor,
            ..self
        }
    }

    /// The factor that clips the gradient.
    fn gradient_scale(&self, gradient: &[f32]) -> f32 {
        if self.clip_grad_norm == 0.0 {
            return 1.0;
        }
        // The pieces and their order are fixed, so the sum does not depend on the thread count.
        let squares: Vec<f64> = gradient
            .par_chunks(PARAMETERS_PER_TASK)
            .map(sum_of_squares)
            .collect();
        let norm = squares.iter().sum::<f64>().sqrt();
        (self.clip_grad_norm / (norm + 1e-6)).min(1.0) as f32
    }
}

fn sum_of_squares(numbers: &[f32]) -> f64 {
    numbers.iter().map(|&g| f64::from(g) * f64::from(g)).sum()
}

/// One step of a slice of weights.
struct AdamStep<'a> {
    weights: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    rate: f32,
    epsilon: f32,
    /// Factor of the weight that remains after weight decay.
    keep: f32,
    /// Factor of the gradient, from clipping.
    scale: f32,
}

impl WithSimd for AdamStep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let constants = AdamConstants::<S> {
            keep1: simd.splat_f32s(BETA1 as f32),
            add1: simd.splat_f32s((1.0 - BETA1) as f32),
            keep2: simd.splat_f32s(BETA2 as f32),
            add2: simd.splat_f32s((1.0 - BETA2) as f32),
            rate: simd.splat_f32s(-self.rate),
            epsilon: simd.splat_f32s(self.epsilon),
            keep: simd.splat_f32s(self.keep),
            scale: simd.splat_f32s(self.scale),
        };
        let (gradient, last_gradient) = S::as_simd_f32s(self.gradient);
        let (weights, last_weights) = S::as_mut_simd_f32s(self.weights);
        let (first, last_first) = S::as_mut_simd_f32s(self.first);
        let (second, last_second) = S::as_mut_simd_f32s(self.second);

        for (((weight, &g), first), second) in
            weights.iter_mut().zip(gradient).zip(first).zip(second)
        {
            (*weight, *first, *second) = constants.step(simd, *weight, g, *first, *second);
        }

        // The tail is shorter than a vector.
        let (weight, first, second) = constants.step(
            simd,
            simd.partial_load_f32s(last_weights),
            simd.partial_load_f32s(last_gradient),
            simd.partial_load_f32s(last_first),
            simd.partial_load_f32s(last_second),
        );
        simd.partial_store_f32s(last_weights, weight);
        simd.partial_store_f32s(last_first, first);
        simd.partial_store_f32s(last_second, second);
    }
}

/// The constants of a step, in every lane of a vector.
struct AdamConstants<S: Simd> {
    keep1: S::f32s,
    add1: S::f32s,
    keep2: S::f32s,
    add2: S::f32s,
    rate: S::f32s,
    epsilon: S::f32s,
    keep: S::f32s,
    scale: S::f32s,
}

impl<S: Simd> AdamConstants<S> {
    /// The weight and its moments after the step.
    #[inline(always)]
    fn step(
        &self,
        simd: S,
        weight: S::f32s,
        g: S::f32s,
        first: S::f32s,
        second: S::f32s,
    ) -> (S::f32s, S::f32s, S::f32s) {
        let g = simd.mul_f32s(self.scale, g);
        let first = multiply_add(simd, self.keep1, first, simd.mul_f32s(self.add1, g));
        let square = simd.mul_f32s(simd.mul_f32s(self.add2, g), g);
        let second = multiply_add(simd, self.keep2, second, square);

        let spread = simd.add_f32s(simd.sqrt_f32s(second), self.epsilon);
        let kept = simd.mul_f32s(self.keep, weight);
        let moved = simd.div_f32s(simd.mul_f32s(self.rate, first), spread);
        (simd.add_f32s(kept, moved), first, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::run_at_width;

    /// Takes three steps with a number of weights that does not fill whole vectors.
    #[test]
    fn steps_do_not_depend_on_vector_width() {
        let numbers = |factor: usize| {
            let number = |at: usize| (at * factor % 1000) as f32 / 500.0 - 1.0;
            (0..43).map(number).collect::<Vec<f32>>()
        };
        let steps = |is_wide| {
            let mut weights = numbers(7919);
            let (mut first, mut second) = (vec![0.0; 43], vec![0.0; 43]);
            for step in 1..4 {
                let kernel = AdamStep {
                    weights: &mut weights,
                    gradient: &numbers(104_729 * step),
                    first: &mut first,
                    second: &mut second,
                    rate: 0.01,
                    epsilon: 1e-8,
                    keep: 0.999,
                    scale: 0.7,
                };
                run_at_width(kernel, is_wide)?;
            }
            Some([weights, first, second].concat())
        };
        let wide = steps(true);
        assert_eq!(wide, steps(false));
        if let Some(wide) = wide {
            let unmoved = numbers(7919);
            assert!(
                wide.iter()
                    .zip(unmoved)
                    .all(|(moved, before)| *moved != before)
            );
        }
    }

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
