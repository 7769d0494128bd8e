//! Writes sorted rows to the columns of a shard, and reads them back: jobs and their histories are
//! slices of a memory-mapped file.

use anyhow::{Result, ensure};

use super::fact_tables::{FactColumns, FactRows};
use super::format::{EVENTS_FORMAT, TIMESTAMPS_MS};
use super::input_table::{InputColumns, InputOfJob, InputRows};
use super::job_history::{EventColumns, JobHistory, StoredJob};
use super::job_row::{AdRow, EventRow, InputRow, StoredId};
use htcondor_eventlog::{InputFile, ResourceRequest, SUBMIT, SubmissionNames};
use poolcast_base::column_table;
use poolcast_base::shard::{Shard, ShardColumn, ShardLayout};

/// Name of the column with the index of each job's first event and the end of the last job: `[J +
/// 1]`.
const EVENT_BOUNDS: &str = "bounds";

/// A job to write, without its events.
struct JobEntry<'a> {
    id: StoredId,
    submit_ms: i64,
    /// Ad of the job, if there is one.
    ad: Option<&'a AdRow>,
    request: ResourceRequest,
    names: SubmissionNames,
}

column_table! {
    /// Jobs to write, in order.
    struct JobColumns from |job: &JobEntry<'_>|;

    /// The jobs of a shard.
    pub(super) struct JobSlices<'a>;

    ap: u32 = job.id.ap,
    cluster: i32 = job.id.cluster,
    proc: i32 = job.id.proc,
    submit_ms: i64 = job.submit_ms,
    global_submit_s: i64 = job.ad.map_or(0, |ad| ad.submit_ms / 1000),
    owner: u64 = job.ad.map_or(0, |ad| ad.owner),
    request_cpus: u8 = job.request.cpus,
    request_gpus: u8 = job.request.gpus,
    request_memory_mb: u32 = job.request.memory_mb,
    request_disk_mb: u32 = job.request.disk_mb,
    batch: u32 = job.names.batch,
    dag_node: u32 = job.names.dag_node,
}

/// A shard to write: `E` events sorted by job and time, `J` jobs.
#[derive(Debug)]
pub(super) struct ShardColumns {
    events: EventColumns,
    facts: FactColumns,
    jobs: JobColumns,
    inputs: InputColumns,
    /// Content of the column [`EVENT_BOUNDS`].
    event_bounds: Vec<u64>,
}

impl ShardColumns {
    /// Reserves memory for `events` events.
    pub(super) fn with_capacity(events: usize) -> ShardColumns {
        ShardColumns {
            events: EventColumns::with_capacity(events),
            facts: FactColumns::default(),
            jobs: JobColumns::default(),
            inputs: InputColumns::default(),
            event_bounds: vec![0],
        }
    }

    /// Removes all rows, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.facts.clear();
        self.jobs.clear();
        self.inputs.clear();
        self.event_bounds.truncate(1);
    }

    /// Adds a job with its events, its ad and the input files in it. There must be at least one event.
    pub(super) fn push_job(
        &mut self,
        events: &[EventRow],
        submit_ms: i64,
        ad: Option<&AdRow>,
        inputs: &[InputRow],
    ) {
        let job = self.job_count() as u32;
        for row in inputs {
            self.inputs.extend(&[InputOfJob {
                job,
                input: row.input,
            }]);
        }

        let first_event = self.event_count();
        for (at, event) in events.iter().enumerate() {
            self.facts
                .push((first_event + at) as u32, event.number, &event.facts);
        }
        self.event_bounds.push((first_event + events.len()) as u64);
        self.events.extend(events);
        self.jobs.extend(&[JobEntry {
            id: events[0].id,
            submit_ms,
            ad,
            request: ad.map(AdRow::request).unwrap_or_default(),
            names: submission_names(events, ad),
        }]);
    }

    /// The number of jobs.
    pub(super) fn job_count(&self) -> usize {
        self.event_bounds.len() - 1
    }

    /// Returns the id of the last job; `None` without jobs.
    pub(super) fn last_job(&self) -> Option<StoredId> {
        let JobColumns {
            ap, cluster, proc, ..
        } = &self.jobs;
        Some(StoredId {
            ap: *ap.last()?,
            cluster: *cluster.last()?,
            proc: *proc.last()?,
        })
    }

    /// The number of events.
    pub(super) fn event_count(&self) -> usize {
        self.event_bounds[self.event_bounds.len() - 1] as usize
    }

    /// Returns the layout of the shard.
    pub(super) fn layout(&self) -> Result<ShardLayout<'_>> {
        let mut columns = self.events.named();
        columns.extend(self.facts.named());
        columns.extend(self.jobs.named());
        columns.extend(self.inputs.named());
        columns.push((
            EVENT_BOUNDS.to_owned(),
            ShardColumn::vector(&self.event_bounds),
        ));

        ShardLayout::new(EVENTS_FORMAT, &serde_json::json!({}), columns)
    }
}

/// Returns the names of a job's submission: from its ad, or from its event 000 if the ad has none.
fn submission_names(events: &[EventRow], ad: Option<&AdRow>) -> SubmissionNames {
    let from_ad = ad.map(AdRow::names).unwrap_or_default();
    if from_ad != SubmissionNames::default() {
        return from_ad;
    }
    let submission = events.iter().find(|event| event.number == SUBMIT);
    submission.map_or(from_ad, |event| event.facts.submission_names(event.number))
}

/// The counts of a shard in the manifest, which its columns must match.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardCounts {
    pub(super) jobs: usize,
    pub(super) events: usize,
    /// Number of access points of the whole store.
    pub(super) access_points: usize,
    /// Id of the last job; `None` without jobs.
    pub(super) last_job: Option<StoredId>,
}

