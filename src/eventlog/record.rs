//! Bytes → records: where one record ends and the next begins, also in damaged logs.
//!
//! One vectorised search finds every line that can begin or end a record; all other lines are never looked at. Records
//! are text, or ClassAds in JSON or XML; the form may change within a file.

use std::ops::Range;

use memchr::{memchr, memrchr};
use serde::{Deserialize, Serialize};

use super::classad::{Attributes, Form};
use super::marks::Marks;
use super::stamp::{self, Stamp};

/// Something in a log that a sound log would not hold; counted, never fatal unless the caller says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// Bytes between records that belong to none: blank lines, NULs, text, the tail of a record whose head is missing.
    Junk,
    /// A record without its line `...`; the next header follows directly.
    LostTerminator,
    /// A line `...` with the next header on the same line.
    GluedHeader,
    /// A record whose header cannot be read; it is left out.
    DamagedRecord,
    /// A job number that HTCondor's 32 bits cannot hold; the event is counted and belongs to no job.
    JobIdOutOfRange,
    /// The log ends within a record; that record is not counted as an event.
    UnfinishedRecord,
    /// A header of a global event log that was written anew over the beginning of the event after it.
    OverwrittenEvent,
    /// A header of a global event log where none can stand; it is taken for an event.
    MisplacedHeader,
    /// Stamps went back by about an hour: they are of another zone from there on.
    ZoneChange,
    /// More than half a year between two stamps that have no year.
    LongGap,
}

impl Anomaly {
    /// What was met, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Anomaly::Junk => "blank lines, text or NULs between records",
            Anomaly::LostTerminator => "a record without its end",
            Anomaly::GluedHeader => "a header glued to the end of a record",
            Anomaly::DamagedRecord => "a record whose header cannot be read, left out",
            Anomaly::JobIdOutOfRange => "a job number that is out of range, left out",
            Anomaly::UnfinishedRecord => "an unfinished last record, left out",
            Anomaly::OverwrittenEvent => {
                "an event that the log's header was written over, left out"
            }
            Anomaly::MisplacedHeader => {
                "a header of a log where none can stand, taken for an event"
            }
            Anomaly::ZoneChange => "a change of zone: local time went back by about an hour",
            Anomaly::LongGap => {
                "a gap of more than half a year, or stamps without a year out of order"
            }
        }
    }

    /// Whether it is damage. A log that is being written ends anywhere, and clocks go back in autumn.
    pub fn is_damage(self) -> bool {
        !matches!(
            self,
            Anomaly::UnfinishedRecord | Anomaly::ZoneChange | Anomaly::LongGap
        )
    }
}

/// A record's first line, up to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u16,
    pub(super) cluster: i64,
    pub(super) proc: i64,
    pub(super) subproc: i64,
    pub(super) stamp: Stamp,
}

/// A record in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    /// Where it begins in its piece.
    pub(super) at: usize,
    pub(super) header: Header,
    /// All of it but the terminator.
    pub(super) whole: &'a [u8],
    pub(super) content: Content<'a>,
}

/// What follows a header.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    /// The rest of the header line, and the lines up to the terminator.
    Text(&'a [u8]),
    /// A ClassAd, which is the whole record.
    Ad(Form),
}

/// Reads `NNN (cluster.proc.subproc) stamp` at the start of `line`; returns it with the number of bytes it took.
#[inline(always)]
pub(super) fn parse_header(line: &[u8]) -> Option<(Header, usize)> {
    let [
        a @ b'0'..=b'9',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        b' ',
        b'(',
        rest @ ..,
    ] = line
    else {
        return None;
    };
    let number = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    let (cluster, rest) = id(rest, b'.')?;
    let (proc, rest) = id(rest, b'.')?;
    let (subproc, rest) = id(rest, b')')?;
    let rest = rest.strip_prefix(b" ")?;
    let (stamp, taken) = stamp::parse(rest)?;
    let length = line.len() - rest.len() + taken;
    Some((
        Header {
            number,
            cluster,
            proc,
            subproc,
            stamp,
        },
        length,
    ))
}

/// A signed integer of up to 18 digits, perhaps after blanks, then `end`.
#[inline(always)]
fn id(mut text: &[u8], end: u8) -> Option<(i64, &[u8])> {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    let negative = text.first() == Some(&b'-');
    text = &text[usize::from(negative)..];
    let mut number = 0i64;
    for (at, &byte) in text.iter().enumerate().take(19) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        } else {
            let number = if negative { -number } else { number };
            return (byte == end && at > 0).then_some((number, &text[at + 1..]));
        }
    }
    None
}

