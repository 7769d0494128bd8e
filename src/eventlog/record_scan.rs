//! Finds the records in a text, even in damaged logs: where each one ends and the next begins.
//!
//! One vectorised search finds every line that can begin or end a record, and all other lines are
//! skipped. Records are text, or ClassAds in JSON or XML. The format may change within a file.

use std::ops::Range;

use memchr::memrchr;

use super::anomaly::Anomaly;
use super::classad::{AdAttributes, AdFormat};
use super::event_number::is_of_other_event;
use super::marks::LineMarks;
use super::record::{LogRecord, RecordContent};
use super::record_header::{RecordHeader, parse_header};

/// Scanner of the records in a piece of a log. The piece begins at a record or with the log, and
/// ends with a record or the log.
pub(super) struct RecordScan<'a> {
    text: &'a [u8],
    /// True if the log ends with the piece; otherwise a record begins after it.
    is_at_log_end: bool,
    marks: LineMarks<'a>,
    /// True if the first line of the text was returned.
    has_begun: bool,
    /// Offset up to which all text belongs to a record or was counted as an anomaly.
    covered: usize,
    open: Option<OpenRecord>,
    /// Offset of the end of the last whole record; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
    /// Anomalies so far, with their offsets in the piece.
    pub(super) anomalies: Vec<(Anomaly, usize)>,
}

/// A text record whose end is not known yet.
struct OpenRecord {
    start: usize,
    /// Header and its length in bytes; `None` if the header cannot be read.
    header: Option<(RecordHeader, usize)>,
    /// Last terminator so far. Old hold reasons span lines and may contain a line `...`, so the
    /// last one counts.
    terminator: Option<Range<usize>>,
}

/// Role of a line for the record that it is in, begins or ends.
enum LineRole {
    Nothing,
    Header(RecordHeader, usize),
    DamagedHeader,
    Terminator(Range<usize>),
    /// A terminator with a header on the same line, at this offset.
    GluedHeader(usize),
    Ad(AdFormat),
}

/// Result of a line that is neither a header nor a plain terminator in a record.
enum RareOutcome<'a> {
    Nothing,
    /// A whole record.
    Record(LogRecord<'a>),
    /// Offset at which a text record begins, and its header if it can be read.
    Start(usize, Option<(RecordHeader, usize)>),
}

