//! Messages of the events with which runs are lost. Only the logs have them: a store has no free text.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use super::event_number::{
    DISCONNECTED, EVICTED, RECONNECT_FAILED, REMOTE_ERROR, SHADOW_EXCEPTION,
};
use super::plain_stream::decompress;
use super::read_error::ReadError;
use super::record::{LogRecord, RecordContent, body_lines};
use super::record_scan::RecordScan;
use super::source::open;

/// Maximum decompressed size of a log that is read, in bytes.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// Returns the last message in `log` with which a run of each of `jobs` was lost. A job without one is left
/// out.
///
/// # Errors
/// Fails if the log cannot be opened.
pub fn lost_run_messages(
    log: &Path,
    jobs: &BTreeSet<(i32, i32)>,
) -> Result<BTreeMap<(i32, i32), String>, ReadError> {
    let mut text = Vec::new();
    let mut found = BTreeMap::new();
    if let Ok(Some(stream)) = decompress(open(log)?, |_| {}) {
        // A damaged file has messages up to its damage.
        let _ = stream.reader.take(MAX_LOG_BYTES).read_to_end(&mut text);
    }
    // The beginning of a longer log does not have the last messages.
    if text.len() as u64 == MAX_LOG_BYTES {
        return Ok(found);
    }
    RecordScan::new(&text, true).for_each_record(|record| {
        let job = record.header.job_id().filter(|job| jobs.contains(job));
        found.extend(job.zip(job.and_then(|_| lost_run_message(record))));
    });
    Ok(found)
}

/// Returns the message of an event that ends a run without ending the job.
pub(super) fn lost_run_message(record: &LogRecord<'_>) -> Option<String> {
    let number = record.header.number;
    let (attribute, begin) = match number {
        EVICTED => ("Reason", "Reason: "),
        SHADOW_EXCEPTION => ("Message", ""),
        REMOTE_ERROR => ("ErrorMsg", ""),
        DISCONNECTED => ("DisconnectReason", ""),
        RECONNECT_FAILED => ("Reason", ""),
        _ => return None,
    };
    let message = match record.content {
        RecordContent::Ad(format) => record.ad_attributes(format).text(attribute)?.to_owned(),
        RecordContent::Text(text) => {
            let body = String::from_utf8_lossy(body_lines(text));
            let mut lines = body.lines().map(str::trim);
            lines.find_map(|line| line.strip_prefix(begin))?.to_owned()
        }
    };
    (!message.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_message_of_each_job_is_found() {
        let text = "\
004 (7.000.000) 2026-11-29 06:50:00 Job was evicted. Code 1021 Subcode 0
\t(0) CPU times
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t0  -  Run Bytes Sent By Job
\t0  -  Run Bytes Received By Job
\tReason: container test failed: image format not recognized
...
007 (7.001.000) 2026-11-29 06:51:00 Shadow exception!
\tError from slot1@e: out of disk
\t0  -  Run Bytes Sent By Job
...
022 (7.001.000) 2026-11-29 06:52:00 Job disconnected, attempting to reconnect
    Socket between submit and execute hosts closed unexpectedly
    Trying to reconnect to slot1@e <10.0.0.1:9618>
...
004 (7.002.000) 2026-11-29 06:53:00 Job was evicted.
\t(0) CPU times
...
004 (8.000.000) 2026-11-29 06:53:00 Job was evicted.
\tReason: of another job
...
{
  \"EventTypeNumber\": 4,
  \"Cluster\": 7,
  \"Proc\": 3,
  \"EventTime\": \"2026-11-29T06:54:00\",
  \"Reason\": \"drained\"
}
";
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        fs_err::write(&log, text).expect("written");
        let jobs = (0..4).map(|proc| (7, proc)).collect();
        let found = lost_run_messages(&log, &jobs).expect("read");
        let expected = [
            ((7, 0), "container test failed: image format not recognized"),
            (
                (7, 1),
                "Socket between submit and execute hosts closed unexpectedly",
            ),
            ((7, 3), "drained"),
        ];
        let found: Vec<((i32, i32), &str)> = found
            .iter()
            .map(|(job, text)| (*job, text.as_str()))
            .collect();
        assert_eq!(found, expected);
    }
}
