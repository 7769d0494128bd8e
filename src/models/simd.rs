//! Kernels over vectors of eight numbers, compiled for AVX2 with FMA and for the baseline, and some
//! also over sixteen, for AVX-512; which of them runs is chosen at run time.
//!
//! Layouts are made for eight numbers everywhere, so that they do not depend on the processor. What
//! comes of a kernel does not depend on its width either: each lane is a result of its own, and what
//! is added up for it is added in the same order. Without AVX2 a vector is eight numbers, which the
//! compiler maps to what the baseline has.

use std::any::TypeId;

use pulp::{Scalar256b, Simd, WithSimd};

/// Numbers in a vector.
pub const LANES: usize = 8;

/// Numbers in a vector of AVX-512.
pub const WIDE_LANES: usize = 16;

/// Runs `kernel` with the best vectors this processor has.
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

/// The same for a kernel that also knows vectors of sixteen numbers, where the processor has AVX-512.
#[inline]
pub fn run_wide_kernel<K: WithSimd>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V4::try_new() {
        return Simd::vectorize(simd, kernel);
    }
    run_kernel(kernel)
}

/// Runs `kernel` with vectors of eight numbers, or of sixteen; `None` on a processor without both, which
/// has nothing to compare.
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

/// Whether vectors of this kind have sixteen numbers.
#[inline(always)]
pub const fn is_wide<S: Simd>() -> bool {
    S::F32_LANES == WIDE_LANES
}

/// `a * b + c`, rounded once where the processor can.
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

/// `numbers` as vectors, of which they are a whole number.
#[inline(always)]
pub fn vectors<S: Simd>(numbers: &[f32]) -> &[S::f32s] {
    debug_assert_eq!(numbers.len() % S::F32_LANES, 0);
    S::as_simd_f32s(numbers).0
}

/// `numbers` as vectors that can be changed.
#[inline(always)]
pub fn vectors_mut<S: Simd>(numbers: &mut [f32]) -> &mut [S::f32s] {
    debug_assert_eq!(numbers.len() % S::F32_LANES, 0);
    S::as_mut_simd_f32s(numbers).0
}
