//! Copies the whole records of a log that is being written.

use std::io::{Read, Write};

use anyhow::Result;
use memchr::{memmem, memrchr};

use crate::record_cuts::last_cut;
use crate::record_scan::RecordScan;
use poolcast_base::files::fill_buffer;

/// Size of the copy buffer, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Copies whole records from `from` to `to`. Returns the number of copied bytes.
pub(super) fn copy_whole_records(from: &mut impl Read, to: &mut impl Write) -> Result<u64> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut filled = 0;
    let mut copied = 0;
    loop {
        filled += fill_buffer(from, &mut block[filled..])?;
        let is_at_end = filled < block.len();
        let whole = if is_at_end {
            whole_end(&block[..filled])
        } else {
            last_cut(&block).unwrap_or(filled)
        };

        to.write_all(&block[..whole])?;
        copied += whole as u64;
        if is_at_end {
            return Ok(copied);
        }
        block.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

/// Returns the offset of the end of the last whole record in `text`.
pub(super) fn whole_end(text: &[u8]) -> usize {
    let lines = memrchr(b'\n', text).map_or(0, |at| at + 1);
    let mut records = RecordScan::new(&text[..lines], true);
    records.for_each_record(|_| ());

    // The text may begin within a record that looked complete to the previous run. Then its first
    // line may be the line that really ends the record.
    let end_alone = if text.starts_with(b"...\n") { 4 } else { 0 };
    let terminator_end = memmem::rfind(&text[..lines], b"\n...\n").map_or(end_alone, |at| at + 5);
    records.whole_end.unwrap_or(0).max(terminator_end)
}