/// The records of a piece of log. The piece begins at a record or with the log, and ends with a record or the log.
pub(super) struct Records<'a> {
    text: &'a [u8],
    /// Whether the log ends with the piece; else a record begins there.
    ends_log: bool,
    marks: Marks<'a>,
    /// Whether the place where the text itself begins was looked at.
    begun: bool,
    /// All text before this is accounted for.
    covered: usize,
    open: Option<Open>,
    /// Where the last whole record ends; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
    /// What was met so far that a sound log would not hold, and where in the piece.
    pub(super) anomalies: Vec<(Anomaly, usize)>,
}

/// A text record whose end is not known yet.
struct Open {
    start: usize,
    /// The header and its length; `None` if it cannot be read.
    header: Option<(Header, usize)>,
    /// The last terminator so far. Old hold reasons span lines and may hold a line `...`: the last one counts.
    terminator: Option<Range<usize>>,
}

/// What a rare mark comes to.
enum Met<'a> {
    Nothing,
    /// A whole record.
    Record(Record<'a>),
    /// Where a text record begins, and its header, if that can be read.
    Start(usize, Option<(Header, usize)>),
}

/// What a line is to a record.
enum Mark {
    Nothing,
    Header(Header, usize),
    Damaged,
    Terminator(Range<usize>),
    /// A terminator, and where the header on the same line begins.
    Glued(usize),
    Ad(Form),
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a [u8], ends_log: bool) -> Records<'a> {
        let (marks, anomalies) = (Marks::new(text, preamble(text)), Vec::new());
        Records {
            text,
            ends_log,
            marks,
            begun: false,
            covered: 0,
            open: None,
            whole_end: Some(0),
            anomalies,
        }
    }

    /// Hands all records to `take`, in order. An iterator would copy each once more, at a twentieth of the speed of it all.
    #[inline(always)]
    pub(super) fn each(&mut self, mut take: impl FnMut(&Record<'a>)) {
        while let Some(line) = self.next_line() {
            // Nearly every mark is one of these two; the others are told apart below.
            let header = parse_header(&self.text[line..]);
            let (start, header) = match (header, &mut self.open) {
                (None, Some(open)) if self.text[line..].starts_with(b"...\n") => {
                    open.terminator = Some(line..line + 4);
                    continue;
                }
                (Some(header), _) => (line, Some(header)),
                _ => match self.rare(line) {
                    Met::Nothing => continue,
                    Met::Record(record) => {
                        apart(&mut take, &record);
                        continue;
                    }
                    Met::Start(start, header) => (start, header),
                },
            };
            if let Some(record) = self.close(start) {
                take(&record);
            }
            self.open = Some(Open {
                start,
                header,
                terminator: None,
            });
        }
        if self.open.is_some() || self.covered < self.text.len() {
            self.finish()
                .iter()
                .for_each(|record| apart(&mut take, record));
        }
    }

    /// All records, in order.
    pub(super) fn all(mut self) -> Vec<Record<'a>> {
        let mut all = Vec::new();
        self.each(|record| all.push(*record));
        all
    }

    /// The next line that may matter.
    #[inline(always)]
    fn next_line(&mut self) -> Option<usize> {
        if !self.begun {
            self.begun = true;
            return Some(preamble(self.text));
        }
        self.marks.next()
    }

    fn classify(&self, line: usize) -> Mark {
        let text = &self.text[line..];
        let between = self
            .open
            .as_ref()
            .is_none_or(|open| open.terminator.is_some());
        match text.first() {
            Some(b'.') if text.starts_with(b"...") => match &text[3..] {
                [] => Mark::Terminator(line..line + 3),
                [b'\n', ..] => Mark::Terminator(line..line + 4),
                [b'\r', b'\n', ..] => Mark::Terminator(line..line + 5),
                rest if parse_header(rest).is_some() => Mark::Glued(line + 3),
                _ => Mark::Nothing,
            },
            Some(b'0'..=b'9') => match parse_header(text) {
                Some((header, length)) => Mark::Header(header, length),
                None if between && is_header_like(text) => Mark::Damaged,
                None => Mark::Nothing,
            },
            Some(b'{' | b'<') => match Form::begins(text) {
                Some(Form::Prolog) if !between => Mark::Nothing,
                form => form.map_or(Mark::Nothing, Mark::Ad),
            },
            _ => Mark::Nothing,
        }
    }

    fn note(&mut self, anomaly: Anomaly, at: usize) {
        self.anomalies.push((anomaly, at));
    }

    /// Accounts for the text up to `to`, where something that is understood begins.
    #[inline]
    fn cover(&mut self, to: usize) {
        if self.covered < to {
            self.note(Anomaly::Junk, self.covered);
            self.covered = to;
        }
    }

    /// Ends the open record, as the next one begins at `next`.
    #[inline(always)]
    fn close(&mut self, next: usize) -> Option<Record<'a>> {
        let Some(open) = self.open.take() else {
            self.cover(next);
            return None;
        };
        let end = match &open.terminator {
            Some(terminator) => {
                self.covered = terminator.end;
                let is_whole = self.text[..terminator.end].ends_with(b"\n")
                    || terminator.end < self.text.len();
                self.whole_end = is_whole.then_some(terminator.end);
                terminator.start
            }
            None => {
                if open.header.is_some() {
                    self.note(Anomaly::LostTerminator, open.start);
                }
                (self.covered, self.whole_end) = (next, Some(next));
                next
            }
        };
        let Some((header, length)) = open.header else {
            self.note(Anomaly::DamagedRecord, open.start);
            self.cover(next);
            return None;
        };
        self.cover(next);
        let whole = &self.text[open.start..end];
        Some(Record {
            at: open.start,
            header,
            whole,
            content: Content::Text(&whole[length..]),
        })
    }

    /// Where the next record after `from` begins.
    fn next_start(&self, from: usize) -> Option<usize> {
        let begins = |line: &usize| matches!(self.classify(*line), Mark::Header(..) | Mark::Ad(_));
        Marks::new(self.text, from)
            .find(begins)
            .or((!self.ends_log).then_some(self.text.len()))
    }

    /// Reads the ClassAd that begins at `line`, if it ends before the next record begins.
    fn ad(&mut self, line: usize, form: Form) -> Option<Record<'a>> {
        // Not further than to the next record, so that a log full of torn ads is not searched to its end for each.
        let next = if form == Form::Prolog {
            None
        } else {
            self.next_start(line)
        };
        let length = form.length(&self.text[line..next.unwrap_or(self.text.len())]);
        let Some(length) = length else {
            if next.is_some() {
                self.open = Some(Open {
                    start: line,
                    header: None,
                    terminator: None,
                });
                return None;
            }
            if form != Form::Prolog {
                self.note(Anomaly::UnfinishedRecord, line);
            }
            self.covered = self.text.len();
            self.marks = Marks::new(self.text, self.covered);
            return None;
        };
        let whole = &self.text[line..line + length];
        self.covered = line + length;
        self.marks = Marks::new(self.text, self.covered - 1);
        self.whole_end = self.text[..line + length]
            .ends_with(b"\n")
            .then_some(line + length);
        if form == Form::Prolog {
            return None;
        }
        let Some(ad) = Attributes::read(whole, form) else {
            self.note(Anomaly::DamagedRecord, line);
            return None;
        };
        let Some(header) = ad.header() else {
            self.note(Anomaly::Junk, line);
            return None;
        };
        Some(Record {
            at: line,
            header,
            whole,
            content: Content::Ad(form),
        })
    }

    /// What a mark comes to that is neither a header at the beginning of a line nor a plain terminator in a record.
    #[cold]
    fn rare(&mut self, line: usize) -> Met<'a> {
        match self.classify(line) {
            Mark::Nothing => Met::Nothing,
            Mark::Terminator(terminator) => {
                if let Some(open) = &mut self.open {
                    open.terminator = Some(terminator);
                }
                Met::Nothing
            }
            Mark::Ad(form) => {
                let record = if self.open.is_some() {
                    // The mark is met again, with nothing open.
                    self.marks = Marks::new(self.text, line - 1);
                    self.close(line)
                } else {
                    self.cover(line);
                    self.ad(line, form)
                };
                record.map_or(Met::Nothing, Met::Record)
            }
            Mark::Header(header, length) => Met::Start(line, Some((header, length))),
            Mark::Damaged => Met::Start(line, None),
            Mark::Glued(start) => {
                self.note(Anomaly::GluedHeader, line);
                if let Some(open) = &mut self.open {
                    open.terminator.get_or_insert(line..start);
                } else {
                    self.cover(line);
                    self.covered = start;
                }
                Met::Start(start, parse_header(&self.text[start..]))
            }
        }
    }

    /// Ends with the piece.
    fn finish(&mut self) -> Option<Record<'a>> {
        let end = self.text.len();
        if !self.ends_log {
            return self.close(end);
        }
        let unfinished = self
            .open
            .as_ref()
            .is_some_and(|open| open.terminator.is_none());
        if unfinished {
            let start = self.open.take().map_or(0, |open| open.start);
            self.note(Anomaly::UnfinishedRecord, start);
            self.covered = end;
        }
        // A last line without its end may be a header still being written.
        let ended = self.text.last().is_none_or(|byte| *byte == b'\n');
        let last_line = memrchr(b'\n', self.text).map_or(0, |at| at + 1);
        let next = if ended { end } else { last_line };
        let tail = self
            .open
            .as_ref()
            .and_then(|open| open.terminator.clone())
            .map_or(self.covered, |t| t.end);
        let record = self.close(next.max(tail));
        if self.covered < end {
            let may_be_header = self.text[self.covered..]
                .iter()
                .all(|byte| b"0123456789 (.-)/:TZ{<c".contains(byte));
            let kind = if may_be_header {
                Anomaly::UnfinishedRecord
            } else {
                Anomaly::Junk
            };
            self.note(kind, self.covered);
            self.covered = end;
        }
        record
    }
}

