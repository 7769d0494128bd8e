//! A log → one JSON line an event, as the reader understood it, with its place in the log.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::assembly::first_calendar;
use super::blocks::{Block, Blocks, SIZES};
use super::event::{
    AD_INFORMATION, HELD, NODE_TERMINATED, TERMINATED, ad_stamp, ending, event_name, hold,
};
use super::header::{GenerationMark, global_header};
use super::reader::ReadOptions;
use super::record::{Record, Records};
use super::source::Source;
use super::stamp::{Calendar, Stamp, Zone, date_time, offset_between};

/// The beginning of 1972, the first leap year of the epoch.
const LEAP_YEAR_MS: i64 = 730 * 86_400_000;

#[derive(Serialize)]
struct Line {
    #[serde(rename = "type")]
    number: u16,
    name: &'static str,
    cluster: i64,
    proc: i64,
    subproc: i64,
    /// Without its year while nothing has told it.
    time: String,
    /// `local` where nothing tells the zone.
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

/// Writes every event of the log at `path`, those of no job and 028 included.
///
/// # Errors
/// Fails as [`super::read`] does, but for stamps without a year, which are written without one; and when `out` fails.
pub fn dump(path: &Path, options: &ReadOptions, out: &mut impl Write) -> Result<()> {
    let mut blocks = Blocks::new(Source::open(path, |_| {})?, path, SIZES);
    let calendar = first_calendar(options);
    let mut clock = Clock {
        calendar,
        knows_zone: false,
        new_file: None,
        header: None,
        at_begin: true,
    };
    let (mut offset, mut line) = (0, 1);
    while let Some(block) = blocks.next()? {
        for Block {
            text: piece,
            ends_log,
        } in block.split(SIZES)
        {
            let mut counted = 0;
            for record in Records::new(piece, ends_log).all() {
                line += memchr::memchr_iter(b'\n', &piece[counted..record.at]).count() as u64;
                counted = record.at;
                let found = clock.line(&record, line, offset + record.at as u64);
                serde_json::to_writer(&mut *out, &found).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
            line += memchr::memchr_iter(b'\n', &piece[counted..]).count() as u64;
            offset += piece.len() as u64;
        }
    }
    Ok(())
}

struct Clock {
    calendar: Calendar,
    knows_zone: bool,
    /// The creation time in the header of a rotated file: the next event tells the zone.
    new_file: Option<i64>,
    /// The last header of a global event log.
    header: Option<GenerationMark>,
    /// Whether no record was met yet.
    at_begin: bool,
}

impl Clock {
    fn line(&mut self, record: &Record<'_>, line: u64, offset: u64) -> Line {
        let header = record.header;
        let is = |number| header.number == number;
        let at_begin = std::mem::replace(&mut self.at_begin, false);
        let global = global_header(record).filter(|global| {
            at_begin || global.begins_generation(header.stamp, self.header.as_ref())
        });
        let is_header = global.is_some();
        if let Some(global) = global {
            self.header = Some(global.mark());
            self.set(
                global.is_live.then_some(header.stamp),
                global.created_s * 1000,
            );
        } else if let Some(created_ms) = self.new_file.take() {
            self.set(Some(header.stamp), created_ms);
        }
        if is(AD_INFORMATION) && !self.calendar.is_set() {
            ad_stamp(record).and_then(|stamp| self.calendar.place(stamp));
        }
        // The stamp of a header may be that of its rotation, after all that follows.
        let before = is_header.then(|| self.calendar.clone());
        let (time, zone) = self.time(header.stamp);
        if let Some(before) = before {
            self.calendar = before;
        }
        let held = is(HELD).then(|| hold(record).0.unwrap_or((0, 0)));
        let ended = (is(TERMINATED) || is(NODE_TERMINATED)).then(|| ending(record));
        Line {
            number: header.number,
            name: event_name(header.number),
            cluster: header.cluster,
            proc: header.proc,
            subproc: header.subproc,
            time,
            zone,
            hold_code: held.map(|(code, _)| code),
            hold_subcode: held.map(|(_, subcode)| subcode),
            return_value: ended.and_then(|(normal, value)| (normal == 1).then_some(value)),
            signal: ended.and_then(|(normal, value)| (normal == 0).then_some(value)),
            line,
            offset,
        }
    }

    fn set(&mut self, local: Option<Stamp>, created_ms: i64) {
        let zone_offset = local.and_then(|stamp| offset_between(stamp, created_ms));
        self.calendar = Calendar::new(Some(created_ms), zone_offset.unwrap_or(0));
        self.knows_zone = zone_offset.is_some();
        self.new_file = local.is_none().then_some(created_ms);
    }

    fn time(&mut self, stamp: Stamp) -> (String, Option<&'static str>) {
        match self.calendar.place(stamp) {
            Some((ms, _)) if self.knows_zone || stamp.zone == Zone::Known => {
                (date_time(ms) + "Z", None)
            }
            Some((ms, _)) => (date_time(ms + self.calendar.offset_ms()), Some("local")),
            // A leap year, so that every day exists; its digits are taken off.
            None => (
                date_time(stamp.ms + LEAP_YEAR_MS)[5..].to_owned(),
                Some("local"),
            ),
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
    fn lines_say_what_and_where() {
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