impl<'a> RecordScan<'a> {
    pub(super) fn new(text: &'a [u8], is_at_log_end: bool) -> RecordScan<'a> {
        RecordScan {
            text,
            is_at_log_end,
            marks: LineMarks::new(text, preamble_length(text)),
            has_begun: false,
            covered: 0,
            open: None,
            whole_end: Some(0),
            anomalies: Vec::new(),
        }
    }

    /// Passes all records to `take`, in order. An iterator would copy each record once more, which
    /// costs a twentieth of the total speed.
    #[inline(always)]
    pub(super) fn for_each_record(&mut self, mut take: impl FnMut(&LogRecord<'a>)) {
        while let Some(line) = self.next_marked_line() {
            // Nearly every mark is a header, or a plain terminator within a record. All others are
            // resolved out of line, so that this loop stays small and fast.
            let header = parse_header(&self.text[line..]);
            let (start, header) = match (header, &mut self.open) {
                (None, Some(open)) if self.text[line..].starts_with(b"...\n") => {
                    // The record stays open, because this line may be part of its text. Only the
                    // next header shows that the terminator was the last one.
                    open.terminator = Some(line..line + 4);
                    continue;
                }
                (Some(header), _) => (line, Some(header)),
                _ => match self.resolve_rare_line(line) {
                    RareOutcome::Nothing => continue,
                    RareOutcome::Record(record) => {
                        take_rare_record(&mut take, &record);
                        continue;
                    }
                    RareOutcome::Start(start, header) => (start, header),
                },
            };

            if let Some(record) = self.close_record(start) {
                take(&record);
            }
            self.open = Some(OpenRecord {
                start,
                header,
                terminator: None,
            });
        }

        let has_rest = self.open.is_some() || self.covered < self.text.len();
        if has_rest && let Some(record) = self.finish_piece() {
            take_rare_record(&mut take, &record);
        }
    }

    /// Returns all records, in order.
    pub(super) fn collect_records(mut self) -> Vec<LogRecord<'a>> {
        let mut records = Vec::new();
        self.for_each_record(|record| records.push(*record));
        records
    }

    /// Returns the offset of the next significant line.
    #[inline(always)]
    fn next_marked_line(&mut self) -> Option<usize> {
        // No line feed precedes the first line, so the marks do not include it.
        if !self.has_begun {
            self.has_begun = true;
            return Some(preamble_length(self.text));
        }
        self.marks.next()
    }

    /// Returns the role of the line at offset `line`.
    fn line_role(&self, line: usize) -> LineRole {
        let text = &self.text[line..];
        let is_between_records = self
            .open
            .as_ref()
            .is_none_or(|open| open.terminator.is_some());

        match text.first() {
            Some(b'.') if text.starts_with(b"...") => match &text[3..] {
                [] => LineRole::Terminator(line..line + 3),
                [b'\n', ..] => LineRole::Terminator(line..line + 4),
                [b'\r', b'\n', ..] => LineRole::Terminator(line..line + 5),
                rest if parse_header(rest).is_some() => LineRole::GluedHeader(line + 3),
                _ => LineRole::Nothing,
            },
            // Within a record, a line that only resembles a header is part of its text.
            Some(b'0'..=b'9') => match parse_header(text) {
                Some((header, header_bytes)) => LineRole::Header(header, header_bytes),
                None if is_between_records && is_header_like(text) => LineRole::DamagedHeader,
                None => LineRole::Nothing,
            },
            Some(b'{' | b'<') => match AdFormat::at_start(text) {
                Some(AdFormat::Prolog) if !is_between_records => LineRole::Nothing,
                format => format.map_or(LineRole::Nothing, LineRole::Ad),
            },
            _ => LineRole::Nothing,
        }
    }

    fn note_anomaly(&mut self, anomaly: Anomaly, at: usize) {
        self.anomalies.push((anomaly, at));
    }

    /// Marks the text up to `to` as processed; recognised text begins there. Unprocessed text
    /// before it is junk.
    #[inline]
    fn cover_until(&mut self, to: usize) {
        if self.covered < to {
            self.note_anomaly(Anomaly::Junk, self.covered);
            self.covered = to;
        }
    }

    /// Ends the open record, because the next one begins at `next`.
    #[inline(always)]
    fn close_record(&mut self, next: usize) -> Option<LogRecord<'a>> {
        let Some(open) = self.open.take() else {
            self.cover_until(next);
            return None;
        };

        let end = match &open.terminator {
            Some(terminator) => {
                self.covered = terminator.end;
                // If the log is cut off after `...`, its line feed may follow later. So there is no
                // resume point after this record.
                let is_whole = self.text[..terminator.end].ends_with(b"\n")
                    || terminator.end < self.text.len();
                self.whole_end = is_whole.then_some(terminator.end);
                terminator.start
            }
            None => {
                if open.header.is_some() {
                    self.note_anomaly(Anomaly::LostTerminator, open.start);
                }
                self.covered = next;
                self.whole_end = Some(next);
                next
            }
        };

        let Some((header, header_bytes)) = open.header else {
            self.note_anomaly(Anomaly::DamagedRecord, open.start);
            self.cover_until(next);
            return None;
        };
        self.cover_until(next);

        let whole = &self.text[open.start..end];
        let text = &whole[header_bytes..];
        if is_of_other_event(header.number, text.strip_prefix(b" ").unwrap_or(text)) {
            self.note_anomaly(Anomaly::DamagedRecord, open.start);
            return None;
        }
        Some(LogRecord {
            at: open.start,
            header,
            whole,
            content: RecordContent::Text(text),
        })
    }

    /// Returns the offset of the next record after `from`.
    fn next_record_start(&self, from: usize) -> Option<usize> {
        let begins = |line: &usize| {
            matches!(
                self.line_role(*line),
                LineRole::Header(..) | LineRole::Ad(_)
            )
        };
        LineMarks::new(self.text, from)
            .find(begins)
            .or((!self.is_at_log_end).then_some(self.text.len()))
    }

    /// Parses the ClassAd at `line`, if it ends before the next record begins.
    fn read_ad(&mut self, line: usize, format: AdFormat) -> Option<LogRecord<'a>> {
        // The search ends at the next record. Otherwise, a log full of torn ads would be searched
        // to its end for each of them.
        let next = if format == AdFormat::Prolog {
            None
        } else {
            self.next_record_start(line)
        };
        let searched = &self.text[line..next.unwrap_or(self.text.len())];
        let Some(length) = format.length(searched) else {
            self.skip_torn_ad(line, format, next);
            return None;
        };

        // Marks within the parsed text do not belong to records, so they are skipped.
        let end = line + length;
        let whole = &self.text[line..end];
        self.covered = end;
        self.marks = LineMarks::new(self.text, end - 1);
        self.whole_end = self.text[..end].ends_with(b"\n").then_some(end);
        if format == AdFormat::Prolog {
            return None;
        }

