//! Bytes → records: where one record ends and the next begins, also in damaged logs.

use std::collections::BTreeMap;

use memchr::{memchr, memmem, memrchr};
use serde::{Deserialize, Serialize};

use super::stamp::{self, Stamp};

/// Something in a log that a sound log would not hold; counted, never fatal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// Bytes between records that belong to none: blank lines, NULs, text, the tail of a record whose head is missing.
    Junk,
    /// A record without its line `...`; the next header follows directly.
    LostTerminator,
    /// A line `...` with the next header on the same line.
    GluedHeader,
    /// The log ends within a record; that record is not counted as an event.
    UnfinishedRecord,
    /// A stamp without a year before any year is known; the event is left out.
    NoYear,
}

impl Anomaly {
    /// What was met, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Anomaly::Junk => "text or NULs between records",
            Anomaly::LostTerminator => "a record without its end",
            Anomaly::GluedHeader => "a header glued to the end of a record",
            Anomaly::UnfinishedRecord => "an unfinished last record, left out",
            Anomaly::NoYear => "an event whose year is unknown, left out",
        }
    }
}

/// How often each anomaly was met.
pub type Anomalies = BTreeMap<Anomaly, u64>;

/// A record's first line, up to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u16,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) stamp: Stamp,
}

/// A record in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) header: Header,
    /// The rest of the header line.
    pub(super) headline: &'a [u8],
    /// The lines between the header and the terminator.
    pub(super) body: &'a [u8],
}

/// Reads `NNN (cluster.proc.subproc) stamp` at the start of `line`; returns it with the number of bytes it took.
pub(super) fn parse_header(line: &[u8]) -> Option<(Header, usize)> {
    let (digits, rest) = line.split_at_checked(3)?;
    let number = digits.iter().try_fold(0, |n, d| d.is_ascii_digit().then(|| n * 10 + u16::from(d - b'0')))?;
    let rest = rest.strip_prefix(b" (")?;
    let (cluster, rest) = id(rest, b'.')?;
    let (proc, rest) = id(rest, b'.')?;
    let (_subproc, rest) = id(rest, b')')?;
    let rest = rest.strip_prefix(b" ")?;
    let (stamp, taken) = stamp::parse(rest)?;
    let length = line.len() - rest.len() + taken;
    Some((Header { number, cluster, proc, stamp }, length))
}

/// A signed integer of any width, then `end`.
fn id(text: &[u8], end: u8) -> Option<(i32, &[u8])> {
    let at = memchr(end, &text[..text.len().min(24)])?;
    let number = std::str::from_utf8(&text[..at]).ok()?.trim_start();
    Some((number.parse().ok()?, &text[at + 1..]))
}

/// The records of a piece of log. The piece begins at a record, and ends where one ends or with the log.
pub(super) struct Records<'a> {
    text: &'a [u8],
    at: usize,
    /// What was met so far that a sound log would not hold.
    pub(super) anomalies: Anomalies,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a [u8]) -> Records<'a> {
        Records { text, at: 0, anomalies: Anomalies::new() }
    }

    fn count(&mut self, anomaly: Anomaly) {
        *self.anomalies.entry(anomaly).or_default() += 1;
    }

    /// Moves to the next header, over junk, which counts once however long it is.
    fn seek(&mut self) -> Option<(Header, usize)> {
        let mut junk = false;
        while self.at < self.text.len() {
            let padding = nuls(&self.text[self.at..]);
            junk |= padding > 0;
            self.at += padding;
            if let Some(found) = parse_header(&self.text[self.at..]) {
                if junk {
                    self.count(Anomaly::Junk);
                }
                return Some(found);
            }
            junk = true;
            self.at = line_end(self.text, self.at);
        }
        if junk {
            self.count(Anomaly::Junk);
        }
        None
    }

    /// The end of the body that starts at `start`, and where the next record may begin.
    fn body_end(&mut self, start: usize) -> Option<(usize, usize)> {
        let mut at = start;
        while at < self.text.len() {
            let end = line_end(self.text, at);
            let line = &self.text[at..end];
            if line.starts_with(b"...") {
                if is_terminator(line) && self.ends_record(end) {
                    return Some((at, end));
                }
                if parse_header(&line[3..]).is_some() {
                    self.count(Anomaly::GluedHeader);
                    return Some((at, at + 3));
                }
            } else if matches!(line[0], 0 | b'0'..=b'9') && parse_header(&line[nuls(line)..]).is_some() {
                self.count(Anomaly::LostTerminator);
                return Some((at, at));
            }
            at = end;
        }
        None
    }

    /// Whether a terminator that is followed by `next` ends its record. Old hold reasons span lines and may hold a line
    /// `...`: it is text if a later `...` comes before the next header.
    fn ends_record(&self, next: usize) -> bool {
        let mut at = next;
        while at < self.text.len() {
            let end = line_end(self.text, at);
            let line = &self.text[at..end];
            if parse_header(&line[nuls(line)..]).is_some() {
                return true;
            }
            if is_terminator(line) {
                return false;
            }
            at = end;
        }
        true
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (header, length) = self.seek()?;
        let text_start = self.at + length;
        let body_start = line_end(self.text, text_start);
        let Some((body_end, next)) = self.body_end(body_start) else {
            self.at = self.text.len();
            self.count(Anomaly::UnfinishedRecord);
            return None;
        };
        self.at = next;
        Some(Record {
            header,
            headline: self.text[text_start..body_start].trim_ascii(),
            body: &self.text[body_start..body_end],
        })
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n + 1)
}

