//! Idle jobs of one batch that have one fault in common.

use std::collections::BTreeSet;

use serde::Serialize;

use super::idle_ids::{IdleId, commands};
use super::job_command::JobId;
use super::unheld_job::UnheldJob;
use poolcast_base::shared_text::SharedText;

/// Idle jobs of one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleBatch {
    /// Their access point; empty if it is unknown.
    pub ap: SharedText,
    /// Their owner, if the queue names one.
    pub owner: Option<SharedText>,
    /// Their batch, if it has a name. Jobs without one belong to their cluster.
    pub batch: Option<SharedText>,
    /// The jobs, by id.
    pub jobs: Vec<JobId>,
    /// The clusters of the jobs.
    pub clusters: Vec<i32>,
}

/// The key of a batch: access point, owner, name, and the cluster if there is no name.
pub(super) type IdleBatchKey<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<i32>);

/// Returns the key of the batch that `job` belongs to.
pub(super) fn batch_key(job: &UnheldJob) -> IdleBatchKey<'_> {
    let cluster = job.batch.is_none().then_some(job.job.cluster);
    (&job.ap, job.owner.as_deref(), job.batch.as_deref(), cluster)
}

impl IdleBatch {
    /// Describes `members`, which are not empty and have one key.
    pub(super) fn of_members(members: &[&UnheldJob]) -> IdleBatch {
        let first = members[0];
        let clusters: BTreeSet<i32> = members.iter().map(|job| job.job.cluster).collect();
        IdleBatch {
            ap: first.ap.clone(),
            owner: first.owner.clone(),
            batch: first.batch.clone(),
            jobs: members.iter().map(|job| job.job).collect(),
            clusters: clusters.into_iter().collect(),
        }
    }
}

/// Returns the commands `program JOBS arguments` for `members`.
pub(super) fn commands_for(program: &str, members: &[&UnheldJob], arguments: &str) -> Vec<String> {
    let ids = members.iter().map(|job| IdleId::of(job));
    commands(program, ids.collect(), arguments)
}