        let Some(attributes) = AdAttributes::read(whole, format) else {
            self.note_anomaly(Anomaly::DamagedRecord, line);
            return None;
        };
        let Some(header) = attributes.header() else {
            self.note_anomaly(Anomaly::Junk, line);
            return None;
        };
        Some(LogRecord {
            at: line,
            header,
            whole,
            content: RecordContent::Ad(format),
        })
    }

    /// Skips a ClassAd that begins at `line` and does not end before the record at `next`.
    fn skip_torn_ad(&mut self, line: usize, format: AdFormat, next: Option<usize>) {
        if next.is_some() {
            // An open record without a header is counted as damaged when the next one begins.
            self.open = Some(OpenRecord {
                start: line,
                header: None,
                terminator: None,
            });
            return;
        }
        if format != AdFormat::Prolog {
            self.note_anomaly(Anomaly::UnfinishedRecord, line);
        }
        self.covered = self.text.len();
        self.marks = LineMarks::new(self.text, self.covered);
    }

    /// Resolves a line that is neither a header nor a plain terminator in a record.
    #[cold]
    fn resolve_rare_line(&mut self, line: usize) -> RareOutcome<'a> {
        match self.line_role(line) {
            LineRole::Nothing => RareOutcome::Nothing,
            LineRole::Terminator(terminator) => {
                if let Some(open) = &mut self.open {
                    open.terminator = Some(terminator);
                }
                RareOutcome::Nothing
            }
            LineRole::Ad(format) => {
                let record = if self.open.is_some() {
                    // The scan finds this mark again, without an open record.
                    self.marks = LineMarks::new(self.text, line - 1);
                    self.close_record(line)
                } else {
                    self.cover_until(line);
                    self.read_ad(line, format)
                };
                record.map_or(RareOutcome::Nothing, RareOutcome::Record)
            }
            LineRole::Header(header, header_bytes) => {
                RareOutcome::Start(line, Some((header, header_bytes)))
            }
            // A record with an unreadable header is open, too: the text after it belongs to it.
            LineRole::DamagedHeader => RareOutcome::Start(line, None),
            LineRole::GluedHeader(start) => {
                self.note_anomaly(Anomaly::GluedHeader, line);
                if let Some(open) = &mut self.open {
                    open.terminator.get_or_insert(line..start);
                } else {
                    self.cover_until(line);
                    self.covered = start;
                }
                RareOutcome::Start(start, parse_header(&self.text[start..]))
            }
        }
    }

    /// Ends the piece: closes the open record, or counts it as unfinished if the log ends here.
    fn finish_piece(&mut self) -> Option<LogRecord<'a>> {
        let end = self.text.len();
        if !self.is_at_log_end {
            // The next piece begins with a record, so the open one is whole.
            return self.close_record(end);
        }

        let is_unfinished = self
            .open
            .as_ref()
            .is_some_and(|open| open.terminator.is_none());
        // The writer may add more of the record later, so it is not an event yet.
        if is_unfinished {
            let start = self.open.take().map_or(0, |open| open.start);
            self.note_anomaly(Anomaly::UnfinishedRecord, start);
            self.covered = end;
        }

        // A last line without a line feed may be a header that is still being written.
        let has_last_line_feed = self.text.last().is_none_or(|byte| *byte == b'\n');
        let last_line = memrchr(b'\n', self.text).map_or(0, |at| at + 1);
        let next = if has_last_line_feed { end } else { last_line };
        let tail = self
            .open
            .as_ref()
            .and_then(|open| open.terminator.clone())
            .map_or(self.covered, |terminator| terminator.end);
        let record = self.close_record(next.max(tail));

        if self.covered < end {
            let may_be_header = self.text[self.covered..]
                .iter()
                .all(|byte| b"0123456789 (.-)/:TZ{<c".contains(byte));
            let anomaly = if may_be_header {
                Anomaly::UnfinishedRecord
            } else {
                Anomaly::Junk
            };
            self.note_anomaly(anomaly, self.covered);
            self.covered = end;
        }
        record
    }
}

/// Calls `take` for one of the few records that are found on a slow path. The call is out of line,
/// so that `take` is inlined only into the loop over the other records.
#[cold]
#[inline(never)]
fn take_rare_record<'a>(take: &mut dyn FnMut(&LogRecord<'a>), record: &LogRecord<'a>) {
    take(record);
}

/// Returns the length, in bytes, of text that may precede the first line: a byte order mark and
/// NULs.
fn preamble_length(text: &[u8]) -> usize {
    let mark = if text.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    mark + text[mark..].iter().take_while(|byte| **byte == 0).count()
}

