//! Parses one record into one event, with the fields of holds, releases and terminations.

use std::borrow::Cow;

use memchr::{memmem, memrchr};

use super::event_facts::EventFacts;
use super::event_number::{
    ABORTED, EVICTED, EXECUTE, FILE_TRANSFER, HELD, IMAGE_SIZE, NODE_TERMINATED, RELEASED, SUBMIT,
    TERMINATED,
};
use super::execution_place::parse_execution_host;
use super::record::{LogRecord, RecordContent, body_lines, headline};
use super::run_usage::{parse_memory_mb, parse_run_usage};
use super::submission_names::parse_submission_names;

/// One event of one job. The event number decides which fields are used; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobEvent {
    /// Epoch time, in ms.
    pub time_ms: i64,
    /// Cluster of the job; negative if the event belongs to no job.
    pub cluster: i32,
    /// Proc of the job; negative if the event belongs to no job or to a whole cluster.
    pub proc: i32,
    /// HTCondor's event number.
    pub number: u16,
    /// 005: 1 if the job exited, 0 if a signal ended it.
    pub normal: u8,
    /// Value whose meaning depends on the event:
    ///
    /// - 005: the return value or the signal.
    /// - 006: the memory of the job, in MB, or 0.
    /// - 009: who removed the job, as in [`DecidedBy`].
    /// - 013: who released the job, as in [`DecidedBy`].
    /// - 040: HTCondor's transfer type. 1 to 3 are input (queued, started, finished), 4 to 6 are
    ///   output; 0 if the type is not stated.
    pub value: i32,
    /// 012: the hold reason code.
    pub hold_code: i32,
    /// 012: the hold reason subcode.
    pub hold_subcode: i32,
    /// Hash of the record's text. If an event is written twice, both copies have the same hash.
    pub text_hash: u32,
    /// Further facts of the event, for example its
    /// [`run_usage`](EventFacts::run_usage). Hashes of names in it are not salted.
    pub facts: EventFacts,
}

/// Initiator of a removal or of a release, according to the reason in event 009 or 013.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// No reason, or a reason of unknown form.
    Unknown = 0,
    /// `condor_rm` or `condor_release`.
    Person = 1,
    /// An expression of the job or of the access point, such as `periodic_release`.
    Policy = 2,
}

/// Data of event 012.
pub(super) struct JobHold<'a> {
    /// Hold reason code and subcode, if the event has them.
    pub(super) codes: Option<(i32, i32)>,
    pub(super) reason: Cow<'a, [u8]>,
}

/// End of a job, as reported by event 005.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JobEnding {
    /// True if the job exited, instead of being ended by a signal.
    pub(super) is_normal: bool,
    /// Return value if the job exited, else the signal.
    pub(super) value: i32,
}

/// Parses the event in `record`. The calendar, which knows the year, sets its time later. The
/// piece sets the facts of a hold, whose reason takes longer to read.
pub(super) fn parse_event(record: &LogRecord<'_>) -> JobEvent {
    let number = record.header.number;
    let (cluster, proc) = record.header.job_id().unwrap_or((-1, -1));
    let mut event = JobEvent {
        cluster,
        proc,
        number,
        text_hash: text_hash(record),
        ..JobEvent::default()
    };

    match number {
        HELD => {
            (event.hold_code, event.hold_subcode) = parse_hold(record).codes.unwrap_or((0, 0));
        }
        TERMINATED | NODE_TERMINATED => {
            let ending = parse_ending(record);
            event.normal = u8::from(ending.is_normal);
            event.value = ending.value;
            event.facts = EventFacts::from_run(parse_run_usage(record));
        }
        EVICTED => event.facts = EventFacts::from_run(parse_run_usage(record)),
        EXECUTE => event.facts = EventFacts::from_execution(parse_execution_host(record)),
        SUBMIT => event.facts = EventFacts::from_submission(parse_submission_names(record)),
        IMAGE_SIZE => event.value = parse_memory_mb(record),
        ABORTED | RELEASED => event.value = parse_decided_by(record) as i32,
        FILE_TRANSFER => event.value = parse_transfer_type(record),
        _ => {}
    }
    event
}

/// Hashes the text after the stamp. Without the stamp, an event has the same hash in two logs with
/// different stamp formats.
fn text_hash(record: &LogRecord<'_>) -> u32 {
    let text = match record.content {
        RecordContent::Text(text) => text,
        RecordContent::Ad(_) => record.whole,
    };
    twox_hash::XxHash3_64::oneshot(text) as u32
}

