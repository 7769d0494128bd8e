//! Rows in order → the columns of a shard, and back: jobs and their histories as slices of a mapped file.

use std::ops::{Range, RangeInclusive};

use anyhow::{Result, ensure};

use super::rows::Row;
use super::store::EVENTS_FORMAT;
use crate::eventlog::{JobEvent, ResourceRequest};
use crate::shard::{Shard, ShardColumn, ShardLayout};

/// A shard is closed after the job that fills it; histories are never split. Larger ones would touch more memory for the first
/// time, which costs more than parsing what they hold.
const SHARD_EVENTS: usize = 1 << 18;

/// No stamp of a log is before the year 1 or after the year 9999, epoch ms: sums of them never overflow.
pub(crate) const TIMESTAMPS_MS: RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

/// Events and jobs as they are written: `E` events sorted by job and time, `J` jobs.
#[derive(Debug, Default)]
pub(super) struct Columns {
    time_ms: Vec<i64>,
    hold_code: Vec<i32>,
    hold_subcode: Vec<i32>,
    value: Vec<i32>,
    text_hash: Vec<u32>,
    number: Vec<u16>,
    normal: Vec<u8>,
    /// `[J + 1]`: where each job's events begin, and where the last one's end.
    bounds: Vec<u64>,
    submit_ms: Vec<i64>,
    global_submit_s: Vec<i64>,
    owner: Vec<u64>,
    ap: Vec<u32>,
    cluster: Vec<i32>,
    proc: Vec<i32>,
    request_cpus: Vec<u8>,
    request_gpus: Vec<u8>,
    request_memory_mb: Vec<u32>,
    request_disk_mb: Vec<u32>,
}

impl Columns {
    /// Room for so many events, or those of a shard if there are more.
    pub(super) fn new(events: usize) -> Columns {
        let events = events.min(SHARD_EVENTS + SHARD_EVENTS / 64);
        Columns {
            time_ms: Vec::with_capacity(events),
            hold_code: Vec::with_capacity(events),
            hold_subcode: Vec::with_capacity(events),
            value: Vec::with_capacity(events),
            text_hash: Vec::with_capacity(events),
            number: Vec::with_capacity(events),
            normal: Vec::with_capacity(events),
            bounds: vec![0],
            ..Columns::default()
        }
    }

