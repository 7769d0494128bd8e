//! The samples that a model looks at together, checked once so that nothing below has to.

use anyhow::{Result, ensure};

use super::Shape;
use crate::tensors::EMPTY_CELL;

/// Samples: codes `[b, m, j]` and static features `[b, s]`, both row-major.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub(super) codes: &'a [u8],
    pub(super) statics: &'a [f32],
    pub(super) b: usize,
}

impl<'a> Batch<'a> {
    /// The samples of a model of `shape`.
    ///
    /// # Errors
    /// Fails when no model has that shape, when the two have other lengths than `b * m * j` and `b * s`, or when a code is neither below `e` nor empty.
    pub fn new(shape: &Shape, codes: &'a [u8], statics: &'a [f32]) -> Result<Batch<'a>> {
        shape.check()?;
        let cells = shape.m * shape.j;
        let b = codes.len() / cells;
        ensure!(
            codes.len() == b * cells,
            "{} do not make whole samples of {cells}",
            crate::output::counted(codes.len(), "code")
        );
        ensure!(
            statics.len() == b * shape.s,
            "{} for {} of {}",
            crate::output::counted(statics.len(), "static feature"),
            crate::output::counted(b, "sample"),
            shape.s
        );
        let is_known = |&code: &u8| usize::from(code) < shape.e || code == EMPTY_CELL;
        ensure!(
            codes.iter().all(is_known),
            "a code is neither below {} nor {EMPTY_CELL}",
            shape.e
        );
        Ok(Batch { codes, statics, b })
    }

    /// How many samples, `b`.
    pub fn len(&self) -> usize {
        self.b
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.b == 0
    }

    /// These samples in pieces of `rows`, the last of which may be shorter.
    pub(super) fn chunks(&self, shape: &Shape, rows: usize) -> Vec<Batch<'a>> {
        let cells = shape.m * shape.j;
        let piece = |start: usize| {
            let end = self.b.min(start + rows);
            let codes = &self.codes[start * cells..end * cells];
            Batch {
                codes,
                statics: &self.statics[start * shape.s..end * shape.s],
                b: end - start,
            }
        };
        (0..self.b).step_by(rows).map(piece).collect()
    }
}
