//! Collects the results of simulated jobs (events by time slice, holds and counts), and formats
//! events as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hold_truth::SimulatedHold;
use super::pool::{PoolHost, SCHEDD, SCHEDD_ADDRESS, SimulatedPool};
use super::submissions::JobCluster;
use htcondor_eventlog::{
    self as eventlog, EventBody, HoldCode, JobDescription, JobExit, LogBuffer, ResourceUsage,
};

/// A slot in the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolSlot {
    pub(super) site: u16,
    pub(super) host: u16,
    pub(super) number: u32,
}

/// An event of a job, without its time.
#[derive(Debug)]
pub(super) enum TracedEvent {
    Submitted,
    DagmanStarted,
    InputStarted(PoolSlot),
    InputFinished,
    Executing(PoolSlot),
    ImageSize(u32),
    OutputStarted,
    OutputFinished,
    RemoteError(PoolSlot, HoldCode, Arc<str>),
    Evicted(Box<ResourceUsage>, HoldCode, Arc<str>),
    Terminated(Box<ResourceUsage>, JobExit),
    Held(HoldCode, Arc<str>),
    Released(Arc<str>),
    Aborted(Arc<str>),
}

/// An event of a job with its time, before it is formatted.
#[derive(Debug)]
pub(super) struct TimedEvent {
    pub(super) time_ms: i64,
    pub(super) cluster: Arc<JobCluster>,
    pub(super) proc: u32,
    /// Index of the event in the job's life.
    pub(super) order: u32,
    pub(super) request_memory_mb: u32,
    pub(super) transfer_input: Option<Arc<str>>,
    pub(super) holds: u32,
    pub(super) runs: bool,
    pub(super) last_slot: Option<PoolSlot>,
    pub(super) what: TracedEvent,
}

impl TimedEvent {
    /// Sort key of the log. It is unique for each event.
    pub(super) fn key(&self) -> (i64, u32, u32, u32) {
        (self.time_ms, self.cluster.id, self.proc, self.order)
    }
}

/// Results of some simulated jobs.
#[derive(Debug, Default)]
pub(super) struct JobTraces {
    /// Events by the index of their time slice.
    pub(super) events: BTreeMap<i64, Vec<TimedEvent>>,
    pub(super) cycles: Vec<SimulatedHold>,
    pub(super) jobs: u64,
    pub(super) held_jobs: u64,
    pub(super) removed_jobs: u64,
    /// Hold code of the last hold.
    pub(super) last_code: HoldCode,
    slices: TimeSlices,
}

/// The division of time into slices.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimeSlices {
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    pub(super) slice_ms: i64,
}

impl TimeSlices {
    /// Returns the end of slice `number`, epoch ms.
    pub(super) fn end_of(&self, number: i64) -> i64 {
        (self.start_ms + (number + 1) * self.slice_ms).min(self.end_ms)
    }

    pub(super) fn count(&self) -> i64 {
        (self.end_ms - self.start_ms + self.slice_ms - 1) / self.slice_ms
    }
}

impl JobTraces {
    pub(super) fn new(slices: TimeSlices) -> JobTraces {
        JobTraces {
            slices,
            ..JobTraces::default()
        }
    }

    /// Stores an event, unless it is after the end of the log.
    pub(super) fn push(&mut self, event: TimedEvent) {
        let TimeSlices {
            start_ms,
            end_ms,
            slice_ms,
        } = self.slices;
        if event.time_ms < end_ms {
            self.events
                .entry((event.time_ms - start_ms) / slice_ms)
                .or_default()
                .push(event);
        }
    }
}

/// Text of consecutive events.
#[derive(Debug, Default)]
pub(super) struct TextPiece {
    pub(super) bytes: Vec<u8>,
    /// End offset of each event, including its 028 record, and the event's time in epoch ms.
    pub(super) ends: Vec<(usize, i64)>,
}

/// Formats `events` as text.
pub(super) fn format_events(events: &[TimedEvent], pool: &SimulatedPool) -> TextPiece {
    const TYPICAL_BYTES: usize = 1024;
    let mut text = LogBuffer {
        bytes: Vec::with_capacity(events.len() * TYPICAL_BYTES),
    };
    let mut ends = Vec::with_capacity(events.len());
    for event in events {
        text.event(event.time_ms, &event.ad(pool), &event.body(pool));
        ends.push((text.bytes.len(), event.time_ms));
    }
    TextPiece {
        bytes: text.bytes,
        ends,
    }
}

impl TimedEvent {
    fn ad<'a>(&'a self, pool: &'a SimulatedPool) -> JobDescription<'a> {
        let cluster = &*self.cluster;
        JobDescription {
            cluster: cluster.id,
            proc: self.proc,
            submit_s: cluster.submit_ms.div_euclid(1000),
            schedd: SCHEDD,
            owner: &pool.users[cluster.user].name,
            batch: cluster.batch.as_deref(),
            dag_node: cluster.dag.as_ref().map(|(dag, name)| eventlog::DagNode {
                dagman_cluster: dag.dagman_cluster,
                name,
            }),
            last_slot: self.last_slot.map(|slot| slot.of(pool)),
            request_cpus: cluster.request_cpus,
            request_disk_kb: cluster.request_disk_kb,
            request_memory_mb: self.request_memory_mb,
            runs: self.runs,
            holds: self.holds,
            transfer_input: self.transfer_input.as_deref(),
            iwd: self.transfer_input.is_some().then_some(&*cluster.iwd),
        }
    }

    fn body<'a>(&'a self, pool: &'a SimulatedPool) -> EventBody<'a> {
        match &self.what {
            TracedEvent::Submitted => EventBody::Submit(SCHEDD_ADDRESS),
            TracedEvent::DagmanStarted => EventBody::ExecuteAtSchedd(SCHEDD_ADDRESS),
            TracedEvent::InputStarted(slot) => EventBody::InputStarted(slot.of(pool)),
            TracedEvent::InputFinished => EventBody::InputFinished,
            TracedEvent::Executing(slot) => EventBody::Execute(slot.of(pool)),
            TracedEvent::ImageSize(memory_mb) => EventBody::ImageSize(*memory_mb),
            TracedEvent::OutputStarted => EventBody::OutputStarted,
            TracedEvent::OutputFinished => EventBody::OutputFinished,
            TracedEvent::RemoteError(slot, code, message) => {
                EventBody::RemoteError(slot.of(pool), *code, message)
            }
            TracedEvent::Evicted(usage, code, reason) => EventBody::Evicted(usage, *code, reason),
            TracedEvent::Terminated(usage, exit) => EventBody::Terminated(usage, *exit),
            TracedEvent::Held(code, reason) => EventBody::Held(*code, reason),
            TracedEvent::Released(reason) => EventBody::Released(reason),
            TracedEvent::Aborted(reason) => EventBody::Aborted(reason),
        }
    }
}

impl PoolSlot {
    fn of(self, pool: &SimulatedPool) -> eventlog::DynamicSlot<'_> {
        let PoolHost { name, address, .. } =
            &pool.sites[usize::from(self.site)].hosts[usize::from(self.host)];
        eventlog::DynamicSlot {
            number: self.number,
            host: name,
            address,
        }
    }
}
