//! Float vectors aligned to cache lines, so that no load of a kernel crosses two lines.

use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct CacheLine([f32; 16]);

/// Numbers that start at a cache line, initially zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlignedFloats {
    lines: Vec<CacheLine>,
    len: usize,
}

impl AlignedFloats {
    /// Creates `len` zeros.
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
