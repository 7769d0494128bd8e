//! Batches of samples, validated once so that no other code has to check them.

use anyhow::{Context as _, Result, ensure};

use super::{EMPTY_CELL, ModelShape, TokenBatch};
use poolcast_base::error::hinted;
use poolcast_base::output;

/// Samples: codes `[b, m, j]`, static features `[b, s]`, and bits of what each job shares with the held
/// one `[b, j]`, all row-major.
#[derive(Debug, Clone, Copy)]
pub struct SampleBatch<'a> {
    pub(super) codes: &'a [u8],
    /// Empty if the model does not read it.
    pub(super) shared: &'a [u8],
    pub(super) statics: &'a [f32],
    /// Outcome tokens, if the samples have any.
    pub(super) tokens: Option<TokenBatch<'a>>,
    pub(super) b: usize,
}

impl<'a> SampleBatch<'a> {
    /// Creates a batch for a model of `shape` that does not read what jobs share.
    ///
    /// # Errors
    /// Fails like [`SampleBatch::with_shared`].
    pub fn new(shape: &ModelShape, codes: &'a [u8], statics: &'a [f32]) -> Result<SampleBatch<'a>> {
        SampleBatch::with_shared(shape, codes, &[], statics)
    }

    /// Creates a batch for a model of `shape`. A model that does not read `shared` ignores it.
    ///
    /// # Errors
    /// Fails when no model has that shape, when the lengths are not `b * m * j`, `b * j` and `b *
    /// s`, and when a code is neither below `e` nor empty.
    pub fn with_shared(
        shape: &ModelShape,
        codes: &'a [u8],
        shared: &'a [u8],
        statics: &'a [f32],
    ) -> Result<SampleBatch<'a>> {
        shape.check_sizes()?;

        let cells = shape.m * shape.j;
        let b = codes.len() / cells;
        ensure!(
            codes.len() == b * cells,
            "{} do not make whole samples of {cells}",
            output::counted(codes.len(), "code")
        );
        ensure!(
            statics.len() == b * shape.s,
            "{} for {} of {}",
            output::counted(statics.len(), "static feature"),
            output::counted(b, "sample"),
            shape.s
        );
        ensure!(
            codes
                .iter()
                .all(|&code| usize::from(code) < shape.e || code == EMPTY_CELL),
            "a code is out of range: expected less than {}, or {EMPTY_CELL}",
            shape.e
        );

        let shared = if shape.shared_bits > 0 { shared } else { &[] };
        ensure!(
            shared.len() == b * shape.shared_bytes(),
            "{} of shared bits for {} of {}",
            output::counted(shared.len(), "byte"),
            output::counted(b, "sample"),
            output::counted(shape.j, "job")
        );
        Ok(SampleBatch {
            codes,
            shared,
            statics,
            tokens: None,
            b,
        })
    }

    /// Returns the batch with the outcome tokens of its samples.
    ///
    /// # Errors
    /// Fails when the samples have other lengths, and when a code is out of range.
    pub fn with_tokens(self, tokens: TokenBatch<'a>) -> Result<SampleBatch<'a>> {
        tokens.check(self.b)?;
        Ok(SampleBatch {
            tokens: Some(tokens),
            ..self
        })
    }

    /// The outcome tokens of the samples.
    pub(super) fn tokens(&self) -> Result<&TokenBatch<'a>> {
        self.tokens.as_ref().with_context(|| {
            hinted(
                "the samples have no outcome tokens",
                "build them with `preprocessing.outcomes: true`",
            )
        })
    }

    /// The number of samples, `b`.
    pub fn len(&self) -> usize {
        self.b
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.b == 0
    }

    /// Splits the samples into chunks of `rows`. The last chunk may be shorter.
    pub(super) fn split_into_chunks(
        &self,
        shape: &ModelShape,
        rows: usize,
    ) -> Vec<SampleBatch<'a>> {
        let cells = shape.m * shape.j;
        let shared = shape.shared_bytes();
        let mut chunks = Vec::with_capacity(self.b.div_ceil(rows));

        for start in (0..self.b).step_by(rows) {
            let end = self.b.min(start + rows);
            chunks.push(SampleBatch {
                codes: &self.codes[start * cells..end * cells],
                shared: &self.shared[start * shared..end * shared],
                statics: &self.statics[start * shape.s..end * shape.s],
                tokens: self.tokens.map(|tokens| tokens.slice(start, end, self.b)),
                b: end - start,
            });
        }
        chunks
    }
}
