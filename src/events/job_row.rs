//! Rows for a shard: one event, one ad or one input file of a job, as reported in a log.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use htcondor_eventlog::{
    ABORTED, EXECUTE, EventFacts, HELD, InputFile, JobEvent, RELEASED, ResourceRequest, SUBMIT,
    SubmissionNames, TERMINATED,
};

/// Time stamps of duplicate events differ by less than this, in ms. The formats of logs have
/// different precision.
const SAME_TIME_MS: i64 = 1000;

/// The id of a job in a log. An id may be used for another job after a job queue was wiped.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub(super) struct StoredId {
    /// Index of the access point.
    pub(super) ap: u32,
    /// The cluster.
    pub(super) cluster: i32,
    /// The proc.
    pub(super) proc: i32,
}

impl StoredId {
    /// Returns the id as 96 bits, which sort by access point, cluster and proc. Ids in a store are
    /// not negative, so they compare as unsigned numbers.
    #[inline]
    pub(super) fn sort_key(self) -> u128 {
        u128::from(self.ap) << 64
            | u128::from(self.cluster as u32) << 32
            | u128::from(self.proc as u32)
    }
}

/// A stretch of a log. Within it, events are in the order in which they happened, even if their
/// time stamps are not.
///
/// The stretches of a store reuse 32,767 numbers in turn, as many as fit in 15 bits without 0.
/// Neighboring events of one job from different stretches have different numbers, unless the
/// stretches are a multiple of 32,767 apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LogStretch(NonZeroU16);

impl LogStretch {
    const NUMBERS: u32 = (1 << 15) - 1;

    /// Returns the stretch `number`, counted from 0 over all logs of a store.
    pub(super) fn numbered(number: u32) -> LogStretch {
        LogStretch(NonZeroU16::MIN.saturating_add((number % LogStretch::NUMBERS) as u16))
    }

    /// Returns its reused number.
    pub(super) fn number(self) -> u16 {
        self.0.get() - 1
    }
}

/// The stretch of an event, and 1 in the low bit if the event is normal. Rows have no room for both
/// apart. It is never 0, so a row of another kind takes no further byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StretchAndNormal(NonZeroU16);

impl StretchAndNormal {
    fn new(stretch: LogStretch, normal: u8) -> StretchAndNormal {
        let both = stretch.0.get() << 1 | u16::from(normal & 1);
        StretchAndNormal(NonZeroU16::new(both).unwrap_or(NonZeroU16::MIN))
    }

    fn stretch(self) -> LogStretch {
        LogStretch(NonZeroU16::new(self.0.get() >> 1).unwrap_or(NonZeroU16::MIN))
    }

    fn normal(self) -> u8 {
        (self.0.get() & 1) as u8
    }
}

/// Returns true if events with this number change the state of their job.
pub(super) fn changes_state(number: u16) -> bool {
    matches!(
        number,
        SUBMIT | EXECUTE | TERMINATED | ABORTED | HELD | RELEASED
    )
}

/// An event, with the job that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventRow {
    pub(super) time_ms: i64,
    pub(super) id: StoredId,
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    pub(super) value: i32,
    pub(super) text_hash: u32,
    /// Facts of the event; hashes of names are salted.
    pub(super) facts: EventFacts,
    pub(super) number: u16,
    stretch_and_normal: StretchAndNormal,
}

impl EventRow {
    /// Creates the row of `event` of a log of the access point `ap`. Its facts must be salted.
    pub(super) fn new(ap: u32, stretch: LogStretch, event: &JobEvent) -> EventRow {
        let JobEvent {
            time_ms,
            cluster,
            proc,
            number,
            normal,
            value,
            hold_code,
            hold_subcode,
            text_hash,
            facts,
        } = *event;
        EventRow {
            time_ms,
            id: StoredId { ap, cluster, proc },
            hold_code,
            hold_subcode,
            value,
            text_hash,
            facts,
            number,
            stretch_and_normal: StretchAndNormal::new(stretch, normal),
        }
    }

