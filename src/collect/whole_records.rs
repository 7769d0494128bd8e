//! Copies the whole records of a log that is being written.

use std::io::{Read, Write};

use anyhow::Result;

use htcondor_eventlog::{last_record_start, whole_records_end};

/// Size of the copy buffer, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Copies whole records from `from` to `to`. Returns the number of copied bytes.
pub(super) fn copy_whole_records(from: &mut impl Read, to: &mut impl Write) -> Result<u64> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut copied = 0;
    loop {
        let free_bytes = BLOCK_BYTES - block.len();
        from.by_ref()
            .take(free_bytes as u64)
            .read_to_end(&mut block)?;
        let is_at_end = block.len() < BLOCK_BYTES;
        let whole = if is_at_end {
            whole_records_end(&block)
        } else {
            last_record_start(&block).unwrap_or(block.len())
        };

        to.write_all(&block[..whole])?;
        copied += whole as u64;
        if is_at_end {
            return Ok(copied);
        }
        block.drain(..whole);
    }
}
