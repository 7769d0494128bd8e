//! Jobs of a store: each with its history, as slices of a mapped shard.

use super::job_row::EventRow;
use crate::column_table::column_table;
use crate::eventlog::{JobEvent, ResourceRequest};

column_table! {
    /// Events as they are written, sorted by job and time.
    pub(super) struct EventColumns from |event: &EventRow|;

    /// The events of one job in order of time; slices of equal length. The fields mean what they
    /// mean in [`JobEvent`].
    pub struct JobHistory<'a>;

    /// When each event was written, epoch ms.
    time_ms: i64 = event.time_ms,
    /// The event numbers.
    number: u16 = event.number,
    /// The hold codes of event 012.
    hold_code: i32 = event.hold_code,
    /// The hold subcodes of event 012.
    hold_subcode: i32 = event.hold_subcode,
    /// A number that means something else for each kind of event, for instance an exit code.
    value: i32 = event.value,
    /// Whether a job terminated of itself, for event 005.
    normal: u8 = event.normal,
    /// What tells the texts of events apart.
    text_hash: u32 = event.text_hash,
}

/// A job and its history.
#[derive(Debug, Clone, Copy)]
pub struct StoredJob<'a> {
    /// The index of its access point in [`super::StoreSummary::aps`].
    pub ap: u32,
    /// Its cluster.
    pub cluster: i32,
    /// Its proc.
    pub proc: i32,
    /// The time of its event 000, else of its first event; epoch ms.
    pub submit_ms: i64,
    /// The submit time in its `GlobalJobId`, epoch s, which is `AP#cluster.proc#` and this; 0 if
    /// unknown.
    pub global_submit_s: i64,
    /// A salted hash of its owner; 0 if unknown.
    pub owner: u64,
    /// What it asked for when it was submitted.
    pub request: ResourceRequest,
    /// Its events.
    pub history: JobHistory<'a>,
}

impl StoredJob<'_> {
    /// Event `at` of its history.
    pub fn event(&self, at: usize) -> JobEvent {
        let history = &self.history;
        JobEvent {
            time_ms: history.time_ms[at],
            cluster: self.cluster,
            proc: self.proc,
            number: history.number[at],
            normal: history.normal[at],
            value: history.value[at],
            hold_code: history.hold_code[at],
            hold_subcode: history.hold_subcode[at],
            text_hash: history.text_hash[at],
        }
    }

    /// `cluster.proc`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }
}