/// Parses the codes of a hold, if it has any, and its reason. In text the codes are in the last
/// `Code N Subcode M` line: reasons written before HTCondor 23.8 span several lines, and the codes
/// follow them.
pub(super) fn parse_hold<'a>(record: &LogRecord<'a>) -> JobHold<'a> {
    let body = match record.content {
        RecordContent::Text(text) => body_lines(text),
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let int = |name| attributes.int(name).and_then(|n| i32::try_from(n).ok());
            let reason = attributes.text("HoldReason").unwrap_or_default();
            return JobHold {
                codes: int("HoldReasonCode")
                    .map(|code| (code, int("HoldReasonSubCode").unwrap_or(0))),
                reason: Cow::Owned(reason.into()),
            };
        }
    };

    // Backwards, because the codes are in the last line of nearly every hold.
    let mut end = body.len();
    while let Some(newline) = memrchr(b'\n', &body[..end]) {
        if let Some(codes) = parse_codes(&body[newline + 1..end]) {
            return JobHold {
                codes: Some(codes),
                reason: Cow::Borrowed(&body[..newline]),
            };
        }
        end = newline;
    }

    let codes = parse_codes(&body[..end]);
    let reason = if codes.is_some() { &[] } else { body };
    JobHold {
        codes,
        reason: Cow::Borrowed(reason),
    }
}

/// Parses `Code N Subcode M`.
fn parse_codes(line: &[u8]) -> Option<(i32, i32)> {
    let rest = line.trim_ascii().strip_prefix(b"Code ")?;
    let (code, rest) = leading_int(rest)?;
    let (subcode, _) = leading_int(rest.strip_prefix(b" Subcode ")?)?;
    Some((code, subcode))
}

/// Parses the end of a job in event 005 or 015.
pub(super) fn parse_ending(record: &LogRecord<'_>) -> JobEnding {
    let text = match record.content {
        RecordContent::Text(text) => text,
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let is_normal = attributes.bool("TerminatedNormally").unwrap_or(false);
            let name = if is_normal {
                "ReturnValue"
            } else {
                "TerminatedBySignal"
            };
            let value = attributes.int(name).and_then(|n| i32::try_from(n).ok());
            return JobEnding {
                is_normal,
                value: value.unwrap_or(0),
            };
        }
    };

    for line in body_lines(text).split(|&byte| byte == b'\n') {
        let line = line.trim_ascii_start();
        if let Some(value) = int_after(line, b"(1) Normal termination (return value ") {
            return JobEnding {
                is_normal: true,
                value,
            };
        }
        if let Some(signal) = int_after(line, b"(0) Abnormal termination (signal ") {
            return JobEnding {
                is_normal: false,
                value: signal,
            };
        }
    }
    JobEnding::default()
}

/// Parses the type of a file transfer, as in [`JobEvent::value`].
fn parse_transfer_type(record: &LogRecord<'_>) -> i32 {
    let text = match record.content {
        RecordContent::Text(text) => headline(text),
        RecordContent::Ad(format) => {
            return record
                .ad_attributes(format)
                .int("Type")
                .filter(|kind| (1..=6).contains(kind))
                .unwrap_or(0) as i32;
        }
    };

    // The first words are "Entered queue", "Started" and "Finished".
    let stage = match text {
        [b'E', ..] => 1,
        [b'S', ..] => 2,
        [b'F', ..] => 3,
        _ => return 0,
    };
    if text.ends_with(b"input files") {
        stage
    } else if text.ends_with(b"output files") {
        3 + stage
    } else {
        0
    }
}

fn int_after(line: &[u8], words: &[u8]) -> Option<i32> {
    let (value, _) = leading_int(line.strip_prefix(words)?)?;
    Some(value)
}

/// Splits `text` into its leading integer, which may be negative, and the rest.
fn leading_int(text: &[u8]) -> Option<(i32, &[u8])> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let digits = text[sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let end = sign + digits;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end..]))
}