    /// Forgets all, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.time_ms.clear();
        self.hold_code.clear();
        self.hold_subcode.clear();
        self.value.clear();
        self.text_hash.clear();
        self.number.clear();
        self.normal.clear();
        self.bounds.truncate(1);
        self.submit_ms.clear();
        self.global_submit_s.clear();
        self.owner.clear();
        self.ap.clear();
        self.cluster.clear();
        self.proc.clear();
        self.request_cpus.clear();
        self.request_gpus.clear();
        self.request_memory_mb.clear();
        self.request_disk_mb.clear();
    }

    /// Adds a job: its events, of which there is one at least, and what its ad says.
    pub(super) fn push_job(&mut self, events: &[Row], submit_ms: i64, ad: Option<&Row>) {
        self.time_ms.extend(events.iter().map(|row| row.time_ms));
        self.hold_code
            .extend(events.iter().map(|row| row.hold_code));
        self.hold_subcode
            .extend(events.iter().map(|row| row.hold_subcode));
        self.value.extend(events.iter().map(|row| row.value));
        self.text_hash
            .extend(events.iter().map(|row| row.text_hash));
        self.number.extend(events.iter().map(|row| row.number));
        self.normal.extend(events.iter().map(|row| row.normal));
        self.bounds.push(self.number.len() as u64);
        self.ap.push(events[0].ap);
        self.cluster.push(events[0].cluster);
        self.proc.push(events[0].proc);
        self.submit_ms.push(submit_ms);
        self.global_submit_s
            .push(ad.map_or(0, |ad| ad.time_ms / 1000));
        self.owner.push(ad.map_or(0, Row::owner));
        let request = ad.map(Row::request).unwrap_or_default();
        self.request_cpus.push(request.cpus);
        self.request_gpus.push(request.gpus);
        self.request_memory_mb.push(request.memory_mb);
        self.request_disk_mb.push(request.disk_mb);
    }

    /// How many jobs.
    pub(super) fn jobs(&self) -> usize {
        self.ap.len()
    }

    /// How many events.
    pub(super) fn events(&self) -> usize {
        self.number.len()
    }

    /// Whether they fill a shard.
    pub(super) fn is_full(&self) -> bool {
        self.number.len() >= SHARD_EVENTS
    }

    /// Their shard.
    pub(super) fn layout(&self) -> Result<ShardLayout<'_>> {
        let columns = [
            ("time_ms", ShardColumn::vector(&self.time_ms)),
            ("hold_code", ShardColumn::vector(&self.hold_code)),
            ("hold_subcode", ShardColumn::vector(&self.hold_subcode)),
            ("value", ShardColumn::vector(&self.value)),
            ("text_hash", ShardColumn::vector(&self.text_hash)),
            ("number", ShardColumn::vector(&self.number)),
            ("normal", ShardColumn::vector(&self.normal)),
            ("bounds", ShardColumn::vector(&self.bounds)),
            ("submit_ms", ShardColumn::vector(&self.submit_ms)),
            (
                "global_submit_s",
                ShardColumn::vector(&self.global_submit_s),
            ),
            ("owner", ShardColumn::vector(&self.owner)),
            ("ap", ShardColumn::vector(&self.ap)),
            ("cluster", ShardColumn::vector(&self.cluster)),
            ("proc", ShardColumn::vector(&self.proc)),
            ("request_cpus", ShardColumn::vector(&self.request_cpus)),
            ("request_gpus", ShardColumn::vector(&self.request_gpus)),
            (
                "request_memory_mb",
                ShardColumn::vector(&self.request_memory_mb),
            ),
            (
                "request_disk_mb",
                ShardColumn::vector(&self.request_disk_mb),
            ),
        ];
        let columns = columns
            .map(|(name, column)| (name.to_owned(), column))
            .to_vec();
        ShardLayout::new(EVENTS_FORMAT, &serde_json::json!({}), columns)
    }
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
    /// The submit time in its `GlobalJobId`, epoch s, which is `AP#cluster.proc#` and this; 0 if unknown.
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
        let JobHistory {
            time_ms,
            number,
            hold_code,
            hold_subcode,
            value,
            normal,
            text_hash,
        } = self.history;
        JobEvent {
            time_ms: time_ms[at],
            cluster: self.cluster,
            proc: self.proc,
            number: number[at],
            normal: normal[at],
            value: value[at],
            hold_code: hold_code[at],
            hold_subcode: hold_subcode[at],
            text_hash: text_hash[at],
        }
    }

    /// `cluster.proc`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }
}

/// The events of one job in order of time; slices of equal length. The fields mean what they mean in [`JobEvent`].
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "named as the fields of JobEvent")]
pub struct JobHistory<'a> {
    pub time_ms: &'a [i64],
    pub number: &'a [u16],
    pub hold_code: &'a [i32],
    pub hold_subcode: &'a [i32],
    pub value: &'a [i32],
    pub normal: &'a [u8],
    pub text_hash: &'a [u32],
}

impl JobHistory<'_> {
    /// The events in `range`.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Self {
        JobHistory {
            time_ms: &self.time_ms[range.clone()],
            number: &self.number[range.clone()],
            hold_code: &self.hold_code[range.clone()],
            hold_subcode: &self.hold_subcode[range.clone()],
            value: &self.value[range.clone()],
            normal: &self.normal[range.clone()],
            text_hash: &self.text_hash[range],
        }
    }
}

/// The columns of a shard, found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    bounds: &'a [u64],
    ap: &'a [u32],
    cluster: &'a [i32],
    proc: &'a [i32],
    submit_ms: &'a [i64],
    global_submit_s: &'a [i64],
    owner: &'a [u64],
    request_cpus: &'a [u8],
    request_gpus: &'a [u8],
    request_memory_mb: &'a [u32],
    request_disk_mb: &'a [u32],
    events: JobHistory<'a>,
}

