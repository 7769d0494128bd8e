//! SIMD kernels over vectors of eight numbers, compiled for AVX2 with FMA and for the baseline.
//! Some are also compiled for vectors of sixteen, for AVX-512. The version is chosen at run time.
//!
//! Memory layouts always assume eight numbers, so that they do not depend on the processor. A
//! kernel's result does not depend on the vector width either. Each lane is a separate result, and
//! its terms are added in the same order. Without AVX2 a vector also has eight numbers, which the
//! compiler maps to the baseline's vectors.

use std::any::TypeId;

use pulp::{Scalar256b, Simd, WithSimd};

/// Numbers in a vector.
pub const LANES: usize = 8;

/// Numbers in a vector of AVX-512.
pub const WIDE_LANES: usize = 16;

/// Runs `kernel` with the best vectors of this processor, up to eight numbers.
///
/// A kernel is compiled for each kind of vector. Everything it calls has to be inlined into it.
#[inline]
pub fn run_kernel<K: WithSimd>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, kernel);
    }
    Scalar256b.vectorize(kernel)
}

/// Like [`run_kernel`], but uses vectors of sixteen numbers if the processor has AVX-512. The
/// kernel must support them.
#[inline]
pub fn run_wide_kernel<K: WithSimd>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V4::try_new() {
        return Simd::vectorize(simd, kernel);
    }
    run_kernel(kernel)
}

/// Runs `kernel` with vectors of eight or of sixteen numbers. Returns `None` on a processor without
/// both, where there is nothing to compare.
#[cfg(test)]
pub fn run_at_width<K: WithSimd>(kernel: K, is_wide: bool) -> Option<K::Output> {
    #[cfg(target_arch = "x86_64")]
    if let (Some(narrow), Some(wide)) = (pulp::x86::V3::try_new(), pulp::x86::V4::try_new()) {
        return Some(if is_wide {
            Simd::vectorize(wide, kernel)
        } else {
            Simd::vectorize(narrow, kernel)
        });
    }
    None
}

/// Returns true if vectors of this kind have sixteen numbers.
#[inline(always)]
pub const fn is_wide<S: Simd>() -> bool {
    S::F32_LANES == WIDE_LANES
}

/// Computes `a * b + c`, rounded once if the processor can do so.
///
/// On x86 without FMA, a fused operation would be a function call for each number.
#[inline(always)]
pub fn multiply_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if cfg!(target_arch = "x86_64") && TypeId::of::<S>() == TypeId::of::<Scalar256b>() {
        simd.add_f32s(simd.mul_f32s(a, b), c)
    } else {
        simd.mul_add_e_f32s(a, b, c)
    }
}

/// Views `numbers` as vectors. Their count must be a multiple of the vector's length.
#[inline(always)]
pub fn vectors<S: Simd>(numbers: &[f32]) -> &[S::f32s] {
    debug_assert_eq!(numbers.len() % S::F32_LANES, 0);
    S::as_simd_f32s(numbers).0
}

/// Like [`vectors`], but mutable.
#[inline(always)]
pub fn vectors_mut<S: Simd>(numbers: &mut [f32]) -> &mut [S::f32s] {
    debug_assert_eq!(numbers.len() % S::F32_LANES, 0);
    S::as_mut_simd_f32s(numbers).0
}