/// Returns true if `text` begins like a header: `NNN (`.
fn is_header_like(text: &[u8]) -> bool {
    text.len() > 5 && text[..3].iter().all(u8::is_ascii_digit) && text[3..].starts_with(b" (")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: impl AsRef<[u8]>) -> (Vec<u16>, Vec<Anomaly>) {
        let mut records = RecordScan::new(text.as_ref(), true);
        let mut found = Vec::new();
        records.for_each_record(|record| found.push(record.header.number));
        (
            found,
            records
                .anomalies
                .into_iter()
                .map(|(anomaly, _)| anomaly)
                .collect(),
        )
    }

    const A: &str = "001 (1.0.0) 01/02 03:04:05 Job executing\n...\n";
    const B: &str = "012 (1.0.0) 2024-01-02 03:04:06 Job was held.\n\tx\n\tCode 3 Subcode 4\n...\n";

    #[test]
    fn damage_costs_at_most_the_damaged_record() {
        assert_eq!(numbers(format!("{A}{B}")), (vec![1, 12], vec![]));
        assert_eq!(
            numbers(format!("{A}\n\0\0junk\n{B}")),
            (vec![1, 12], vec![Anomaly::Junk])
        );
        assert_eq!(
            numbers(format!("{}{B}", A.replace("...\n", ""))),
            (vec![1, 12], vec![Anomaly::LostTerminator])
        );
        assert_eq!(
            numbers(format!("{}{B}", A.replace("...\n", "..."))),
            (vec![1, 12], vec![Anomaly::GluedHeader])
        );
        assert_eq!(
            numbers(format!("tail of a record\n...\n{B}")),
            (vec![12], vec![Anomaly::Junk])
        );
        assert_eq!(
            numbers(format!("{A}012 (a.b.c) 01/02 03:04:05 x\n...\n{B}")),
            (vec![1, 12], vec![Anomaly::DamagedRecord])
        );
        assert_eq!(
            numbers(format!("{A}{}", &B[..60])),
            (vec![1], vec![Anomaly::UnfinishedRecord])
        );
        assert_eq!(
            numbers(format!("{A}{}", &B[..10])),
            (vec![1], vec![Anomaly::UnfinishedRecord])
        );
        assert_eq!(
            numbers(B.trim_end()),
            (vec![12], vec![]),
            "a final log may lack its last newline"
        );
        assert_eq!(
            numbers(B.replace("\tx\n", "\tx\n...\n\ty\n")),
            (vec![12], vec![]),
            "a reason may hold dots"
        );
        assert_eq!(numbers(B.replace('\n', "\r\n")), (vec![12], vec![]));
        assert_eq!(
            numbers("999 (-01.-01.-01) 01/02 03:04:05 new\n...\n"),
            (vec![999], vec![])
        );
    }

    #[test]
    fn records_with_the_text_of_another_event_are_damage() {
        let ended = "012 (1.0.0) 01/02 03:04:05 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n";
        let released = "005 (1.0.0) 01/02 03:04:05 Job was released.\n...\n";
        assert_eq!(
            numbers(format!("{A}{ended}{released}{B}")),
            (vec![1, 12], vec![Anomaly::DamagedRecord; 2])
        );
        // The text of a generic event is free, and another version may have other words.
        let free = "008 (1.0.0) 01/02 03:04:05 Job was held.\n...\n";
        let other = "012 (1.0.0) 01/02 03:04:05 Job is held\n...\n";
        assert_eq!(numbers(format!("{free}{other}")), (vec![8, 12], vec![]));
    }

    #[test]
    fn a_record_after_a_run_of_nuls_is_kept() {
        assert_eq!(
            numbers(format!("{A}\0\0\0{B}")),
            (vec![1, 12], vec![Anomaly::Junk])
        );
        assert_eq!(
            numbers(format!("\0\0\0{B}")),
            (vec![12], vec![Anomaly::Junk])
        );
        assert_eq!(
            numbers(format!("{}\0\0\0{B}", &A[..35])),
            (vec![1, 12], vec![Anomaly::LostTerminator])
        );
        assert_eq!(
            numbers(format!("\u{feff}{A}{B}")),
            (vec![1, 12], vec![Anomaly::Junk]),
            "a byte order mark"
        );
    }

    /// If each ad were searched to the end, this log would take hours.
    #[test]
    fn torn_ads_are_scanned_in_linear_time() {
        let torn = "{\n  \"EventTypeNumber\": 1,\n".repeat(200_000);
        let (found, anomalies) = numbers(format!("{torn}{A}"));
        assert_eq!((found, anomalies.len()), (vec![1], 200_000));
    }
}
