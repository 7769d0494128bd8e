//! Reads a log file as blocks of whole records, and splits each block into pieces. One thread
//! parses the pieces of a block one after another.

use memchr::memrchr;

use super::read_error::ReadError;
use super::record_cuts::{last_record_start, next_record_start};
use super::source::LogSource;

/// Block and piece sizes, in bytes. They do not affect the result, except that the access point is
/// determined from the first block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSizes {
    /// Size of the first block, from which the access point is determined.
    pub(super) first_bytes: usize,
    /// Size of each later block; one thread parses it.
    pub(super) block_bytes: usize,
    /// Size of a piece, the unit of parsing.
    pub(super) piece_bytes: usize,
}

/// A piece with its events, and the data read for it, fit a core's own cache. Fuzzing uses small
/// sizes, so that its small inputs have several blocks and pieces.
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

/// Maximum amount of text, in bytes, in which no record ends. Records usually end every few hundred
/// bytes. Longer text is damaged, so it is cut anywhere to bound the memory.
const MAX_UNCUT_BYTES: usize = 64 << 20;

/// Number of NULs after which a run of them is a hole, which a crashed file system or a sparse file
/// has. The rest of a hole is counted, but not kept.
const MIN_HOLE_BYTES: usize = 1 << 20;

/// Maximum number of bytes of a hole that are skipped at once. So an endless source of NULs is
/// rejected, because it is not a log.
const MAX_SKIPPED_BYTES: u64 = 1 << 30;

/// Maximum number of bytes around the start of a record that tell that a record begins there. A
/// start that is not found in text that ends there, but would be found in longer text, is at most
/// this far from the end. A start with more blanks in its header is not found; another one follows.
const MAX_CUT_BYTES: usize = 4 << 10;

/// Reads a log as blocks of whole records.
pub(super) struct BlockReader {
    pub(super) source: LogSource,
    /// Number of bytes to read at a time from now on.
    read_bytes: usize,
    /// Number of bytes to read at a time after the first block.
    block_bytes: usize,
    /// Bytes that were read beyond the last block.
    rest: Vec<u8>,
    is_at_end: bool,
    /// Number of blocks returned so far, errors included.
    begun: usize,
}

/// A block or its read error, with its index among the blocks of the log.
pub(super) struct ReadBlock {
    pub(super) number: usize,
    pub(super) block: Result<LogBlock, ReadError>,
}

/// A block of whole records. Its memory can be reused for another block.
pub(super) struct LogBlock {
    memory: Vec<u8>,
    text_bytes: usize,
    /// Number of NULs after the text that were skipped.
    hole_bytes: u64,
    is_at_log_end: bool,
}

/// A slice of text that consists of whole records.
pub(super) struct RecordBlock<'a> {
    pub(super) text: &'a [u8],
    /// True if the log ends with this slice.
    pub(super) is_at_log_end: bool,
}

impl BlockReader {
    /// Creates a reader of `source`.
    pub(super) fn new(source: LogSource, sizes: BlockSizes) -> BlockReader {
        BlockReader {
            source,
            read_bytes: sizes.first_bytes,
            block_bytes: sizes.block_bytes,
            begun: 0,
            rest: Vec::new(),
            is_at_end: false,
        }
    }

    /// Returns the next block or its read error; `None` after an error and at the end of the log.
    /// The block is read into `memory`, which comes from an earlier block, because fresh memory
    /// costs more than reading.
    pub(super) fn next_block(&mut self, memory: Vec<u8>) -> Option<ReadBlock> {
        let block = self.read_block(memory).transpose()?;
        if block.is_err() {
            self.is_at_end = true;
            self.rest.clear();
        }
        let number = self.begun;
        self.begun += 1;
        Some(ReadBlock { number, block })
    }