/// Finds the initiator of a removal or of a release by the wording of HTCondor's reason.
fn parse_decided_by(record: &LogRecord<'_>) -> DecidedBy {
    let reason = match record.content {
        RecordContent::Text(text) => Cow::Borrowed(body_lines(text)),
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let reason = attributes.text("Reason").unwrap_or("");
            Cow::Owned(reason.as_bytes().to_vec())
        }
    };
    let says = |words: &[u8]| memmem::find(&reason, words).is_some();

    if says(b"evaluated to TRUE") || says(b"evaluated to UNDEFINED") {
        DecidedBy::Policy
    } else if says(b"via condor_") || says(b"by the user") {
        DecidedBy::Person
    } else {
        DecidedBy::Unknown
    }
}

/// Parses the name of the submit host in event 000: the `alias` of its address, else the address.
pub(super) fn parse_submit_host(record: &LogRecord<'_>) -> Option<String> {
    let text = record.headline_or("SubmitHost")?;
    let address = text.split_once('<')?.1.split_once('>')?.0;

    let alias = address
        .split(['?', '&'])
        .find_map(|part| part.strip_prefix("alias="));
    let host = alias.unwrap_or_else(|| address.split([':', '?']).next().unwrap_or(address));
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::record_scan::RecordScan;
    use super::*;

    fn first(text: &str) -> LogRecord<'_> {
        RecordScan::new(text.as_bytes(), true).collect_records()[0]
    }

    fn parse(text: &str) -> JobEvent {
        parse_event(&first(text))
    }

    #[test]
    fn hold_codes_are_parsed() {
        let hold = |body: &str| {
            let event = parse(&format!(
                "012 (1.0.0) 01/02 03:04:05 Job was held.\n{body}...\n"
            ));
            (event.hold_code, event.hold_subcode)
        };
        assert_eq!(hold("\tno file\n\tCode 13 Subcode 2\n"), (13, 2));
        assert_eq!(
            hold("\tfirst\n\tCode 1 Subcode 1 was said\n\tthird\n    Code 12 Subcode -256\r\n"),
            (12, -256)
        );
        assert_eq!(hold("\tReason unspecified\n"), (0, 0));
        assert_eq!(hold(""), (0, 0));
    }

    #[test]
    fn terminations_and_removals_are_parsed() {
        let end = |number: &str, body: &str| {
            parse(&format!("{number} (1.0.0) 01/02 03:04:05 x\n{body}\n...\n"))
        };
        let value = |event: JobEvent| (event.normal, event.value);
        assert_eq!(
            value(end("005", "\t(1) Normal termination (return value 3)")),
            (1, 3)
        );
        assert_eq!(
            value(end("005", "\t(0) Abnormal termination (signal 9)")),
            (0, 9)
        );
        let removed = |reason: &str| end("009", reason).value;
        assert_eq!(
            removed("\tvia condor_rm (by user u)"),
            DecidedBy::Person as i32
        );
        let policy = "\tThe system macro SYSTEM_PERIODIC_REMOVE expression 'NumHolds >= 4' evaluated to TRUE";
        assert_eq!(removed(policy), DecidedBy::Policy as i32);
        assert_eq!(removed(""), DecidedBy::Unknown as i32);
    }

    #[test]
    fn transfer_type_has_direction_and_stage() {
        let transfer = |line: &str| {
            parse(&format!(
                "040 (1.0.0) 01/02 03:04:05 {line}\n\tTransferring to host: <x>\n...\n"
            ))
            .value
        };
        let stages = [
            "Entered queue to transfer",
            "Started transferring",
            "Finished transferring",
        ];
        let found = ["input", "output"]
            .map(|way| stages.map(|stage| transfer(&format!("{stage} {way} files"))));
        assert_eq!(found, [[1, 2, 3], [4, 5, 6]]);
        assert_eq!(
            (
                transfer("Started transferring"),
                transfer("Lost input files"),
                transfer("")
            ),
            (0, 0, 0)
        );
        let ad = |kind: i32| {
            let when = "\"EventTime\": \"2024-01-02T03:04:05\"";
            parse(&format!("{{\n  \"Cluster\": 7,\n  \"EventTypeNumber\": 40,\n  {when},\n  \"Type\": {kind}\n}}\n"))
                .value
        };
        assert_eq!([1, 5, 7, -1].map(ad), [1, 5, 0, 0]);
    }

    #[test]
    fn submit_host_is_the_alias_or_the_address() {
        let said = |text: &str| parse_submit_host(&first(text));
        let submit = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap.example&sock=x>\n...\n";
        assert_eq!(said(submit).as_deref(), Some("ap.example"));
        let plain = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:32779>\n...\n";
        assert_eq!(said(plain).as_deref(), Some("10.0.0.1"));
    }
}
