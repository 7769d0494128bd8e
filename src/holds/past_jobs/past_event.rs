//! An event of a job of the history, as a record of an event log in JSON.

use serde_json::{Map, Value, json};

use super::job_key::PastJobKey;
use super::stated_end::EndKind;
use super::stated_run::StatedHold;
use htcondor_eventlog::{ABORTED, AD_INFORMATION, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};

/// An event of a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PastEvent {
    /// Time, epoch seconds.
    pub(super) time_s: i64,
    pub(super) body: PastEventBody,
}

/// The contents of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PastEventBody {
    Submitted,
    Started {
        slot: Option<String>,
    },
    Held(StatedHold),
    Released,
    Ended {
        ending: EndKind,
        /// Memory that the job used, in MiB.
        memory_mb: Option<i64>,
    },
}

impl PastEvent {
    /// Returns the record of the event, of the job `key`.
    pub(super) fn record(&self, key: &PastJobKey) -> Value {
        match &self.body {
            PastEventBody::Submitted => record(SUBMIT, self.time_s, key, json!({})),
            PastEventBody::Started { slot } => {
                record(EXECUTE, self.time_s, key, json!({"SlotName": slot}))
            }
            PastEventBody::Held(hold) => {
                let body = json!({"HoldReason": hold.reason, "HoldReasonCode": hold.code, "HoldReasonSubCode": hold.subcode});
                record(HELD, self.time_s, key, body)
            }
            PastEventBody::Released => record(RELEASED, self.time_s, key, json!({})),
            PastEventBody::Ended { ending, memory_mb } => match ending {
                EndKind::Returned(value) => {
                    let body = json!({"TerminatedNormally": true, "ReturnValue": value, "MemoryUsage": memory_mb});
                    record(TERMINATED, self.time_s, key, body)
                }
                EndKind::Signalled(signal) => {
                    let body = json!({"TerminatedNormally": false, "TerminatedBySignal": signal, "MemoryUsage": memory_mb});
                    record(TERMINATED, self.time_s, key, body)
                }
                EndKind::Removed(reason) => {
                    record(ABORTED, self.time_s, key, json!({"Reason": reason}))
                }
                // Such a job has no end, and no event.
                EndKind::StillHeld => Value::Null,
            },
        }
    }
}

/// Returns the record of an event 028, which describes the job `key` at its submission.
pub(super) fn description_record<'a>(
    key: &PastJobKey,
    description: impl Iterator<Item = &'a (&'static str, Value)>,
) -> Value {
    let mut body = Map::new();
    for (name, value) in description {
        body.insert((*name).to_owned(), value.clone());
    }
    let global_id = format!(
        "{}#{}.{}#{}",
        key.schedd, key.cluster, key.proc, key.submit_s
    );
    body.insert("GlobalJobId".to_owned(), Value::from(global_id));
    body.insert("TriggerEventTypeNumber".to_owned(), Value::from(SUBMIT));
    record(AD_INFORMATION, key.submit_s, key, Value::Object(body))
}

/// Returns a record with the attributes of `body` that are known.
fn record(number: u16, time_s: i64, key: &PastJobKey, body: Value) -> Value {
    let mut record = json!({
        "EventTypeNumber": number, "EventTime": stamp(time_s),
        "Cluster": key.cluster, "Proc": key.proc, "Subproc": 0,
    });
    if let (Value::Object(record), Value::Object(body)) = (&mut record, body) {
        record.extend(body.into_iter().filter(|(_, value)| !value.is_null()));
    }
    record
}

/// Returns a time stamp in UTC.
pub(super) fn stamp(time_s: i64) -> String {
    jiff::Timestamp::from_second(time_s)
        .unwrap_or_default()
        .to_string()
}
