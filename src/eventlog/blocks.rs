//! A log file → stretches of whole records of bounded size, and those → the pieces that threads parse.

use std::path::Path;

use anyhow::{Context as _, Result};
use memchr::memrchr;

use super::record::{last_cut, next_cut};
use super::source::Source;

/// How a log is cut; it has no influence on what is read, but that the first block tells of which access point it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// How much of a log is read at first.
    pub(super) first_bytes: usize,
    /// How much of it is read at once later, for each thread, and held in memory.
    pub(super) block_bytes: usize,
    /// The piece that one thread parses at a time.
    pub(super) piece_bytes: usize,
}

/// A piece with its events fits a core's own cache, and so does what is read for it. The fuzzer's inputs are small, and have
/// many of both.
pub(super) const SIZES: Sizes = if cfg!(fuzzing) {
    Sizes {
        first_bytes: 1 << 10,
        block_bytes: 1 << 10,
        piece_bytes: 1 << 8,
    }
} else {
    Sizes {
        first_bytes: 1 << 20,
        block_bytes: 1 << 18,
        piece_bytes: 1 << 17,
    }
};

/// In a log, records end every few hundred bytes. Where none ends within so many, there is only damage, and it is cut
/// anywhere, so that memory stays bounded.
const MOST_WITHOUT_END_BYTES: usize = 64 << 20;

/// A log as stretches of whole records.
pub(super) struct Blocks {
    pub(super) source: Source,
    /// How much is read at once from now on, and after the first block.
    read_bytes: usize,
    block_bytes: usize,
    /// Holds a block and what was read beyond it. It is filled again and again, as fresh memory costs more than reading.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the last block ended.
    taken: usize,
    at_end: bool,
    place: String,
}

/// A stretch of whole records.
pub(super) struct Block<'a> {
    pub(super) text: &'a [u8],
    /// Whether the log ends with it.
    pub(super) ends_log: bool,
}

impl Blocks {
    /// The blocks of `source`, which is the log at `path`.
    pub(super) fn new(source: Source, path: &Path, sizes: Sizes) -> Blocks {
        let place = path.display().to_string();
        let Sizes {
            first_bytes: read_bytes,
            block_bytes,
            ..
        } = sizes;
        let block_bytes = block_bytes * rayon::current_num_threads();
        Blocks {
            source,
            read_bytes,
            block_bytes,
            buffer: Vec::new(),
            filled: 0,
            taken: 0,
            at_end: false,
            place,
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Block<'_>>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        while self.taken == 0 && !self.at_end {
            self.read()?;
            let text = &self.buffer[..self.filled];
            self.taken = match last_cut(text) {
                _ if self.at_end => self.filled,
                Some(cut) => cut,
                None if self.filled > MOST_WITHOUT_END_BYTES => {
                    memrchr(b'\n', text).map_or(self.filled, |at| at + 1)
                }
                None => 0,
            };
        }
        self.read_bytes = self.block_bytes;
        let text = &self.buffer[..self.taken];
        Ok((!text.is_empty()).then_some(Block {
            text,
            ends_log: self.at_end,
        }))
    }

    /// Reads on.
    fn read(&mut self) -> Result<()> {
        let wanted = self.filled + self.read_bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = self.source.fill(&mut self.buffer[self.filled..wanted]);
        let read = read.with_context(|| format!("cannot read the log `{}`", self.place))?;
        self.filled += read;
        self.at_end = read < self.read_bytes;
        Ok(())
    }
}

impl<'a> Block<'a> {
    /// The pieces of the block, in order: stretches of whole records, too.
    pub(super) fn split(&self, sizes: Sizes) -> Vec<Block<'a>> {
        let text = self.text;
        let mut pieces = Vec::with_capacity(text.len() / sizes.piece_bytes + 1);
        let mut start = 0;
        while start < text.len() {
            let end = next_cut(text, (start + sizes.piece_bytes).min(text.len()));
            pieces.push(Block {
                text: &text[start..end],
                ends_log: self.ends_log && end == text.len(),
            });
            start = end;
        }
        pieces
    }
}
