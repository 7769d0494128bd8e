//! Parser of `sacct --json`. Slurm 21.08 writes plain numbers, later versions write objects such as
//! `{"set": true, "infinite": false, "number": 60}`.

use std::io::Read;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::accounting_row::{AccountingRow, StatedState};
use super::array_elements::{NamedJobs, parse_job_id};
use super::local_time::StampReadings;
use super::row_collector::{RowCollector, UserHashes};
use super::row_fault::RowFault;
use super::trace_job::{JobNumber, TraceJob};
use crate::slurm_number::{SlurmError, SlurmNumber, SlurmWords, reject_errors};
use poolcast_base::error::hinted;

/// The document that `sacct --json` writes.
#[derive(Deserialize)]
struct AccountingDocument {
    jobs: Vec<AccountingJob>,
    #[serde(default)]
    errors: Option<Vec<SlurmError>>,
}

/// A job of the document, with the fields that this program uses.
#[derive(Deserialize)]
struct AccountingJob {
    job_id: u64,
    #[serde(default)]
    array: ArrayMembership,
    #[serde(default)]
    het: HetMembership,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    allocation_nodes: SlurmNumber,
    #[serde(default)]
    tres: TrackedResources,
    time: JobTimes,
    state: JobStates,
}

/// The array that a job belongs to; without numbers if it belongs to none.
#[derive(Default, Deserialize)]
struct ArrayMembership {
    #[serde(default)]
    job_id: SlurmNumber,
    #[serde(default)]
    task_id: SlurmNumber,
    /// The waiting elements, such as `1-10%2`.
    #[serde(default)]
    task: Option<String>,
}

/// The heterogeneous job that a job is a component of; without numbers if there is none.
#[derive(Default, Deserialize)]
struct HetMembership {
    #[serde(default)]
    job_id: SlurmNumber,
    #[serde(default)]
    job_offset: SlurmNumber,
}

#[derive(Default, Deserialize)]
struct TrackedResources {
    #[serde(default)]
    allocated: Vec<TrackedResource>,
    #[serde(default)]
    requested: Vec<TrackedResource>,
}

#[derive(Deserialize)]
struct TrackedResource {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    count: SlurmNumber,
}

#[derive(Deserialize)]
struct JobTimes {
    submission: SlurmNumber,
    #[serde(default)]
    eligible: SlurmNumber,
    start: SlurmNumber,
    end: SlurmNumber,
    #[serde(default)]
    elapsed: SlurmNumber,
    #[serde(default)]
    limit: SlurmNumber,
}

#[derive(Deserialize)]
struct JobStates {
    current: SlurmWords,
}

/// Parses the document in `reader`, and adds its jobs to `collector`.
///
/// # Errors
/// Fails if `reader` does not hold such a document; the error names the line and the field.
pub(super) fn read_jobs(
    reader: impl Read,
    users: &mut UserHashes,
    collector: &mut RowCollector,
) -> Result<()> {
    let document: AccountingDocument = serde_json::from_reader(reader).with_context(|| {
        hinted(
            "this is not the JSON of a known version of `sacct`",
            "write it with `sacct --json`, or export with `--parsable2`",
        )
    })?;
    if document.jobs.is_empty() {
        reject_errors("sacct", document.errors.as_deref().unwrap_or_default())?;
    }
    for (place, job) in document.jobs.iter().enumerate() {
        collector.add(place as u64 + 1, job.trace_jobs(users));
    }
    Ok(())
}

impl AccountingJob {
    fn trace_jobs(&self, users: &mut UserHashes) -> Result<Vec<TraceJob>, RowFault> {
        let row = AccountingRow {
            user: self.user.as_deref().map_or(0, |name| users.hash(name)),
            submit: stamp(&self.time.submission).ok_or(RowFault::Submit)?,
            eligible: stamp(&self.time.eligible),
            start: stamp(&self.time.start),
            end: stamp(&self.time.end),
            run_s: self.time.elapsed.known(),
            limit_s: self.limit_s()?,
            nodes: self.nodes().ok_or(RowFault::Nodes)?,
            state: self.stated_state(),
        };
        self.ids()?.into_iter().map(|id| row.job(id)).collect()
    }

    fn limit_s(&self) -> Result<Option<i64>, RowFault> {
        let minutes = self.time.limit.minutes();
        if minutes.is_some_and(|minutes| minutes < 0) {
            return Err(RowFault::TimeLimit);
        }
        Ok(minutes.map(|minutes| minutes * 60))
    }

    /// Returns the allocated number of nodes, or else the requested one.
    fn nodes(&self) -> Option<u32> {
        let count = |resources: &[TrackedResource]| {
            let nodes = resources.iter().find(|resource| resource.kind == "node")?;
            nodes.count.positive()
        };
        let nodes = count(&self.tres.allocated)
            .or_else(|| self.allocation_nodes.positive())
            .or_else(|| count(&self.tres.requested))?;
        u32::try_from(nodes).ok()
    }

    fn stated_state(&self) -> StatedState {
        let word = self.state.current.all().first();
        word.map_or(StatedState::Unknown, |word| StatedState::parse(word))
    }

    fn ids(&self) -> Result<Vec<JobNumber>, RowFault> {
        if let Some(array) = self.array.job_id.positive() {
            if let Some(task) = self.array.task_id.known() {
                return self.id_of(&format!("{array}_{task}"));
            }
            if let Some(tasks) = self.array.task.as_deref().filter(|tasks| !tasks.is_empty()) {
                return self.id_of(&format!("{array}_[{tasks}]"));
            }
        }
        if let (Some(job), Some(offset)) = (self.het.job_id.positive(), self.het.job_offset.known())
        {
            return self.id_of(&format!("{job}+{offset}"));
        }
        self.id_of(&self.job_id.to_string())
    }

    fn id_of(&self, text: &str) -> Result<Vec<JobNumber>, RowFault> {
        match parse_job_id(text)? {
            NamedJobs::One(id) => Ok(vec![id]),
            NamedJobs::Several(ids) => Ok(ids),
            NamedJobs::Step => Err(RowFault::JobId),
        }
    }
}

fn stamp(number: &SlurmNumber) -> Option<StampReadings> {
    number.positive().map(StampReadings::once)
}