/// Calls `take` for one of the few records that are not found in the usual way, so that it is part of the loop over the
/// others, and there alone.
#[cold]
#[inline(never)]
fn apart<'a>(take: &mut dyn FnMut(&Record<'a>), record: &Record<'a>) {
    take(record);
}

/// The length of what a file may begin with before its first line: a byte order mark, NULs.
fn preamble(text: &[u8]) -> usize {
    let mark = if text.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    mark + text[mark..].iter().take_while(|byte| **byte == 0).count()
}

fn is_header_like(text: &[u8]) -> bool {
    text.len() > 5 && text[..3].iter().all(u8::is_ascii_digit) && text[3..].starts_with(b" (")
}

/// Whether a record begins at the start of `text`.
pub(super) fn begins_record(text: &[u8]) -> bool {
    parse_header(text).is_some() || matches!(Form::begins(text), Some(Form::Json | Form::Xml))
}

/// The first place at or after `from` where a record begins after a terminated one; the length of `text` if none.
pub(super) fn next_cut(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(newline) = memchr(b'\n', &text[at..]).map(|n| at + n) {
        if is_cut(text, newline + 1) {
            return newline + 1;
        }
        at = newline + 1;
    }
    text.len()
}

/// The last place where a record begins after a terminated one.
pub(super) fn last_cut(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(newline) = memrchr(b'\n', &text[..end]) {
        if is_cut(text, newline + 1) {
            return Some(newline + 1);
        }
        end = newline;
    }
    None
}

