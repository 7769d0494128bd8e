//! Parser of the beginning of a record: `NNN (cluster.proc.subproc) stamp`.

use super::stamp::{Stamp, parse_stamp};

/// First line of a record, up to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) number: u16,
    pub(super) cluster: i64,
    pub(super) proc: i64,
    pub(super) subproc: i64,
    pub(super) stamp: Stamp,
}

impl RecordHeader {
    /// Returns the cluster and the proc of the job; `None` if they do not fit HTCondor's 32 bits.
    #[inline]
    pub(super) fn job_id(&self) -> Option<(i32, i32)> {
        let cluster = i32::try_from(self.cluster).ok()?;
        let proc = i32::try_from(self.proc).ok()?;
        Some((cluster, proc))
    }
}

/// Parses the header at the start of `line`. Returns it with its length in bytes.
#[inline(always)]
pub(super) fn parse_header(line: &[u8]) -> Option<(RecordHeader, usize)> {
    let [
        hundreds @ b'0'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
        b' ',
        b'(',
        rest @ ..,
    ] = line
    else {
        return None;
    };
    let number =
        u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');

    let (cluster, rest) = parse_id(rest, b'.')?;
    let (proc, rest) = parse_id(rest, b'.')?;
    let (subproc, rest) = parse_id(rest, b')')?;
    let rest = rest.strip_prefix(b" ")?;
    let (stamp, stamp_bytes) = parse_stamp(rest)?;

    let header_bytes = line.len() - rest.len() + stamp_bytes;
    let header = RecordHeader {
        number,
        cluster,
        proc,
        subproc,
        stamp,
    };
    Some((header, header_bytes))
}

/// Parses a signed integer of up to 18 digits, with optional blanks before it, and then `end`.
#[inline(always)]
fn parse_id(mut text: &[u8], end: u8) -> Option<(i64, &[u8])> {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    let is_negative = text.first() == Some(&b'-');
    text = &text[usize::from(is_negative)..];

    // The loop ends before the number can overflow, so it checks only the digit.
    let mut number = 0i64;
    for (at, &byte) in text.iter().enumerate().take(19) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        } else {
            let number = if is_negative { -number } else { number };
            return (byte == end && at > 0).then_some((number, &text[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_ids_of_any_width_and_sign_are_parsed() {
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
