//! Time zone of the logs that are written here: their last stamp, in local time, is of the moment in which
//! the file was last changed.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::calendar::utc_offset_between;
use super::record_scan::RecordScan;
use super::source::{changed_ms, is_read_once};
use super::stamp::{Stamp, StampZone};

/// Bytes at the end of a log that are read for its last stamp.
const TAIL_BYTES: u64 = 64 << 10;

/// Maximum time, ms, between the last event and the last change of the file.
const MAX_DELAY_MS: i64 = 2_000;

/// The last change of a log that is written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenLog {
    /// Time of the last change of the file, epoch ms.
    pub changed_ms: i64,
    /// Local time minus UTC, in ms, as in the last stamp; 0 if that stamp has a zone.
    pub utc_offset_ms: i64,
}

impl WrittenLog {
    /// Finds the log among `logs` that was changed last. Returns `None` unless its last stamp is of the moment of
    /// that change: of a file that was copied later, the zone is not known, nor whether anything happened since.
    pub fn last_of(logs: &[PathBuf]) -> Option<WrittenLog> {
        let logs = logs.iter().filter(|log| !is_read_once(log));
        let changed = logs.filter_map(|log| Some((changed_ms(log)?, log)));
        let (changed_ms, log) = changed.max()?;
        let stamp = last_stamp(log)?;
        let utc_offset_ms = if stamp.zone == StampZone::Local {
            utc_offset_between(stamp, changed_ms)?
        } else {
            0
        };
        let written = WrittenLog {
            changed_ms,
            utc_offset_ms,
        };
        let is_at_once = stamp.has_year.then(|| written.has_local_end(stamp.ms));
        is_at_once.unwrap_or(true).then_some(written)
    }

    /// Returns true if the last event is at `end_ms`, epoch ms, where its local time was taken as UTC.
    pub fn has_local_end(&self, end_ms: i64) -> bool {
        (end_ms - self.utc_offset_ms - self.changed_ms).abs() <= MAX_DELAY_MS
    }
}

/// Returns the stamp of the last record of a log that is not compressed.
fn last_stamp(log: &Path) -> Option<Stamp> {
    let mut file = fs_err::File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))
        .ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let records = RecordScan::new(&tail, true).collect_records();
    Some(records.last()?.header.stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the offset in a log whose last event has the stamp `last`, and that was changed on
    /// 2026-01-02 at `changed`.
    fn offset(last: &str, changed: &str) -> Option<i64> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let early = "000 (1.0.0) 2026-01-02 03:00:00 s\n...\n".repeat(3000);
        fs_err::write(&path, format!("{early}012 (1.0.0) {last} h\n\tx\n...\n")).expect("written");
        let changed: jiff::Timestamp = format!("2026-01-02T{changed}Z").parse().expect("a time");
        let file = std::fs::File::open(&path).expect("opened");
        file.set_modified(changed.into()).expect("set");
        let written = WrittenLog::last_of(&[dir.path().join("missing"), path]);
        written.map(|log| log.utc_offset_ms)
    }

    #[test]
    fn last_change_gives_the_zone_of_the_last_stamp() {
        const HOUR_MS: i64 = 3_600_000;
        for (stamp, hours) in [
            ("2026-01-02 09:30:00", 0),
            ("2026-01-02 03:30:00", -6),
            ("01/02 03:30:00", -6),
            ("2026-01-02 10:30:00", 1),
            ("2026-01-02 09:30:00Z", 0),
        ] {
            assert_eq!(offset(stamp, "09:30:01"), Some(hours * HOUR_MS), "{stamp}");
        }
    }

    #[test]
    fn copies_have_no_zone() {
        for (stamp, changed) in [
            ("2026-01-02 09:30:00", "09:37:00"),
            ("2026-01-02 09:30:00Z", "10:30:00"),
            ("2025-11-02 09:30:00", "09:30:00"),
        ] {
            assert_eq!(offset(stamp, changed), None, "{stamp}");
        }
        assert_eq!(WrittenLog::last_of(&[]), None);
    }
}