/// The columns of a shard, to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardSlices<'a> {
    event_bounds: &'a [u64],
    jobs: JobSlices<'a>,
    inputs: InputRows<'a>,
    events: JobHistory<'a>,
    facts: FactRows<'a>,
}

impl<'a> ShardSlices<'a> {
    /// Maps the columns of `shard`.
    ///
    /// # Errors
    /// Fails if a column is missing or has another type.
    pub(super) fn from_shard(shard: &'a Shard) -> Result<ShardSlices<'a>> {
        Ok(ShardSlices {
            event_bounds: shard.column(EVENT_BOUNDS)?,
            jobs: JobSlices::from_shard(shard)?,
            inputs: InputRows::from_shard(shard)?,
            events: JobHistory::from_shard(shard)?,
            facts: FactRows::from_shard(shard)?,
        })
    }

    /// Checks everything that [`ShardSlices::job`] relies on, so that no file can make it panic.
    pub(super) fn check(&self, listed: ShardCounts) -> Result<()> {
        self.check_lengths(listed)?;
        self.facts.check()?;
        self.inputs.check()?;
        self.check_times()?;
        self.check_ids(listed.access_points)?;
        let last_job = self.job_count().checked_sub(1).map(|at| self.id(at));
        ensure!(
            last_job == listed.last_job,
            "its last job is another one than listed"
        );
        Ok(())
    }

    fn check_lengths(&self, listed: ShardCounts) -> Result<()> {
        let bounds = self.event_bounds;
        ensure!(
            self.jobs.have_length(listed.jobs)
                && self.events.have_length(listed.events)
                && bounds.len() == listed.jobs + 1,
            "its columns have different lengths"
        );

        // Every job has an event.
        let are_in_order = bounds.is_sorted_by(|a, b| a < b);
        let are_complete =
            bounds.first() == Some(&0) && bounds.last() == Some(&(listed.events as u64));
        ensure!(
            are_in_order && are_complete,
            "its job bounds are out of order"
        );
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let mut times_ms = self.events.time_ms.iter().chain(self.jobs.submit_ms);
        let mut times_s = self.jobs.global_submit_s.iter();
        ensure!(
            times_ms.all(|time_ms| TIMESTAMPS_MS.contains(time_ms))
                && times_s.all(|time_s| TIMESTAMPS_MS.contains(&time_s.saturating_mul(1000))),
            "it has a time out of range"
        );
        Ok(())
    }

    fn check_ids(&self, access_points: usize) -> Result<()> {
        let JobSlices {
            ap, cluster, proc, ..
        } = self.jobs;
        let mut numbers = cluster.iter().chain(proc);
        let ids = (0..ap.len()).map(|at| (ap[at], cluster[at], proc[at]));
        ensure!(
            numbers.all(|&number| number >= 0) && ids.is_sorted(),
            "its jobs are out of order"
        );
        ensure!(
            ap.iter().all(|&ap| (ap as usize) < access_points),
            "it has an unknown access point"
        );
        Ok(())
    }

    pub(super) fn job_count(&self) -> usize {
        self.event_bounds.len() - 1
    }

    /// Returns the id of job `at` of this shard.
    #[inline]
    pub(super) fn id(&self, at: usize) -> StoredId {
        StoredId {
            ap: self.jobs.ap[at],
            cluster: self.jobs.cluster[at],
            proc: self.jobs.proc[at],
        }
    }

    /// Returns the index of the first event of job `at` of this shard.
    #[inline]
    pub(super) fn first_event(&self, at: usize) -> u64 {
        self.event_bounds[at]
    }

    /// Returns the events of job `at` of this shard.
    #[inline]
    pub(super) fn history(&self, at: usize) -> JobHistory<'a> {
        self.events
            .slice(self.event_bounds[at] as usize..self.event_bounds[at + 1] as usize)
    }

    /// Returns the event numbers of job `at` of this shard.
    #[inline]
    pub(super) fn numbers(&self, at: usize) -> &'a [u16] {
        &self.events.number[self.event_bounds[at] as usize..self.event_bounds[at + 1] as usize]
    }

    /// Returns the access point and the cluster of job `at` of this shard.
    #[inline]
    pub(super) fn cluster(&self, at: usize) -> (u32, i32) {
        (self.jobs.ap[at], self.jobs.cluster[at])
    }

    /// Returns the input files of job `at` of this shard.
    pub(super) fn inputs(&self, at: usize) -> impl Iterator<Item = InputFile> + use<'a> {
        self.inputs.of_job(at as u32)
    }

    /// Returns job `at` of this shard.
    #[inline]
    pub(super) fn job(&self, at: usize) -> StoredJob<'a> {
        let jobs = &self.jobs;
        StoredJob {
            ap: jobs.ap[at],
            cluster: jobs.cluster[at],
            proc: jobs.proc[at],
            submit_ms: jobs.submit_ms[at],
            global_submit_s: jobs.global_submit_s[at],
            owner: jobs.owner[at],
            request: ResourceRequest {
                cpus: jobs.request_cpus[at],
                gpus: jobs.request_gpus[at],
                memory_mb: jobs.request_memory_mb[at],
                disk_mb: jobs.request_disk_mb[at],
            },
            names: SubmissionNames {
                batch: jobs.batch[at],
                dag_node: jobs.dag_node[at],
            },
            history: self.history(at),
            first_event: self.event_bounds[at] as u32,
            facts: self.facts,
        }
    }
}
