//! Parses the blocks of a log, and adds them to the assembly of the log in log order.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::anomaly_positions::count_line_feeds;
use super::assembly::LogAssembly;
use super::blocks::{LogBlock, RecordBlock};
use super::event::JobEvent;
use super::log::EventSink;
use super::log_order::NO_PANIC;
use super::piece::{EarlierPieces, ParsedPiece};
use super::read_error::BoxedResult;
use super::stamp::Stamp;

/// Parser of the blocks of one log. Threads share it.
pub(super) struct BlockParser {
    piece_bytes: usize,
    /// True if the log cannot be read again, so that lines are counted now.
    is_read_once: bool,
    spare_events: SpareMemory<(Stamp, JobEvent)>,
}

/// A parsed block.
pub(super) struct ParsedBlock {
    block: LogBlock,
    pieces: Vec<ParsedPiece>,
    /// Data of the earlier pieces, as known when the block was parsed.
    earlier: Arc<EarlierPieces>,
}

/// Memory for reuse. Fresh memory costs more than parsing into it, so a later block reuses the
/// memory of an earlier one.
pub(super) struct SpareMemory<T>(Mutex<Vec<Vec<T>>>);

impl<T> SpareMemory<T> {
    pub(super) fn new() -> SpareMemory<T> {
        SpareMemory(Mutex::default())
    }

    pub(super) fn take(&self) -> Vec<T> {
        self.0.lock().expect(NO_PANIC).pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, memory: Vec<T>) {
        self.0.lock().expect(NO_PANIC).push(memory);
    }
}

impl BlockParser {
    pub(super) fn new(piece_bytes: usize, is_read_once: bool) -> BlockParser {
        BlockParser {
            piece_bytes,
            is_read_once,
            spare_events: SpareMemory::new(),
        }
    }

    /// Parses a block, one piece after another, except for the data that `earlier` pieces have.
    pub(super) fn parse_block(&self, block: LogBlock, earlier: Arc<EarlierPieces>) -> ParsedBlock {
        let parts = block.records().split(self.piece_bytes);
        let pieces = parts
            .iter()
            .map(|part| self.parse_part(part, &earlier))
            .collect();
        ParsedBlock {
            block,
            pieces,
            earlier,
        }
    }

    /// Parses a piece, and counts its lines if the log cannot be read again.
    fn parse_part(&self, part: &RecordBlock<'_>, earlier: &EarlierPieces) -> ParsedPiece {
        let mut piece = ParsedPiece::parse(part, earlier, self.spare_events.take());
        if self.is_read_once {
            piece.lines = count_line_feeds(part.text);
        }
        piece
    }

    /// Adds the next block in log order to the assembly of the log at `path`. Returns the block's
    /// memory for reuse.
    pub(super) fn add_block(
        &self,
        parsed: ParsedBlock,
        assembly: &mut LogAssembly,
        path: &Path,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<Vec<u8>> {
        assembly.find_access_point(&parsed.pieces);

        let parts = parsed.block.records().split(self.piece_bytes);
        for (part, mut piece) in parts.iter().zip(parsed.pieces) {
            // If the log of another access point has begun, all its ads are new, so the piece is
            // parsed again.
            if !Arc::ptr_eq(assembly.earlier_pieces(), &parsed.earlier) {
                piece = self.parse_part(part, assembly.earlier_pieces());
            }
            let events = assembly.add_piece(part, piece, sink)?;
            self.spare_events.give_back(events);
        }
        assembly.check_beginning(path)?;
        assembly.skip_hole(parsed.block.hole_bytes());
        assembly.flush(sink)?;
        Ok(parsed.block.into_memory())
    }
}