    /// Reads the next block into `memory`; returns `None` at the end of the log.
    fn read_block(&mut self, mut memory: Vec<u8>) -> Result<Option<LogBlock>, ReadError> {
        // The bytes that were read beyond the last block begin this one.
        let mut filled = self.rest.len();
        if memory.len() < filled {
            memory.resize(filled, 0);
        }
        memory[..filled].copy_from_slice(&self.rest);

        let mut hole_bytes = 0;
        let mut searched = 0;
        let text_bytes = loop {
            if self.is_at_end {
                break filled;
            }
            let begin = filled;
            filled = self.read_on(&mut memory, begin)?;

            let nuls = hole_length(&memory[..filled], begin);
            if nuls > 0 && begin + nuls == filled {
                hole_bytes += nuls as u64;
                filled = begin;
                if hole_bytes > MAX_SKIPPED_BYTES {
                    break begin;
                }
                continue;
            }
            if hole_bytes > 0 {
                // The block ends in the hole, and the next one begins after it.
                hole_bytes += nuls as u64;
                memory.copy_within(begin + nuls..filled, begin);
                filled -= nuls;
                break begin;
            }

            if let Some(end) = self.block_end(&memory[..filled], searched) {
                break end;
            }
            searched = filled;
        };
        self.read_bytes = self.block_bytes;

        self.rest.clear();
        self.rest.extend_from_slice(&memory[text_bytes..filled]);
        Ok((text_bytes > 0).then_some(LogBlock {
            memory,
            text_bytes,
            hole_bytes,
            is_at_log_end: self.is_at_end && self.rest.is_empty(),
        }))
    }

    /// Returns the length of the block that `text` begins with; `None` if more text must be read to
    /// find it. The first `searched` bytes were searched when `text` ended there.
    fn block_end(&self, text: &[u8], searched: usize) -> Option<usize> {
        if self.is_at_end {
            return Some(text.len());
        }

        // The last cut, not the next one: it is near the end, so the search is short, and most of
        // the text is parsed now.
        let unsearched = searched.saturating_sub(MAX_CUT_BYTES);
        match last_record_start(&text[unsearched..]) {
            Some(cut) => Some(unsearched + cut),
            None if text.len() > MAX_UNCUT_BYTES => {
                Some(memrchr(b'\n', text).map_or(text.len(), |at| at + 1))
            }
            None => None,
        }
    }

    /// Reads more bytes behind the first `filled` bytes of `memory`. Returns the new number of
    /// filled bytes.
    fn read_on(&mut self, memory: &mut Vec<u8>, filled: usize) -> Result<usize, ReadError> {
        let wanted = filled + self.read_bytes;
        if memory.len() < wanted {
            memory.resize(wanted, 0);
        }

        let read = self.source.fill(&mut memory[filled..wanted])?;
        // A source fills the whole buffer unless the log ends.
        self.is_at_end = read < self.read_bytes;
        Ok(filled + read)
    }
}

impl LogBlock {
    /// Returns true if the log ends with this block.
    pub(super) fn is_at_log_end(&self) -> bool {
        self.is_at_log_end
    }

    /// Returns the records of the block.
    pub(super) fn records(&self) -> RecordBlock<'_> {
        RecordBlock {
            text: &self.memory[..self.text_bytes],
            is_at_log_end: self.is_at_log_end,
        }
    }

    /// Returns the number of NULs after the records that were skipped.
    pub(super) fn hole_bytes(&self) -> u64 {
        self.hole_bytes
    }

    /// Returns the memory for reuse by a later block.
    pub(super) fn into_memory(self) -> Vec<u8> {
        self.memory
    }
}

/// Returns the number of NULs at `begin` that continue a hole; 0 if no hole reaches `begin`.
fn hole_length(text: &[u8], begin: usize) -> usize {
    let (before, after) = text.split_at(begin);
    let is_nul = |byte: &&u8| **byte == 0;
    let is_in_hole = before
        .len()
        .checked_sub(MIN_HOLE_BYTES)
        .is_some_and(|hole| before[hole..].iter().rev().all(|byte| *byte == 0));
    if is_in_hole {
        after.iter().take_while(is_nul).count()
    } else {
        0
    }
}

