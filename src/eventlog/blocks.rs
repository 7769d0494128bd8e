//! A log file → stretches of whole records of bounded size, each for one thread, and those → the
//! pieces that it parses one after another.

use std::path::Path;

use anyhow::{Context as _, Result};
use memchr::memrchr;

use super::record_cuts::{last_cut, next_cut};
use super::source::LogSource;

/// How a log is cut; it has no influence on what is read, but that the first block tells of which
/// access point it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSizes {
    /// How much of a log is read at first: what tells of which access point it is.
    pub(super) first_bytes: usize,
    /// How much of it is read at once later, by one thread.
    pub(super) block_bytes: usize,
    /// The piece that is parsed at a time.
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

/// Reads a log as stretches of whole records.
pub(super) struct BlockReader {
    pub(super) source: LogSource,
    /// How much is read at once from now on.
    read_bytes: usize,
    /// How much is read at once after the first block.
    block_bytes: usize,
    /// What was read beyond the last block.
    rest: Vec<u8>,
    at_end: bool,
    /// How many blocks were asked for so far.
    begun: usize,
    /// The path of the log, for messages.
    place: String,
}

/// A block that was read, or why that could not be, and its place among the blocks of the log.
pub(super) struct ReadBlock {
    pub(super) number: usize,
    pub(super) block: Result<LogBlock>,
}

/// A block of a log: whole records, in memory that another block can be read into afterwards.
pub(super) struct LogBlock {
    memory: Vec<u8>,
    text_bytes: usize,
    ends_log: bool,
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
            block_bytes: sizes.block_bytes,
            begun: 0,
            rest: Vec::new(),
            at_end: false,
            place: path.display().to_string(),
        }
    }

    /// The next block, or why it cannot be read; `None` after that, and at the end of the log. It is
    /// read into `memory`, that of an earlier block, as fresh memory costs more than reading.
    pub(super) fn next_block(&mut self, memory: Vec<u8>) -> Option<ReadBlock> {
        let block = self.read_block(memory).transpose()?;
        if block.is_err() {
            self.at_end = true;
            self.rest.clear();
        }
        let number = self.begun;
        self.begun += 1;
        Some(ReadBlock { number, block })
    }

    fn read_block(&mut self, mut memory: Vec<u8>) -> Result<Option<LogBlock>> {
        // What was read beyond the last block is the beginning of this one.
        let mut filled = self.rest.len();
        if memory.len() < filled {
            memory.resize(filled, 0);
        }
        memory[..filled].copy_from_slice(&self.rest);

        let mut text_bytes = 0;
        while text_bytes == 0 && !self.at_end {
            filled = self.read_on(&mut memory, filled)?;
            text_bytes = self.block_end(&memory[..filled]);
        }
        self.read_bytes = self.block_bytes;

        self.rest.clear();
        self.rest.extend_from_slice(&memory[text_bytes..filled]);
        Ok((text_bytes > 0).then_some(LogBlock {
            memory,
            text_bytes,
            ends_log: self.at_end,
        }))
    }

    /// Where the block ends that `text` begins with; 0 where more has to be read to know.
    fn block_end(&self, text: &[u8]) -> usize {
        if self.at_end {
            return text.len();
        }

        // The last cut and not the next one: it is near the end, so little is searched, and most of
        // what was read is parsed at once.
        match last_cut(text) {
            Some(cut) => cut,
            None if text.len() > MOST_WITHOUT_END_BYTES => {
                memrchr(b'\n', text).map_or(text.len(), |at| at + 1)
            }
            None => 0,
        }
    }

    /// Reads more behind the first `filled` bytes of `memory`; returns how many are filled then.
    fn read_on(&mut self, memory: &mut Vec<u8>, filled: usize) -> Result<usize> {
        let wanted = filled + self.read_bytes;
        if memory.len() < wanted {
            memory.resize(wanted, 0);
        }

        let read = self.source.fill(&mut memory[filled..wanted]);
        let read = read.with_context(|| format!("cannot read the log `{}`", self.place))?;
        // A source fills all it is given unless the log ends.
        self.at_end = read < self.read_bytes;
        Ok(filled + read)
    }
}

impl LogBlock {
    /// Whether the log ends with it.
    pub(super) fn ends_log(&self) -> bool {
        self.ends_log
    }

    /// Its records.
    pub(super) fn records(&self) -> RecordBlock<'_> {
        RecordBlock {
            text: &self.memory[..self.text_bytes],
            ends_log: self.ends_log,
        }
    }

    /// The memory for a later block.
    pub(super) fn into_memory(self) -> Vec<u8> {
        self.memory
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
