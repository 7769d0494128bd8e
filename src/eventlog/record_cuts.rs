//! Finds offsets at which a log can be cut between two records, without a scan of all previous
//! text.

use memchr::{memchr, memrchr};

use super::classad::AdFormat;
use super::record_header::parse_header;

/// Returns true if a record begins at the start of `text`.
pub(super) fn begins_record(text: &[u8]) -> bool {
    parse_header(text).is_some()
        || matches!(
            AdFormat::at_start(text),
            Some(AdFormat::Json | AdFormat::Xml)
        )
}

/// Returns the first offset after `from` at which a record begins after a terminated one; the
/// length of `text` if there is none.
pub(super) fn next_record_start(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(newline) = memchr(b'\n', &text[at..]).map(|n| at + n) {
        if is_cut(text, newline + 1) {
            return newline + 1;
        }
        at = newline + 1;
    }
    text.len()
}

/// Returns the last offset in `text` at which a record begins after a terminated one; `None` if
/// there is none. A log can be cut there and read in two parts.
pub fn last_record_start(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(newline) = memrchr(b'\n', &text[..end]) {
        if is_cut(text, newline + 1) {
            return Some(newline + 1);
        }
        end = newline;
    }
    None
}

/// Returns true if a line that ends a record precedes `at`, and a line that begins one is at `at`.
fn is_cut(text: &[u8], at: usize) -> bool {
    #[cfg(test)]
    tests::CHECKED_LINES.set(tests::CHECKED_LINES.get() + 1);
    let (before, after) = text.split_at(at);
    match after.first() {
        // A header that reaches the end of the read text may continue and turn out not to be a
        // header.
        Some(b'0'..=b'9') => {
            (ends_with_line(before, b"...\n") || ends_with_line(before, b"...\r\n"))
                && parse_header(after).is_some_and(|(_, header_bytes)| header_bytes < after.len())
        }
        Some(b'{') => {
            ends_with_line(before, b"}\n") && AdFormat::at_start(after) == Some(AdFormat::Json)
        }
        Some(b'<') => {
            ends_with_line(before, b"</c>\n") && AdFormat::at_start(after) == Some(AdFormat::Xml)
        }
        _ => false,
    }
}

/// Returns true if the last line of `text` is `line` and another line precedes it.
fn ends_with_line(text: &[u8], line: &[u8]) -> bool {
    text.strip_suffix(line)
        .is_some_and(|before| before.ends_with(b"\n"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    thread_local! {
        /// Number of lines at which this thread looked for a cut.
        pub(crate) static CHECKED_LINES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn logs_are_not_cut_at_truncated_headers() {
        let first = "001 (1.0.0) 01/02 03:04:05 Job executing\n...\n";
        let second = "012 (1.0.0) 2024-01-02 03:04:06 Job was held.\n";
        let text = b"...\n000 (1.0.0) 01/02 03:04:x\n...\n";
        assert!((0..text.len()).all(|end| last_record_start(&text[..end]).is_none()));
        assert_eq!(
            last_record_start(&format!("{first}{}", &second[..34]).into_bytes()),
            Some(first.len())
        );
    }
}