/// How many NULs `text` begins with: a crashed file system leaves runs of them, and the next record follows directly.
fn nuls(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == 0).count()
}

fn is_terminator(line: &[u8]) -> bool {
    matches!(line, b"...\n" | b"...\r\n" | b"..." | b"...\r")
}

/// The first place at or after `from` where a record begins after a terminated one; the length of `text` if none.
pub(super) fn next_cut(text: &[u8], from: usize) -> usize {
    let cuts = memmem::find_iter(&text[from..], b"\n...").map(|at| from + at + 1);
    cuts.filter_map(|at| cut_at(text, at)).next().unwrap_or(text.len())
}

/// The last place where a record begins after a terminated one.
pub(super) fn last_cut(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(newline) = memrchr(b'\n', &text[..end]) {
        if let Some(cut) = cut_at(text, newline + 1) {
            return Some(cut);
        }
        end = newline;
    }
    None
}

fn cut_at(text: &[u8], at: usize) -> Option<usize> {
    let end = line_end(text, at);
    (is_terminator(&text[at..end]) && parse_header(&text[end..]).is_some()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(text: &str) -> (Vec<u16>, Vec<Anomaly>) {
        let mut records = Records::new(text.as_bytes());
        let found = records.by_ref().map(|r| r.header.number).collect();
        (found, records.anomalies.into_keys().collect())
    }

    #[test]
    fn damage_costs_at_most_the_damaged_record() {
        let a = "001 (1.0.0) 01/02 03:04:05 Job executing\n...\n";
        let b = "012 (1.0.0) 2024-01-02 03:04:06 Job was held.\n\tx\n\tCode 3 Subcode 4\n...\n";
        assert_eq!(numbers(&format!("{a}{b}")), (vec![1, 12], vec![]));
        assert_eq!(numbers(&format!("{a}\n\0\0junk\n{b}")), (vec![1, 12], vec![Anomaly::Junk]));
        assert_eq!(numbers(&format!("{}{b}", a.replace("...\n", ""))), (vec![1, 12], vec![Anomaly::LostTerminator]));
        assert_eq!(numbers(&format!("{}{b}", a.replace("...\n", "..."))), (vec![1, 12], vec![Anomaly::GluedHeader]));
        assert_eq!(numbers(&format!("tail of a record\n...\n{b}")), (vec![12], vec![Anomaly::Junk]));
        assert_eq!(numbers(&format!("{a}{}", &b[..60])), (vec![1], vec![Anomaly::UnfinishedRecord]));
        assert_eq!(numbers(b.trim_end()), (vec![12], vec![]), "a final log may lack its last newline");
        assert_eq!(numbers(&b.replace("\tx\n", "\tx\n...\n\ty\n")), (vec![12], vec![]), "a reason may hold dots");
        assert_eq!(numbers(&b.replace('\n', "\r\n")), (vec![12], vec![]));
        assert_eq!(numbers("999 (-01.-01.-01) 01/02 03:04:05 new\n...\n"), (vec![999], vec![]));
    }

    #[test]
    fn a_record_after_a_run_of_nuls_is_kept() {
        let text = b"012 (1.0.0) 01/02 03:04:05 Job was held.\n\tx\n...\n\x00\x00\x00013 (1.0.0) 01/02 03:04:06 Job was released.\n...\n";
        let mut records = Records::new(text);
        let numbers: Vec<u16> = records.by_ref().map(|record| record.header.number).collect();
        assert_eq!((numbers, records.anomalies), (vec![12, 13], Anomalies::from([(Anomaly::Junk, 1)])));
    }

    proptest! {
        #[test]
        fn cut_pieces_hold_the_same_records(bits in proptest::collection::vec(0..6usize, 0..30), from in 0..400usize) {
            let parts = ["001 (1.0.0) 01/02 03:04:05 a\n...\n", "012 (1.0.0) 01/02 03:04:05 b\n\tCode 1 Subcode 2\n...\n",
                "junk\n", "...\n", "005 (1.0.0) 01/02 03:04:05 lost\n", "...013 (1.0.0) 01/02 03:04:05 glued\n...\n"];
            let text: String = bits.iter().map(|&i| parts[i]).collect();
            let cut = next_cut(text.as_bytes(), from.min(text.len()));
            let whole = numbers(&text).0;
            let mut pieces = numbers(&text[..cut]).0;
            pieces.extend(numbers(&text[cut..]).0);
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Records::new(&bytes).for_each(drop);
            last_cut(&bytes);
        }
    }
}