    /// Returns the stretch of the log that reported the event last.
    #[inline]
    pub(super) fn stretch(&self) -> LogStretch {
        self.stretch_and_normal.stretch()
    }

    pub(super) fn set_stretch(&mut self, stretch: LogStretch) {
        self.stretch_and_normal = StretchAndNormal::new(stretch, self.normal());
    }

    /// Returns a key that equal events share.
    pub(super) fn text_key(&self) -> (u16, u32) {
        #[cfg(test)]
        tests::COMPARED_EVENTS.set(tests::COMPARED_EVENTS.get() + 1);
        (self.number, self.text_hash)
    }

    /// Returns true if the event is so close after `earlier` that both may be one event.
    pub(super) fn is_near(&self, earlier: &EventRow) -> bool {
        self.time_ms - earlier.time_ms < SAME_TIME_MS
    }

    /// Returns true if the event changes the state of its job.
    pub(super) fn changes_state(&self) -> bool {
        changes_state(self.number)
    }

    /// Returns 1 if a job exited normally, for event 005.
    #[inline]
    pub(super) fn normal(&self) -> u8 {
        self.stretch_and_normal.normal()
    }
}

/// The content of one 028 record of a job.
// Packed, so that no kind of row takes more memory than an event. Each row is touched for the
// first time once, which costs more than parsing its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(Rust, packed(2))]
pub(super) struct AdRow {
    pub(super) id: StoredId,
    /// Submission time by the clock of the access point, in epoch ms.
    pub(super) submit_ms: i64,
    /// Salted hash of the owner; 0 if unknown.
    pub(super) owner: u64,
    cpus: u8,
    gpus: u8,
    memory_mb: u32,
    disk_mb: u32,
    batch: u32,
    dag_node: u32,
}

impl AdRow {
    pub(super) fn new(
        id: StoredId,
        submit_ms: i64,
        owner: u64,
        request: ResourceRequest,
        names: SubmissionNames,
    ) -> AdRow {
        let ResourceRequest {
            cpus,
            gpus,
            memory_mb,
            disk_mb,
        } = request;
        AdRow {
            id,
            submit_ms,
            owner,
            cpus,
            gpus,
            memory_mb,
            disk_mb,
            batch: names.batch,
            dag_node: names.dag_node,
        }
    }

    /// Returns the salted hashes of the names of the submission.
    pub(super) fn names(&self) -> SubmissionNames {
        SubmissionNames {
            batch: self.batch,
            dag_node: self.dag_node,
        }
    }

    /// Returns the resources that the job requests.
    pub(super) fn request(&self) -> ResourceRequest {
        ResourceRequest {
            cpus: self.cpus,
            gpus: self.gpus,
            memory_mb: self.memory_mb,
            disk_mb: self.disk_mb,
        }
    }
}

/// An input file in the ad of a job. Sorts by the submission time in the ad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct InputRow {
    pub(super) id: StoredId,
    /// Submission time by the clock of the access point, in epoch ms.
    pub(super) submit_ms: i64,
    /// Salted hashes of the names.
    pub(super) input: InputFile,
}

/// A part of the ad of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdPart {
    Main(AdRow),
    Input(InputRow),
}

/// A row of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobRow {
    Event(EventRow),
    Ad(AdPart),
}

// The unused value 0 of a stretch marks a row as a part of an ad.

const _: () = assert!(size_of::<JobRow>() == 64);

impl JobRow {
    #[inline]
    pub(super) fn id(&self) -> StoredId {
        match self {
            JobRow::Event(event) => event.id,
            JobRow::Ad(AdPart::Main(ad)) => ad.id,
            JobRow::Ad(AdPart::Input(input)) => input.id,
        }
    }
}

/// The rows of one id, separated by kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct SameIdRows {
    pub(super) events: Vec<EventRow>,
    pub(super) ads: Vec<AdRow>,
    pub(super) inputs: Vec<InputRow>,
}

