//! Messages of the events with which runs are lost.

use super::event_number::{
    DISCONNECTED, EVICTED, RECONNECT_FAILED, REMOTE_ERROR, SHADOW_EXCEPTION,
};
use super::record::{LogRecord, RecordContent, body_lines};

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
    use super::super::record_scan::RecordScan;
    use super::*;

    #[test]
    fn message_of_each_lost_run_is_found() {
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
{
  \"EventTypeNumber\": 4,
  \"Cluster\": 7,
  \"Proc\": 3,
  \"EventTime\": \"2026-11-29T06:54:00\",
  \"Reason\": \"drained\"
}
";
        let records = RecordScan::new(text.as_bytes(), true).collect_records();
        let found: Vec<Option<String>> = records.iter().map(lost_run_message).collect();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        let expected = [
            Some("container test failed: image format not recognized"),
            Some("Error from slot1@e: out of disk"),
            Some("Socket between submit and execute hosts closed unexpectedly"),
            None,
            Some("drained"),
        ];
        assert_eq!(found, expected);
    }
}
