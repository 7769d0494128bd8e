//! Jobs of a store: each with its history, as slices of a mapped shard.

use super::fact_tables::FactRows;
use super::job_row::EventRow;
use poolcast_base::column_table;
use htcondor_eventlog::{
    EventFacts, ExecutionPlace, HoldFacts, IMAGE_SIZE, JobEvent, ResourceRequest, RunUsage,
    SubmissionNames,
};

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
    /// What its submission is called: salted hashes; 0 if unknown.
    pub names: SubmissionNames,
    /// Its events.
    pub history: JobHistory<'a>,
    /// The place of its first event in its shard.
    pub(super) first_event: u32,
    /// The facts of all events of its shard.
    pub(super) facts: FactRows<'a>,
}

impl<'a> StoredJob<'a> {
    /// The job as its first `events` events tell it.
    pub fn with_first_events(self, events: usize) -> StoredJob<'a> {
        let history = self.history.slice(0..events);
        StoredJob { history, ..self }
    }

    /// A salted hash of why event `at`, 012, says that it was held, without what varies from job to
    /// job; 0 if it does not say why.
    #[inline]
    pub fn reason_hash(&self, at: usize) -> u32 {
        self.hold_facts(at).reason
    }

    /// What the reason in event `at`, 012, says; nothing for other events.
    pub fn hold_facts(&self, at: usize) -> HoldFacts {
        self.facts_of(at).hold(self.history.number[at])
    }

    /// Where it ran, as event `at` says it: 001 of the run that begins, 012 of the one before it.
    /// Salted hashes; 0 if unknown.
    pub fn execution_place(&self, at: usize) -> ExecutionPlace {
        self.facts_of(at).execution_place(self.history.number[at])
    }

    /// What the run used that event `at`, 004 or 005, ends.
    pub fn run_usage(&self, at: usize) -> RunUsage {
        self.facts_of(at).run_usage(self.history.number[at])
    }

    /// The memory that event `at`, 006, says it uses, MB; `None` for other events.
    pub fn image_memory_mb(&self, at: usize) -> Option<u32> {
        let is_image = self.history.number[at] == IMAGE_SIZE;
        let memory_mb = u32::try_from(self.history.value[at]).unwrap_or(0);
        (is_image && memory_mb > 0).then_some(memory_mb)
    }

    #[inline]
    fn facts_of(&self, at: usize) -> EventFacts {
        self.facts
            .of_event(self.first_event + at as u32, self.history.number[at])
    }

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
            facts: self.facts_of(at),
        }
    }

    /// `cluster.proc`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }
}
