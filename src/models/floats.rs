//! Vectors of numbers that begin at a cache line, so that no load of a kernel crosses two of them.

use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct CacheLine([f32; 16]);

/// Numbers from the start of a cache line on, zero at first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlignedFloats {
    lines: Vec<CacheLine>,
    len: usize,
}

impl AlignedFloats {
    /// `len` zeros.
    pub fn zeros(len: usize) -> AlignedFloats {
        AlignedFloats {
            lines: vec![CacheLine([0.0; 16]); len.div_ceil(16)],
            len,
        }
    }
}

impl Deref for AlignedFloats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for AlignedFloats {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}
