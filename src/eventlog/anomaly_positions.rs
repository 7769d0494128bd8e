//! Positions of anomalies, found by a second read of the text.

use std::path::Path;

use memchr::memchr_iter;

use super::anomaly::{Anomaly, AnomalyPosition};
use super::blocks::{BLOCK_SIZES, RecordBlock};
use super::event_number::{AD_INFORMATION, GENERIC};
use super::read_error::ReadError;
use super::record_scan::RecordScan;
use super::source::LogSource;

/// Finds the record offsets of anomalies at events of one piece. `met` lists anomalies with their
/// event index in the piece of `block`. The result has the offset of the record instead of the
/// index.
pub(super) fn find_event_positions(
    block: &RecordBlock<'_>,
    met: &[(Anomaly, usize)],
) -> Vec<(Anomaly, usize)> {
    let mut met = met.iter().peekable();
    let mut events = 0;
    let mut found = Vec::new();

    // Events do not store their offsets, because every log would pay for it and few logs have
    // anomalies to locate. So this scans the piece again.
    RecordScan::new(block.text, block.is_at_log_end).for_each_record(|record| {
        if matches!(record.header.number, AD_INFORMATION | GENERIC) {
            return;
        }
        if let Some((anomaly, _)) = met.next_if(|(_, index)| *index == events) {
            found.push((*anomaly, record.at));
        }
        events += 1;
    });
    found
}

/// Sets the line numbers of `places` by reading the log at `path`. `places` must be sorted by
/// offset.
pub(super) fn find_lines(path: &Path, places: &mut [AnomalyPosition]) -> Result<(), ReadError> {
    if places.is_empty() {
        return Ok(());
    }

    let mut source = LogSource::open(path, |_| {})?;
    let mut buffer = vec![0; BLOCK_SIZES.piece_bytes];
    let mut start = 0u64;
    let mut line = 1u64;
    let mut places = places.iter_mut().peekable();
    while places.peek().is_some() {
        let filled = source.fill(&mut buffer)?;
        if filled == 0 {
            break;
        }

        let end = start + filled as u64;
        let mut counted = 0;
        while let Some(place) = places.next_if(|place| place.offset < end) {
            let at = (place.offset - start) as usize;
            line += count_line_feeds(&buffer[counted..at]);
            counted = at;
            place.line = line;
        }
        line += count_line_feeds(&buffer[counted..filled]);
        start = end;
    }
    Ok(())
}

/// Returns the number of line feeds in `text`.
pub(super) fn count_line_feeds(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}
