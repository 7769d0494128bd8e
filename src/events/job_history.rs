//! A job of a store, with its history as slices of a memory-mapped shard.

use super::fact_tables::FactRows;
use super::job_row::EventRow;
use htcondor_eventlog::{
    EventFacts, ExecutionHost, HoldFacts, IMAGE_SIZE, JobEvent, ResourceRequest, RunUsage,
    SubmissionNames,
};
use poolcast_base::column_table;

column_table! {
    /// Events to write, sorted by job and time.
    pub(super) struct EventColumns from |event: &EventRow|;

    /// The events of one job in order of time, as slices of equal length. The fields have the same
    /// meaning as in [`JobEvent`].
    pub struct JobHistory<'a>;

    /// Time of each event, in epoch ms.
    time_ms: i64 = event.time_ms,
    /// The event numbers.
    number: u16 = event.number,
    /// The hold codes of event 012.
    hold_code: i32 = event.hold_code,
    /// The hold subcodes of event 012.
    hold_subcode: i32 = event.hold_subcode,
    /// A number that depends on the kind of event, for instance an exit code.
    value: i32 = event.value,
    /// 1 if a job exited normally and not by a signal, for event 005.
    normal: u8 = event.normal(),
    /// Hash of the text of the event, to compare events.
    text_hash: u32 = event.text_hash,
}

/// A job and its history.
#[derive(Debug, Clone, Copy)]
pub struct StoredJob<'a> {
    /// Index of its access point in [`super::StoreSummary::aps`].
    pub ap: u32,
    /// Its cluster.
    pub cluster: i32,
    /// Its proc.
    pub proc: i32,
    /// Time of its event 000, or of its first event if there is none; epoch ms.
    pub submit_ms: i64,
    /// Submit time in its `GlobalJobId`, epoch s; 0 if unknown. The id is `AP#cluster.proc#` and
    /// this number.
    pub global_submit_s: i64,
    /// Salted hash of its owner; 0 if unknown.
    pub owner: u64,
    /// Resources that it requested when it was submitted.
    pub request: ResourceRequest,
    /// Salted hashes of the names of its submission; 0 if unknown.
    pub names: SubmissionNames,
    /// Its events.
    pub history: JobHistory<'a>,
    /// Index of its first event in its shard.
    pub(super) first_event: u32,
    /// The facts of all events of its shard.
    pub(super) facts: FactRows<'a>,
}

impl<'a> StoredJob<'a> {
    /// Returns a salted hash of the hold reason in event `at`, 012, without the parts that vary
    /// from job to job. Returns 0 if the event states no reason.
    #[inline]
    pub fn reason_hash(&self, at: usize) -> u32 {
        self.hold_facts(at).reason
    }

    /// Returns the facts from the reason in event `at`, 012; empty for other events.
    #[inline]
    pub fn hold_facts(&self, at: usize) -> HoldFacts {
        self.facts_of(at).hold(self.history.number[at])
    }

    /// Returns the salted hashes of the machine and slot in event `at`: 001 names the ones of the
    /// run that begins, 012 the ones of the previous run. Unknown hashes are 0.
    #[inline]
    pub fn execution_place(&self, at: usize) -> ExecutionHost {
        self.facts_of(at).execution_place(self.history.number[at])
    }

    /// Returns the resource usage of the run that event `at`, 004 or 005, ends.
    #[inline]
    pub fn run_usage(&self, at: usize) -> RunUsage {
        self.facts_of(at).run_usage(self.history.number[at])
    }

    /// Returns the memory usage in event `at`, 006, in MB; `None` for other events.
    #[inline]
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

    /// Returns event `at` of its history.
    #[inline]
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

    /// Returns `cluster.proc`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }
}
