//! Adam (Kingma and Ba 2015, algorithm 1), as PyTorch's `Adam` without weight decay, in one pass over a flat vector.

use pulp::Simd;
use rayon::prelude::*;

use crate::models::Floats;
use crate::models::simd::{Kernel, multiply_add, run};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Numbers that one thread moves at a time.
const PIECE: usize = 1 << 14;

/// The optimiser's state: both moments of every parameter, in the model's flat order.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    pub(super) first: Floats,
    pub(super) second: Floats,
    /// Steps taken.
    pub(super) step: u64,
}

impl Adam {
    /// Before the first step of so many parameters.
    pub fn new(parameters: usize) -> Adam {
        Adam { first: Floats::zeros(parameters), second: Floats::zeros(parameters), step: 0 }
    }

    /// Moves every weight against its gradient.
    pub fn step(&mut self, weights: &mut [f32], gradient: &[f32], learning_rate: f64) {
        self.step += 1;
        let step = self.step as i32;
        let second_correction = (1.0 - BETA2.powi(step)).sqrt();
        let rate = (learning_rate * second_correction / (1.0 - BETA1.powi(step))) as f32;
        let epsilon = (EPSILON * second_correction) as f32;
        let moments = self.first.par_chunks_mut(PIECE).zip(self.second.par_chunks_mut(PIECE));
        let pieces = weights.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE)).zip(moments);
        pieces.for_each(|((weights, gradient), (first, second))| {
            run(Move { weights, gradient, first, second, rate, epsilon });
        });
    }
}

/// One step of some weights.
struct Move<'a> {
    weights: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    rate: f32,
    epsilon: f32,
}

impl Kernel for Move<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (gradient, _) = S::as_simd_f32s(self.gradient);
        let (weights, _) = S::as_mut_simd_f32s(self.weights);
        let (first, _) = S::as_mut_simd_f32s(self.first);
        let (second, _) = S::as_mut_simd_f32s(self.second);
        let [keep1, add1] = [BETA1, 1.0 - BETA1].map(|factor| simd.splat_f32s(factor as f32));
        let [keep2, add2] = [BETA2, 1.0 - BETA2].map(|factor| simd.splat_f32s(factor as f32));
        let (rate, epsilon) = (simd.splat_f32s(-self.rate), simd.splat_f32s(self.epsilon));
        for (((weight, &g), first), second) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
            *first = multiply_add(simd, keep1, *first, simd.mul_f32s(add1, g));
            *second = multiply_add(simd, keep2, *second, simd.mul_f32s(simd.mul_f32s(add2, g), g));
            let scale = simd.add_f32s(simd.sqrt_f32s(*second), epsilon);
            *weight = simd.add_f32s(*weight, simd.div_f32s(simd.mul_f32s(rate, *first), scale));
        }
    }
}
