//! Where anomalies stand: positions that only reading a second time tells.

use std::path::Path;

use anyhow::Result;
use memchr::memchr_iter;

use super::anomaly::{Anomaly, AnomalyPlace};
use super::blocks::{BLOCK_SIZES, RecordBlock};
use super::event_number::{AD_INFORMATION, GENERIC};
use super::record_scan::RecordScan;
use super::source::LogSource;

/// What was met at events of the piece of `block`, each with the index of its event → with where
/// its record begins.
pub(super) fn find_event_positions(
    block: &RecordBlock<'_>,
    met: &[(Anomaly, usize)],
) -> Vec<(Anomaly, usize)> {
    let mut met = met.iter().peekable();
    let mut events = 0;
    let mut found = Vec::new();

    // Events do not keep where they stand: most logs have nothing to place, and all would pay for
    // it.
    RecordScan::new(block.text, block.ends_log).for_each_record(|record| {
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

/// Finds the lines of `places`, which are in order of their offsets, in the log at `path`.
pub(super) fn find_lines(path: &Path, places: &mut [AnomalyPlace]) -> Result<()> {
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
            line += line_feeds(&buffer[counted..at]);
            counted = at;
            place.line = line;
        }
        line += line_feeds(&buffer[counted..filled]);
        start = end;
    }
    Ok(())
}

/// How many lines end in `text`.
pub(super) fn line_feeds(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}
