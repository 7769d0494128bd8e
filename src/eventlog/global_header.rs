//! Parses event 008 as the header of a global event log, and decides whether it begins a
//! generation.
//!
//! A job can write an event 008 of any text (`condor_chirp ulog`), but only with its own job id. An
//! event 008 without a job id comes from HTCondor.

use serde::{Deserialize, Serialize};

use super::calendar::resolve_nearest;
use super::dates::{LAST_EPOCH_MS, MAX_UTC_OFFSET_MS};
use super::event_number::GENERIC;
use super::record::{LogRecord, RecordContent, body_lines};
use super::record_scan::RecordScan;
use super::stamp::Stamp;

/// Number of bytes at the beginning of a log in which [`GlobalHeader::find`] looks for the header.
/// The header is the first record and is padded to a few hundred bytes.
pub const HEADER_BYTES: usize = 1 << 16;

/// The `origin` in the header of a log that was made from the output of `condor_history`. HTCondor
/// writes no origin.
pub const HISTORY_ORIGIN: &str = "condor_history";

/// Maximum difference, in seconds, of the creation times if two daemons find no log and both create
/// it.
const MAX_CREATION_RACE_S: u64 = 60;

/// Contents of the header of a global event log, which identify one generation of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalHeader {
    /// Creation time of the file, epoch seconds.
    pub created_s: i64,
    /// Schedd that created the file.
    pub creator: Option<String>,
    /// Id of the file, unique per file; empty if absent.
    pub id: String,
    /// Sequence number from 1; grows by one with each rotation.
    pub sequence: u64,
    /// Total size of all earlier files, in bytes; 0 if absent.
    pub offset: u64,
    /// True if the header was written at the creation of the file, not at its rotation.
    pub is_live: bool,
    /// Number of holds that the log lacks, if it was made from a history of jobs.
    pub missing_holds: Option<u64>,
}

/// Distinguishes a generation from others of its access point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GenerationMark {
    creator: Option<String>,
    sequence: u64,
    created_s: i64,
}

/// Parses the text after `Global JobLog:` in an event 008 without a job.
pub(super) fn parse_global_header(record: &LogRecord<'_>) -> Option<GlobalHeader> {
    let header = record.header;
    let is_of_no_job = (header.cluster, header.proc, header.subproc) == (-1, -1, -1);
    if header.number != GENERIC || !is_of_no_job {
        return None;
    }
    let text = record.headline_or("Info")?;
    let fields = text.strip_prefix("Global JobLog:")?;

    let created_s = field_value(fields, "ctime=")?
        .parse()
        .ok()
        .filter(|created_s| (0..=LAST_EPOCH_MS / 1000).contains(created_s))?;
    let creator = field_value(fields, "creator_name=")
        .map(|name| name.trim_matches(['<', '>']).to_owned())
        .filter(|name| !name.is_empty());
    let sequence = number_field(fields, "sequence=");

    let header = GlobalHeader {
        created_s,
        creator,
        id: field_value(fields, "id=").unwrap_or_default().to_owned(),
        sequence,
        offset: number_field(fields, "offset="),
        is_live: field_value(fields, "size=") == Some("0"),
        missing_holds: field_value(fields, "origin=")
            .filter(|origin| *origin == HISTORY_ORIGIN)
            .map(|_| number_field(fields, "missing_holds=")),
    };
    (sequence > 0).then_some(header)
}

/// Returns the rest of the first word in `fields` that begins with `name`.
fn field_value<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix(name))
}

