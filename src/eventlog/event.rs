//! One record → one event: the fields that holds, releases and ends turn on.

use std::borrow::Cow;

use memchr::{memmem, memrchr};

use super::event_facts::EventFacts;
use super::event_number::{
    ABORTED, EVICTED, EXECUTE, FILE_TRANSFER, HELD, IMAGE_SIZE, NODE_TERMINATED, SUBMIT, TERMINATED,
};
use super::execution_place::parse_execution_place;
use super::record::{LogRecord, RecordContent, body_lines, headline};
use super::run_usage::{parse_memory_mb, parse_run_usage};
use super::submission_names::parse_submission_names;

/// One event of one job. Which fields mean something depends on the number; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobEvent {
    /// Epoch time.
    pub time_ms: i64,
    /// The job's cluster; negative when the event belongs to no job.
    pub cluster: i32,
    /// The job's proc; negative when the event belongs to no job or to a whole cluster.
    pub proc: i32,
    /// HTCondor's event number.
    pub number: u16,
    /// 005: 1 if the job ended by itself and not by a signal.
    pub normal: u8,
    /// 005: the return value or the signal. 009: who removed the job, as in [`RemovedBy`]. 012: the
    /// bits of what stands for the template of its reason in [`super::ReasonTemplates`], or 0. 040:
    /// HTCondor's type of the transfer: 1 to 3 of input, which is queued, has started, has
    /// finished, 4 to 6 of output; 0 if it does not say. 006: the memory of the job, MB, or 0.
    pub value: i32,
    /// 012: the hold reason code.
    pub hold_code: i32,
    /// 012: the hold reason subcode.
    pub hold_subcode: i32,
    /// A hash of the record's text: the same event written twice has the same.
    pub text_hash: u32,
    /// What else it says. The hashes of names in it are not salted before a store keeps them.
    pub facts: EventFacts,
}

/// Who removed a job, as far as the reason in event 009 tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedBy {
    /// No reason, or one of an unknown form.
    Unknown = 0,
    /// `condor_rm`.
    Person = 1,
    /// A periodic or on-exit expression of the job or of the access point.
    Policy = 2,
}

/// What event 012 says.
pub(super) struct JobHold<'a> {
    /// The hold reason code and subcode, if it has any.
    pub(super) codes: Option<(i32, i32)>,
    pub(super) reason: Cow<'a, [u8]>,
}

/// How event 005 says that a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JobEnding {
    /// Whether it ended by itself and not by a signal.
    pub(super) is_normal: bool,
    /// The return value, else the signal.
    pub(super) value: i32,
}

/// The event in `record`. Its time is filled in by the calendar, which knows the year, and what the
/// reason of a hold says by the piece, which keeps the templates.
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
            event.facts = EventFacts::of_run(parse_run_usage(record));
        }
        EVICTED => event.facts = EventFacts::of_run(parse_run_usage(record)),
        EXECUTE => event.facts = EventFacts::of_execution(parse_execution_place(record)),
        SUBMIT => event.facts = EventFacts::of_submission(parse_submission_names(record)),
        IMAGE_SIZE => event.value = parse_memory_mb(record),
        ABORTED => event.value = parse_removed_by(record) as i32,
        FILE_TRANSFER => event.value = parse_transfer_type(record),
        _ => {}
    }
    event
}

/// A hash of what follows the stamp. The stamp is left out, so that the same event in two logs
/// whose stamps have other forms has the same hash.
fn text_hash(record: &LogRecord<'_>) -> u32 {
    let text = match record.content {
        RecordContent::Text(text) => text,
        RecordContent::Ad(_) => record.whole,
    };
    twox_hash::XxHash3_64::oneshot(text) as u32
}

/// The codes of a hold, if it has any, and its reason. In text the codes are the last `Code N
/// Subcode M` line: reasons written before HTCondor 23.8 span lines, and the codes come after them.
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

    // Backwards, as the codes are on the last line of nearly every hold.
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

/// Reads `Code N Subcode M`.
fn parse_codes(line: &[u8]) -> Option<(i32, i32)> {
    let rest = line.trim_ascii().strip_prefix(b"Code ")?;
    let (code, rest) = leading_int(rest)?;
    let (subcode, _) = leading_int(rest.strip_prefix(b" Subcode ")?)?;
    Some((code, subcode))
}

/// How event 005 or 015 says that a job ended.
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

/// The type of a file transfer, as in [`JobEvent::value`].
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

    // Entered queue to transfer, started, finished.
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

fn parse_removed_by(record: &LogRecord<'_>) -> RemovedBy {
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
        RemovedBy::Policy
    } else if says(b"via condor_rm") || says(b"by the user") {
        RemovedBy::Person
    } else {
        RemovedBy::Unknown
    }
}

/// The name of the submit host in event 000: the `alias` of its address, else the address.
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
    fn holds_keep_their_codes() {
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
    fn ends_keep_how_and_by_whom() {
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
            RemovedBy::Person as i32
        );
        let policy = "\tThe system macro SYSTEM_PERIODIC_REMOVE expression 'NumHolds >= 4' evaluated to TRUE";
        assert_eq!(removed(policy), RemovedBy::Policy as i32);
        assert_eq!(removed(""), RemovedBy::Unknown as i32);
    }

    #[test]
    fn transfers_keep_which_way_and_how_far() {
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
    fn submit_hosts_have_a_name() {
        let said = |text: &str| parse_submit_host(&first(text));
        let submit = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap.example&sock=x>\n...\n";
        assert_eq!(said(submit).as_deref(), Some("ap.example"));
        let plain = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:32779>\n...\n";
        assert_eq!(said(plain).as_deref(), Some("10.0.0.1"));
    }
}