impl<'a> Part<'a> {
    /// # Errors
    /// Fails when a column is missing or of another type.
    pub(super) fn of(shard: &'a Shard) -> Result<Part<'a>> {
        Ok(Part {
            bounds: shard.column("bounds")?,
            ap: shard.column("ap")?,
            cluster: shard.column("cluster")?,
            proc: shard.column("proc")?,
            submit_ms: shard.column("submit_ms")?,
            global_submit_s: shard.column("global_submit_s")?,
            owner: shard.column("owner")?,
            request_cpus: shard.column("request_cpus")?,
            request_gpus: shard.column("request_gpus")?,
            request_memory_mb: shard.column("request_memory_mb")?,
            request_disk_mb: shard.column("request_disk_mb")?,
            events: JobHistory {
                time_ms: shard.column("time_ms")?,
                number: shard.column("number")?,
                hold_code: shard.column("hold_code")?,
                hold_subcode: shard.column("hold_subcode")?,
                value: shard.column("value")?,
                normal: shard.column("normal")?,
                text_hash: shard.column("text_hash")?,
            },
        })
    }

    /// Checks everything that [`Part::job`] relies on, so that no file can make it panic.
    pub(super) fn check(&self, jobs: usize, events: usize, aps: usize) -> Result<()> {
        let JobHistory {
            time_ms,
            number,
            hold_code,
            hold_subcode,
            value,
            normal,
            text_hash,
        } = self.events;
        let of_jobs = [
            self.ap.len(),
            self.cluster.len(),
            self.proc.len(),
            self.submit_ms.len(),
            self.global_submit_s.len(),
            self.owner.len(),
            self.request_cpus.len(),
            self.request_gpus.len(),
            self.request_memory_mb.len(),
            self.request_disk_mb.len(),
        ];
        let of_events = [
            time_ms.len(),
            number.len(),
            hold_code.len(),
            hold_subcode.len(),
            value.len(),
            normal.len(),
            text_hash.len(),
        ];
        let as_listed = of_jobs.iter().all(|&length| length == jobs)
            && of_events.iter().all(|&length| length == events);
        ensure!(
            as_listed && self.bounds.len() == jobs + 1,
            "its columns have other lengths"
        );
        // Every job has an event.
        let in_order = self.bounds.is_sorted_by(|a, b| a < b);
        let are_all =
            self.bounds.first() == Some(&0) && self.bounds.last() == Some(&(events as u64));
        ensure!(in_order && are_all, "its job bounds are out of order");
        let seconds = |time_s: &i64| TIMESTAMPS_MS.contains(&time_s.saturating_mul(1000));
        let are_times = time_ms
            .iter()
            .chain(self.submit_ms)
            .all(|time_ms| TIMESTAMPS_MS.contains(time_ms));
        ensure!(
            are_times && self.global_submit_s.iter().all(seconds),
            "it has a time that no calendar has"
        );
        let are_ids = self
            .cluster
            .iter()
            .chain(self.proc)
            .all(|&number| number >= 0);
        let ids = (0..jobs).map(|at| (self.ap[at], self.cluster[at], self.proc[at]));
        ensure!(are_ids && ids.is_sorted(), "its jobs are out of order");
        ensure!(
            self.ap.iter().all(|&ap| (ap as usize) < aps),
            "it names an unknown access point"
        );
        Ok(())
    }

    pub(super) fn jobs(&self) -> usize {
        self.ap.len()
    }

    /// Where the events of job `at` of this shard begin.
    #[inline]
    pub(super) fn begin(&self, at: usize) -> u64 {
        self.bounds[at]
    }

    /// The events of job `at` of this shard.
    #[inline]
    pub(super) fn history(&self, at: usize) -> JobHistory<'a> {
        self.events
            .slice(self.bounds[at] as usize..self.bounds[at + 1] as usize)
    }

    /// The job `at` of this shard.
    #[inline]
    pub(super) fn job(&self, at: usize) -> StoredJob<'a> {
        StoredJob {
            ap: self.ap[at],
            cluster: self.cluster[at],
            proc: self.proc[at],
            submit_ms: self.submit_ms[at],
            global_submit_s: self.global_submit_s[at],
            owner: self.owner[at],
            request: ResourceRequest {
                cpus: self.request_cpus[at],
                gpus: self.request_gpus[at],
                memory_mb: self.request_memory_mb[at],
                disk_mb: self.request_disk_mb[at],
            },
            history: self.history(at),
        }
    }
}