/// Returns the number after `name`; 0 if there is none.
fn number_field(fields: &str, name: &str) -> u64 {
    field_value(fields, name)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Finds the rest of an event that the header `record` has overwritten, and returns its offset in
/// the record. HTCondor rewrites a header in place at rotation. A header with a long creator name
/// may then exceed its space.
pub(super) fn overwritten_event(record: &LogRecord<'_>) -> Option<usize> {
    let RecordContent::Text(text) = record.content else {
        return None;
    };
    let rest = body_lines(text).strip_prefix(b"...")?;
    let blanks = rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    Some(record.whole.len() - rest.len() + blanks)
}

impl GlobalHeader {
    /// Parses the header in `beginning`, the first [`HEADER_BYTES`] bytes of a log, or all of it.
    /// Returns `None` if the log does not begin like a global event log.
    pub fn find(beginning: &[u8]) -> Option<GlobalHeader> {
        RecordScan::new(beginning, true)
            .collect_records()
            .first()
            .and_then(parse_global_header)
    }

    /// Returns the identity of the header's generation.
    pub(super) fn mark(&self) -> GenerationMark {
        GenerationMark {
            creator: self.creator.clone(),
            sequence: self.sequence,
            created_s: self.created_s,
        }
    }

    /// Returns true if the header begins another generation after the header `before`. This happens
    /// in a file made of several generations or of the logs of several access points. `stamp` is
    /// the stamp of the header itself.
    pub(super) fn begins_generation(&self, stamp: Stamp, before: Option<&GenerationMark>) -> bool {
        self.agrees_with(stamp) && before.is_none_or(|before| self.can_follow(before))
    }

    /// Returns true if the header can have been written at `stamp`.
    fn agrees_with(&self, stamp: Stamp) -> bool {
        let created_ms = self.created_s * 1000;
        let stamp_ms = if stamp.has_year {
            stamp.ms
        } else {
            resolve_nearest(stamp.ms, created_ms)
        };

        if self.is_live {
            (stamp_ms - created_ms).abs() <= MAX_UTC_OFFSET_MS
        } else {
            // Rotation may happen any time after the creation, so a stamp without a year proves
            // nothing.
            !stamp.has_year || stamp_ms >= created_ms - MAX_UTC_OFFSET_MS
        }
    }

    /// Returns true if the header may follow `before` in one file: sequence and creation time must
    /// change in the same direction.
    fn can_follow(&self, before: &GenerationMark) -> bool {
        if self.creator != before.creator {
            return true;
        }
        let order = self.sequence.cmp(&before.sequence);
        if order.is_eq() {
            self.created_s.abs_diff(before.created_s) <= MAX_CREATION_RACE_S
        } else {
            order == self.created_s.cmp(&before.created_s)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stamp::parse_stamp;
    use super::*;

    fn read(text: &str) -> Option<GlobalHeader> {
        GlobalHeader::find(text.as_bytes())
    }

    #[test]
    fn headers_describe_their_file() {
        let header = "008 (-01.-01.-01) 01/02 03:04:05 Global JobLog: ctime=17 id=0.1 sequence=1 size=0 creator_name=<s@h>   \n...\n";
        let expected = GlobalHeader {
            created_s: 17,
            creator: Some("s@h".into()),
            id: "0.1".into(),
            sequence: 1,
            offset: 0,
            is_live: true,
            missing_holds: None,
        };
        assert_eq!(read(header), Some(expected));
        for (from, to) in [
            ("-01.-01.-01", "7.0.0"),
            ("-01.-01.-01", "7.-01.-01"),
            ("sequence=1 ", ""),
            ("ctime=17", "ctime=4133980801"),
        ] {
            assert_eq!(read(&header.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn generations_begin_where_sequence_and_time_agree() {
        let (stamp, _) = parse_stamp(b"2024-01-02 03:04:05 ").expect("a stamp");
        let header = |creator: &str, sequence, hours: i64, is_live| GlobalHeader {
            created_s: stamp.ms / 1000 + hours * 3600,
            creator: Some(creator.to_owned()),
            id: String::new(),
            sequence,
            offset: 0,
            is_live,
            missing_holds: None,
        };
        let before = |sequence, hours: i64| Some(header("a", sequence, hours, true).mark());
        let begins = |header: GlobalHeader, before: Option<GenerationMark>| {
            header.begins_generation(stamp, before.as_ref())
        };
        assert!(
            begins(header("a", 3, 0, true), before(2, -5)),
            "the next one"
        );
        assert!(
            begins(header("a", 2, -5, true), before(3, 0)),
            "logs put together backwards"
        );
        assert!(
            begins(header("a", 3, 0, true), before(3, 0)),
            "one log twice"
        );
        assert!(
            begins(header("b", 1, 0, true), before(3, 9)),
            "that of another access point"
        );
        assert!(
            begins(header("a", 1, -900, false), None),
            "rotated long after it was begun"
        );
        assert!(
            !begins(header("a", 3, 0, true), before(2, 5)),
            "later by number and earlier by time"
        );
        assert!(
            !begins(header("a", 3, -5, true), before(3, 0)),
            "the same number again, at another time"
        );
        assert!(
            !begins(header("b", 1, 20, true), before(3, 0)),
            "begun at another time than it was written"
        );
        assert!(
            !begins(header("b", 1, 20, false), None),
            "rotated before it was begun"
        );
    }

    #[test]
    fn overwritten_events_are_found() {
        let whole = "008 (-01.-01.-01) 01/02 03:04:05 Global JobLog: ctime=17 id=0.1 sequence=1 size=1000 creator_name=<s@h>\n...\n";
        let rest = "00.000) 01/02 03:04:06 Job submitted from host: <10.0.0.1:1>\n...\n";
        let next = "001 (1.0.0) 01/02 03:04:07 x\n...\n";
        let found = |text: &str| {
            overwritten_event(&RecordScan::new(text.as_bytes(), true).collect_records()[0])
        };
        assert_eq!(found(&format!("{whole}{rest}{next}")), Some(whole.len()));
        assert_eq!(found(&format!("{whole}{next}")), None);
    }
}