impl SameIdRows {
    /// Replaces all rows by `rows`.
    pub(super) fn replace_with<'a>(&mut self, rows: impl Iterator<Item = &'a JobRow>) {
        self.clear();
        for row in rows {
            match row {
                JobRow::Event(event) => self.events.push(*event),
                JobRow::Ad(AdPart::Main(ad)) => self.ads.push(*ad),
                JobRow::Ad(AdPart::Input(input)) => self.inputs.push(*input),
            }
        }
    }

    /// Returns the id of the rows; `None` if there are none.
    pub(super) fn id(&self) -> Option<StoredId> {
        let event = self.events.first().map(|row| row.id);
        let ad = || self.ads.first().map(|row| row.id);
        event
            .or_else(ad)
            .or_else(|| self.inputs.first().map(|row| row.id))
    }

    /// Adds the rows `earlier` of the same id before all others.
    pub(super) fn prepend(&mut self, earlier: SameIdRows) {
        self.events.splice(0..0, earlier.events);
        self.ads.splice(0..0, earlier.ads);
        self.inputs.splice(0..0, earlier.inputs);
    }

    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.ads.clear();
        self.inputs.clear();
    }

    /// Sorts rows by time that are in the order of logs. Rows of one time keep their order.
    pub(super) fn sort_by_time(&mut self) {
        restore_log_order(&mut self.events);
        self.events.sort_by_key(|event| event.time_ms);
        self.ads.sort_by_key(|ad| ad.submit_ms);
        self.inputs.sort_unstable();
        self.inputs.dedup();
    }
}

/// Restores the order of the log within each stretch: an event that is stamped before its
/// predecessor gets the time of the predecessor.
fn restore_log_order(events: &mut [EventRow]) {
    let mut stretch = None;
    let mut latest_ms = i64::MIN;

    for event in events {
        if stretch != Some(event.stretch()) {
            stretch = Some(event.stretch());
            latest_ms = i64::MIN;
        }
        latest_ms = latest_ms.max(event.time_ms);
        event.time_ms = latest_ms;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    thread_local! {
        /// Number of events that this thread compared with others.
        pub(crate) static COMPARED_EVENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn events_keep_log_order_within_a_stretch() {
        let row = |(stretch, time_ms)| {
            let event = JobEvent {
                time_ms,
                ..JobEvent::default()
            };
            EventRow::new(0, LogStretch::numbered(stretch), &event)
        };
        let mut rows = [(1, 10), (1, 30), (1, 20), (2, 5), (2, 40), (1, 7)].map(row);
        restore_log_order(&mut rows);
        assert_eq!(rows.map(|row| row.time_ms), [10, 30, 30, 5, 40, 7]);
    }

    #[test]
    fn stretch_numbers_are_reused_in_turn() {
        let number = |stretch| LogStretch::numbered(stretch).number();
        assert_eq!(
            [0, 1, 127, 128, 32_766, 32_767, 32_768].map(number),
            [0, 1, 127, 128, 32_766, 0, 1]
        );
    }

    #[test]
    fn rows_keep_stretch_and_normal_apart() {
        for (stretch, normal) in [(0, 0), (0, 1), (32_766, 0), (32_766, 1)] {
            let event = JobEvent {
                normal,
                ..JobEvent::default()
            };
            let mut row = EventRow::new(0, LogStretch::numbered(7), &event);
            row.set_stretch(LogStretch::numbered(stretch));
            assert_eq!(
                (row.stretch().number(), row.normal()),
                (stretch as u16, normal)
            );
        }
    }

    #[test]
    fn ad_rows_preserve_request_and_names() {
        let names = SubmissionNames {
            batch: u32::MAX,
            dag_node: 2,
        };
        let request = ResourceRequest {
            cpus: 255,
            gpus: 1,
            memory_mb: u32::MAX,
            disk_mb: 1 << 31,
        };
        let ad = AdRow::new(
            StoredId::default(),
            3,
            0xfedc_ba98_7654_3210,
            request,
            names,
        );
        assert_eq!((ad.request(), ad.names()), (request, names));
    }
}
