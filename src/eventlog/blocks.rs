//! A log file → stretches of whole records of bounded size, and those → the pieces that threads
//! parse.

use std::path::Path;

use anyhow::{Context as _, Result};
use memchr::memrchr;

use super::record_cuts::{last_cut, next_cut};
use super::source::LogSource;

/// How a log is cut; it has no influence on what is read, but that the first block tells of which
/// access point it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSizes {
    /// How much of a log is read at first.
    pub(super) first_bytes: usize,
    /// How much of it is read at once later, for each thread, and held in memory.
    pub(super) block_bytes: usize,
    /// The piece that one thread parses at a time.
    pub(super) piece_bytes: usize,
}

/// A piece with its events fits a core's own cache, and so does what is read for it. The fuzzer's
/// inputs are small, and have many of both.
pub(super) const BLOCK_SIZES: BlockSizes = if cfg!(fuzzing) {
    BlockSizes {
        first_bytes: 1 << 10,
        block_bytes: 1 << 10,
        piece_bytes: 1 << 8,
    }
} else {
    BlockSizes {
        first_bytes: 1 << 20,
        block_bytes: 1 << 18,
        piece_bytes: 1 << 17,
    }
};

/// In a log, records end every few hundred bytes. Where none ends within so many, there is only
/// damage, and it is cut anywhere, so that memory stays bounded.
const MOST_WITHOUT_END_BYTES: usize = 64 << 20;

/// Reads a log as stretches of whole records, each as large as the threads can take at once.
pub(super) struct BlockReader {
    pub(super) source: LogSource,
    /// How much is read at once from now on.
    read_bytes: usize,
    /// How much is read at once after the first block.
    block_bytes: usize,
    /// Holds a block and what was read beyond it. It is filled again and again, as fresh memory
    /// costs more than reading.
    buffer: Vec<u8>,
    /// How much of the buffer was read.
    filled: usize,
    /// Where the last block ended.
    taken: usize,
    at_end: bool,
    /// The path of the log, for messages.
    place: String,
}

/// A stretch of whole records.
pub(super) struct RecordBlock<'a> {
    pub(super) text: &'a [u8],
    /// Whether the log ends with it.
    pub(super) ends_log: bool,
}

impl BlockReader {
    /// The blocks of `source`, which is the log at `path`.
    pub(super) fn new(source: LogSource, path: &Path, sizes: BlockSizes) -> BlockReader {
        BlockReader {
            source,
            read_bytes: sizes.first_bytes,
            block_bytes: sizes.block_bytes * rayon::current_num_threads(),
            buffer: Vec::new(),
            filled: 0,
            taken: 0,
            at_end: false,
            place: path.display().to_string(),
        }
    }

    /// The next block; `None` at the end of the log.
    pub(super) fn next_block(&mut self) -> Result<Option<RecordBlock<'_>>> {
        // What was read beyond the last block is the beginning of this one.
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;

        while self.taken == 0 && !self.at_end {
            self.read_on()?;
            self.taken = self.block_end();
        }
        self.read_bytes = self.block_bytes;

        let text = &self.buffer[..self.taken];
        Ok((!text.is_empty()).then_some(RecordBlock {
            text,
            ends_log: self.at_end,
        }))
    }

    /// Where the block ends that the buffer begins with; 0 where more has to be read to know.
    fn block_end(&self) -> usize {
        if self.at_end {
            return self.filled;
        }

        // The last cut and not the next one: it is near the end, so little is searched, and most of
        // what was read is parsed at once.
        let text = &self.buffer[..self.filled];
        match last_cut(text) {
            Some(cut) => cut,
            None if self.filled > MOST_WITHOUT_END_BYTES => {
                memrchr(b'\n', text).map_or(self.filled, |at| at + 1)
            }
            None => 0,
        }
    }

    fn read_on(&mut self) -> Result<()> {
        let wanted = self.filled + self.read_bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }

        let read = self.source.fill(&mut self.buffer[self.filled..wanted]);
        let read = read.with_context(|| format!("cannot read the log `{}`", self.place))?;
        self.filled += read;
        // A source fills the whole buffer unless the log ends.
        self.at_end = read < self.read_bytes;
        Ok(())
    }
}

impl<'a> RecordBlock<'a> {
    /// The pieces of the block, in order: stretches of whole records, too.
    pub(super) fn split(&self, piece_bytes: usize) -> Vec<RecordBlock<'a>> {
        let text = self.text;
        let mut pieces = Vec::with_capacity(text.len() / piece_bytes + 1);
        let mut start = 0;
        while start < text.len() {
            // The next cut and not the last one, so that a piece is never empty.
            let end = next_cut(text, (start + piece_bytes).min(text.len()));
            pieces.push(RecordBlock {
                text: &text[start..end],
                ends_log: self.ends_log && end == text.len(),
            });
            start = end;
        }
        pieces
    }
}