/// Whether a line that ends a record stands before `at`, and one that begins a record at it.
fn is_cut(text: &[u8], at: usize) -> bool {
    let (before, after) = text.split_at(at);
    let ended =
        |end: &[u8]| before.ends_with(end) && before[..before.len() - end.len()].ends_with(b"\n");
    match after.first() {
        // A header that reaches the end of what was read may go on, and be none.
        Some(b'0'..=b'9') => {
            (ended(b"...\n") || ended(b"...\r\n"))
                && parse_header(after).is_some_and(|(_, length)| length < after.len())
        }
        Some(b'{') => ended(b"}\n") && Form::begins(after) == Some(Form::Json),
        Some(b'<') => ended(b"</c>\n") && Form::begins(after) == Some(Form::Xml),
        _ => false,
    }
}

/// The rest of a header line: a record's text up to its first line feed.
pub(super) fn headline(content: &[u8]) -> &[u8] {
    content[..memchr(b'\n', content).unwrap_or(content.len())].trim_ascii()
}

/// The lines after the header line.
pub(super) fn body(content: &[u8]) -> &[u8] {
    memchr(b'\n', content).map_or(&[][..], |at| &content[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: impl AsRef<[u8]>) -> (Vec<u16>, Vec<Anomaly>) {
        let mut records = Records::new(text.as_ref(), true);
        let mut found = Vec::new();
        records.each(|record| found.push(record.header.number));
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

    #[test]
    fn a_header_cut_short_is_no_place_to_cut() {
        let text = b"...\n000 (1.0.0) 01/02 03:04:x\n...\n";
        assert!((0..text.len()).all(|end| last_cut(&text[..end]).is_none()));
        assert_eq!(
            last_cut(&format!("{A}{}", &B[..34]).into_bytes()),
            Some(A.len())
        );
    }

    /// Searched to its end for each, this log would take hours.
    #[test]
    fn torn_ads_cost_no_more_than_their_length() {
        let torn = "{\n  \"EventTypeNumber\": 1,\n".repeat(200_000);
        let (found, anomalies) = numbers(format!("{torn}{A}"));
        assert_eq!((found, anomalies.len()), (vec![1], 200_000));
    }

    #[test]
    fn ids_of_any_width_and_sign() {
        let ids = |text: &str| {
            let header = parse_header(format!("012 ({text}) 01/02 03:04:05 x").as_bytes());
            header.map(|(header, _)| (header.cluster, header.proc, header.subproc))
        };
        assert_eq!(ids("001.002.003"), Some((1, 2, 3)));
        assert_eq!(ids("-01.-01.-01"), Some((-1, -1, -1)));
        assert_eq!(ids("2147483648.0.0"), Some((2_147_483_648, 0, 0)));
        assert_eq!(ids(" 1. 2. 3"), Some((1, 2, 3)));
        for bad in [
            "1.2",
            "a.b.c",
            "1..3",
            "1.2.3.4",
            "1.-.0",
            "123456789012345678901.0.0",
        ] {
            assert_eq!(ids(bad), None, "{bad}");
        }
    }
}