impl<'a> RecordBlock<'a> {
    /// Splits the block into pieces of whole records, in order.
    pub(super) fn split(&self, piece_bytes: usize) -> Vec<RecordBlock<'a>> {
        let text = self.text;
        let mut pieces = Vec::with_capacity(text.len() / piece_bytes + 1);
        let mut start = 0;
        while start < text.len() {
            // The next cut, not the last one, so that a piece is never empty.
            let end = next_record_start(text, (start + piece_bytes).min(text.len()));
            pieces.push(RecordBlock {
                text: &text[start..end],
                is_at_log_end: self.is_at_log_end && end == text.len(),
            });
            start = end;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_cuts::tests::CHECKED_LINES;
    use super::*;
    use std::io::{Seek as _, SeekFrom, Write as _};

    /// Returns the number of lines that are checked to read a log with `empty_lines` empty lines
    /// between two records.
    fn checked_lines(empty_lines: usize) -> usize {
        let record = "000 (1.0.0) 2024-01-01 00:00:01 s\n...\n";
        let text = [record, &"\n".repeat(empty_lines), record].concat();
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs_err::write(file.path(), &text).expect("written");
        let sizes = BlockSizes {
            first_bytes: 4096,
            block_bytes: 4096,
            piece_bytes: 4096,
        };
        let source = LogSource::open(file.path(), |_| {}).expect("opened");
        let mut blocks = BlockReader::new(source, sizes);

        let before = CHECKED_LINES.get();
        let mut bytes = 0;
        while let Some(read) = blocks.next_block(Vec::new()) {
            bytes += read.block.expect("read").text_bytes;
        }
        assert_eq!(bytes, text.len());
        CHECKED_LINES.get() - before
    }

    #[test]
    fn text_without_records_is_searched_once() {
        let (few, many) = (checked_lines(100_000), checked_lines(400_000));
        assert!(
            many <= 5 * few,
            "{many} lines checked, and {few} in a quarter of the text"
        );
    }

    /// Writes a log with `hole_bytes` NULs between its two records, as a sparse file.
    fn write_log_with_hole(path: &std::path::Path, hole_bytes: u64) {
        let record = b"000 (1.0.0) 2024-01-01 00:00:01 s\n...\n";
        let mut file = fs_err::File::create(path).expect("made");
        file.write_all(record).expect("written");
        file.seek(SeekFrom::Current(hole_bytes as i64))
            .expect("skipped");
        file.write_all(record).expect("written");
    }

    #[test]
    fn holes_are_counted_and_not_kept() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for hole_bytes in [0, 5, 3 << 20, 400 << 20] {
            write_log_with_hole(file.path(), hole_bytes);
            let source = LogSource::open(file.path(), |_| {}).expect("opened");
            let mut blocks = BlockReader::new(source, BLOCK_SIZES);
            let (mut bytes, mut memory) = (0, Vec::new());
            while let Some(read) = blocks.next_block(memory) {
                let block = read.block.expect("read");
                bytes += block.text_bytes as u64 + block.hole_bytes;
                memory = block.into_memory();
                let kept = memory.capacity() + blocks.rest.capacity();
                assert!(kept < 8 << 20, "{kept} bytes are kept of {hole_bytes}");
            }
            let size = file.path().metadata().expect("known").len();
            assert_eq!(bytes, size, "every byte is counted");
        }
    }

    /// The first of several reads ends at every offset near the header.
    #[test]
    fn starts_of_records_across_reads_are_found() {
        let junk = |lines: usize| "junk\n".repeat(lines);
        let before = junk(2000) + "...\n";
        let text = [&before, "000 (1.0.0) 2024-01-01 00:00:01 s\n", &junk(8000)].concat();
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs_err::write(file.path(), &text).expect("written");
        for read_bytes in before.len() - 9..before.len() + 40 {
            let sizes = BlockSizes {
                first_bytes: read_bytes,
                block_bytes: read_bytes,
                piece_bytes: 4096,
            };
            let source = LogSource::open(file.path(), |_| {}).expect("opened");
            let first = BlockReader::new(source, sizes).next_block(Vec::new());
            let first = first.expect("a block").block.expect("read");
            assert_eq!(
                first.text_bytes,
                before.len(),
                "reads of {read_bytes} bytes"
            );
        }
    }
}
