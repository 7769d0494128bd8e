//! Dumps a log as one JSON line per event, as the reader parsed it, with its position in the log.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::anomaly_positions::count_line_feeds;
use crate::blocks::{BLOCK_SIZES, BlockReader};
use crate::calendar::{Calendar, utc_offset_between};
use crate::dates::{DAY_MS, format_date_time};
use crate::event::{parse_ending, parse_hold};
use crate::event_number::{AD_INFORMATION, HELD, NODE_TERMINATED, TERMINATED, event_name};
use crate::global_header::{GenerationMark, parse_global_header};
use crate::job_ad::parse_ad_stamp;
use crate::log::ReadOptions;
use crate::read_error::ReadError;
use crate::record::LogRecord;
use crate::record_scan::RecordScan;
use crate::source::LogSource;
use crate::stamp::{Stamp, StampZone};

/// Beginning of 1972, the first leap year of the epoch, in ms.
const LEAP_YEAR_MS: i64 = 730 * DAY_MS;

/// One event as a JSON line, with its line number, from 1, and its offset, in bytes.
#[derive(Serialize)]
struct DumpedEvent {
    #[serde(rename = "type")]
    number: u16,
    name: &'static str,
    cluster: i64,
    proc: i64,
    subproc: i64,
    /// Time; without a year while it is not known.
    time: String,
    /// `local` if the zone is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_subcode: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_value: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    line: u64,
    offset: u64,
}

/// Time of an event and its zone, as in [`DumpedEvent`].
struct DumpedTime {
    text: String,
    zone: Option<&'static str>,
}

/// Writes every event of the log at `path`, including events without a job and events 028.
///
/// # Errors
/// Fails like [`crate::read`], except for stamps without a year, which are written without one. If
/// `out` fails, the error is a [`ReadError::Sink`] with its [`std::io::Error`].
pub fn dump(path: &Path, options: &ReadOptions, out: &mut impl Write) -> Result<(), ReadError> {
    let mut blocks = BlockReader::new(LogSource::open(path, |_| {})?, BLOCK_SIZES);
    let mut clock = DumpClock::new(options);
    let mut offset = 0;
    let mut line = 1;

    let mut memory = Vec::new();
    while let Some(read) = blocks.next_block(memory) {
        let block = read.block?;
        for piece in block.records().split(BLOCK_SIZES.piece_bytes) {
            let mut counted = 0;
            for record in RecordScan::new(piece.text, piece.is_at_log_end).collect_records() {
                line += count_line_feeds(&piece.text[counted..record.at]);
                counted = record.at;
                let event = DumpedEvent::new(&record, clock.time_of(&record), line, offset);
                write_line(&event, out).map_err(|error| ReadError::Sink(error.into()))?;
            }
            line += count_line_feeds(&piece.text[counted..]);
            offset += piece.text.len() as u64;
        }
        offset += block.hole_bytes();
        memory = block.into_memory();
    }
    Ok(())
}

fn write_line(event: &DumpedEvent, out: &mut impl Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.write_all(b"\n")
}

impl DumpedEvent {
    /// Creates the event in `record`, which begins at `line`, in the piece at the offset
    /// `piece_offset`.
    fn new(record: &LogRecord<'_>, time: DumpedTime, line: u64, piece_offset: u64) -> DumpedEvent {
        let header = record.header;
        let hold_codes =
            (header.number == HELD).then(|| parse_hold(record).codes.unwrap_or((0, 0)));
        let ending =
            matches!(header.number, TERMINATED | NODE_TERMINATED).then(|| parse_ending(record));

        DumpedEvent {
            number: header.number,
            name: event_name(header.number),
            cluster: header.cluster,
            proc: header.proc,
            subproc: header.subproc,
            time: time.text,
            zone: time.zone,
            hold_code: hold_codes.map(|(code, _)| code),
            hold_subcode: hold_codes.map(|(_, subcode)| subcode),
            return_value: ending
                .filter(|ending| ending.is_normal)
                .map(|ending| ending.value),
            signal: ending
                .filter(|ending| !ending.is_normal)
                .map(|ending| ending.value),
            line,
            offset: piece_offset + record.at as u64,
        }
    }
}

/// Converts the stamps of records one after another. It uses only earlier records, never later
/// ones.
struct DumpClock {
    calendar: Calendar,
    knows_zone: bool,
    /// Creation time in the header of a rotated file, epoch ms. The next event gives the zone.
    new_file_ms: Option<i64>,
    /// Last header of a global event log.
    header: Option<GenerationMark>,
    /// True if no record was read yet.
    is_at_start: bool,
}

