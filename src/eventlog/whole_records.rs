//! Finds the end of the last whole record in the text of a log that is being written.

use memchr::{memmem, memrchr};

use super::record_scan::RecordScan;

/// Returns the offset in `text` of the end of the last whole record; 0 if there is none. `text` ends
/// where the log ends, and begins at a record or after the result of an earlier call.
///
/// A copy of a log up to this offset can be continued from there once the log has grown.
pub fn whole_records_end(text: &[u8]) -> usize {
    let lines = memrchr(b'\n', text).map_or(0, |at| at + 1);
    let mut records = RecordScan::new(&text[..lines], true);
    records.for_each_record(|_| ());

    // The text may begin within a record that looked complete to the previous run. Then its first
    // line may be the line that really ends the record.
    let end_alone = if text.starts_with(b"...\n") { 4 } else { 0 };
    let terminator_end = memmem::rfind(&text[..lines], b"\n...\n").map_or(end_alone, |at| at + 5);
    records.whole_end.unwrap_or(0).max(terminator_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_records_are_excluded() {
        let whole = "012 (1.0.0) 01/01 00:00:00 Job was held.\n\treason\n...\n";
        for rest in [
            "",
            "013 (1.0.0) 01/01 00:00:01 Job was rel",
            "013 (1.0.0) 01/01 00:00:01 x\n...",
            "\0\0",
        ] {
            let text = format!("{whole}{rest}");
            assert_eq!(whole_records_end(text.as_bytes()), whole.len(), "{rest}");
        }
        assert_eq!(
            whole_records_end(b"...\n"),
            4,
            "the rest of an earlier record"
        );
        assert_eq!(whole_records_end(b"012 (1.0.0) 01/01"), 0);
    }
}
