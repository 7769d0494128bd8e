//! Kernels over vectors of eight numbers, compiled for AVX2 with FMA and for the baseline; which of
//! the two runs is chosen at run time.
//!
//! The width is the same everywhere, so that layouts do not depend on the processor. Without AVX2 a
//! vector is eight numbers, which the compiler maps to what the baseline has.

use std::any::TypeId;

use pulp::{Scalar256b, Simd, WithSimd};

/// Numbers in a vector.
pub(super) const LANES: usize = 8;

/// Runs `kernel` with the best vectors this processor has.
///
/// A kernel is compiled for each kind of vector. Everything it calls has to be inlined into it.
#[inline]
pub(crate) fn run_kernel<K: WithSimd>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, kernel);
    }
    Scalar256b.vectorize(kernel)
}

/// `a * b + c`, rounded once where the processor can.
///
/// On x86 without FMA, a fused operation would be a function call for each number.
#[inline(always)]
pub(crate) fn multiply_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if cfg!(target_arch = "x86_64") && TypeId::of::<S>() == TypeId::of::<Scalar256b>() {
        simd.add_f32s(simd.mul_f32s(a, b), c)
    } else {
        simd.mul_add_e_f32s(a, b, c)
    }
}

/// `numbers` as vectors; their length is a multiple of [`LANES`].
#[inline(always)]
pub(super) fn vectors<S: Simd>(numbers: &[f32]) -> &[S::f32s] {
    debug_assert_eq!(numbers.len() % LANES, 0);
    S::as_simd_f32s(numbers).0
}

/// `numbers` as vectors that can be changed.
#[inline(always)]
pub(super) fn vectors_mut<S: Simd>(numbers: &mut [f32]) -> &mut [S::f32s] {
    debug_assert_eq!(numbers.len() % LANES, 0);
    S::as_mut_simd_f32s(numbers).0
}