impl DumpClock {
    fn new(options: &ReadOptions) -> DumpClock {
        DumpClock {
            calendar: Calendar::in_year(options.year),
            knows_zone: false,
            new_file_ms: None,
            header: None,
            is_at_start: true,
        }
    }

    /// Returns the time of the next record.
    fn time_of(&mut self, record: &LogRecord<'_>) -> DumpedTime {
        let stamp = record.header.stamp;
        let is_at_start = std::mem::replace(&mut self.is_at_start, false);
        let global_header = parse_global_header(record)
            .filter(|global| is_at_start || global.begins_generation(stamp, self.header.as_ref()));

        if let Some(global) = global_header {
            self.header = Some(global.mark());
            let local = global.is_live.then_some(stamp);
            self.begin_file(global.created_s * 1000, local);
            // The stamp of a header may be its rotation time, which is after all events that
            // follow. So it must not move the calendar.
            let before = self.calendar.clone();
            let time = self.resolve_stamp(stamp);
            self.calendar = before;
            return time;
        }

        if let Some(created_ms) = self.new_file_ms.take() {
            self.begin_file(created_ms, Some(stamp));
        }
        if record.header.number == AD_INFORMATION
            && !self.calendar.is_set()
            && let Some(ad_stamp) = parse_ad_stamp(record)
        {
            self.calendar.resolve_stamp(ad_stamp);
        }
        self.resolve_stamp(stamp)
    }

    /// Begins a file that was created at `created_ms`; `local` is the same time in local time.
    fn begin_file(&mut self, created_ms: i64, local: Option<Stamp>) {
        let zone_offset_ms = local.and_then(|stamp| utc_offset_between(stamp, created_ms));
        self.calendar = Calendar::new(Some(created_ms), zone_offset_ms.unwrap_or(0));
        self.knows_zone = zone_offset_ms.is_some();
        self.new_file_ms = local.is_none().then_some(created_ms);
    }

    /// Converts a stamp. The time is in UTC if the zone is known, else it is local.
    fn resolve_stamp(&mut self, stamp: Stamp) -> DumpedTime {
        match self.calendar.resolve_stamp(stamp) {
            Some((ms, _)) if self.knows_zone || stamp.zone == StampZone::Known => DumpedTime {
                text: format_date_time(ms) + "Z",
                zone: None,
            },
            Some((ms, _)) => DumpedTime {
                text: format_date_time(ms + self.calendar.offset_ms()),
                zone: Some("local"),
            },
            // The year is a leap year, so that every day exists. The year's digits are cut off.
            None => DumpedTime {
                text: format_date_time(stamp.ms + LEAP_YEAR_MS)[5..].to_owned(),
                zone: Some("local"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<serde_json::Value> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs_err::write(&path, text).expect("written");
        let mut out = Vec::new();
        dump(&path, &ReadOptions::default(), &mut out).expect("dumped");
        let text = String::from_utf8(out).expect("text");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn dumped_lines_have_fields_and_positions() {
        let found = lines(
            "junk\n012 (1.2.3) 2024-01-02 03:06:05.250Z Job was held.\n\tx\n\tCode 3 Subcode -4\n...\n\
             005 (1.2.3) 2024-01-02 03:07:05 Job terminated.\n\t(0) Abnormal termination (signal 9)\n...\n\
             001 (1.2.3) 02/29 03:07:05 Job executing on host: <x>\n...\n",
        );
        let held = serde_json::json!({"type": 12, "name": "JOB_HELD", "cluster": 1, "proc": 2, "subproc": 3,
            "time": "2024-01-02T03:06:05.250Z", "hold_code": 3, "hold_subcode": -4, "line": 2, "offset": 5});
        assert_eq!(found[0], held);
        assert_eq!(
            (&found[1]["time"], &found[1]["zone"], &found[1]["signal"]),
            (&"2024-01-02T03:07:05".into(), &"local".into(), &9.into())
        );
        assert_eq!(
            found[2]["time"], "2024-02-29T03:07:05",
            "the year of its neighbours"
        );
        assert_eq!(
            (&found[2]["line"], &found[2]["offset"]),
            (&9.into(), &171.into())
        );
        assert_eq!(
            lines("001 (1.2.3) 02/29 03:07:05 x\n...\n")[0]["time"],
            "02-29T03:07:05"
        );
    }
}
