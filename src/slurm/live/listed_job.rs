//! A job as listed by `squeue`.

use anyhow::{Result, ensure};

use super::job_resources::JobResources;
use super::pending_reason::{IdleReason, PendingRole, role_of};
use super::slurm_state::{JobOutcome, QueueState};

/// A job in Slurm's queue, or the pending elements of an array that share a row. Times are in epoch
/// seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// The job id.
    pub id: u64,
    /// For an array element, the id of the array and the index of the element.
    pub array_task: Option<(i64, i64)>,
    /// Number of jobs in the row, which is more than one for pending array elements.
    pub jobs: u32,
    /// Number of elements of the job's array that may run at once, if limited.
    pub array_limit: Option<u32>,
    /// The state.
    pub state: QueueState,
    /// The outcome, if the job has ended and Slurm reports it.
    pub outcome: Option<JobOutcome>,
    /// Slurm's reason for the job to be pending.
    pub reason: String,
    /// The user name.
    pub user: String,
    /// The number of the user, if listed.
    pub user_id: Option<u32>,
    /// The partitions in which the job may run.
    pub partitions: Vec<String>,
    /// The account.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// Number of allocated or requested nodes.
    pub nodes: u32,
    /// Time limit, in seconds; `None` if there is none.
    pub limit_s: Option<i64>,
    /// Submission time.
    pub submit_s: i64,
    /// The time from which the job could start; `None` while it depends on another job or is held.
    pub eligible_s: Option<i64>,
    /// Actual or planned start time.
    pub start_s: Option<i64>,
    /// Actual end time, or the end at the time limit.
    pub end_s: Option<i64>,
    /// The priority.
    pub priority: Option<i64>,
    /// The names of the job's nodes, in Slurm's abbreviated form.
    pub node_list: String,
    /// The comment given at submission. Text has the comments of the caller's jobs alone.
    pub comment: String,
    /// What the job requests and holds, if listed. Text has none of it.
    pub(super) resources: Option<JobResources>,
}

impl ListedJob {
    /// Returns the job id as displayed: `12`, or `12_3` in an array.
    pub fn name(&self) -> String {
        match self.array_task {
            Some((array, task)) => format!("{array}_{task}"),
            None => self.id.to_string(),
        }
    }

    /// Returns true if `name` names this job.
    pub fn has_id(&self, name: &str) -> bool {
        match name.split_once('_') {
            None => self.array_task.is_none() && name.parse() == Ok(self.id),
            Some((array, task)) => {
                let named = array.parse().ok().zip(task.parse().ok());
                named.is_some() && self.array_task == named
            }
        }
    }

    /// Returns the role of a job that is pending at `now_s`; `None` if Slurm's reason is unknown.
    pub fn pending_role(&self, now_s: i64) -> Option<PendingRole> {
        let role = role_of(&self.reason)?;
        if role != PendingRole::Turn {
            return Some(role);
        }
        if self.priority == Some(0) {
            return Some(PendingRole::Idle(IdleReason::Held));
        }
        let begins_later = self.eligible_s.is_some_and(|eligible_s| eligible_s > now_s);
        Some(match begins_later {
            true => PendingRole::Idle(IdleReason::Later),
            false => PendingRole::Turn,
        })
    }
}

/// The content of a parsed listing.
#[derive(Debug, Default)]
pub(super) struct ParsedJobs {
    pub(super) jobs: Vec<ListedJob>,
    /// Number of invalid rows, which are ignored.
    pub(super) left_out: usize,
    /// Slurm's last update of the jobs, in epoch seconds, if listed.
    pub(super) last_update_s: Option<i64>,
}

/// Parses the number after `%` in the elements `tasks` of an array, such as `2-9%3`.
pub(super) fn array_limit(tasks: &str) -> Option<u32> {
    let (_, limit) = tasks.split_once('%')?;
    limit.parse().ok()
}

/// Returns `moment_s` if it is in a plausible range.
///
/// # Errors
/// Fails for a time that is too large; the error names `field`.
pub(super) fn checked_time_s(field: &str, moment_s: Option<i64>) -> Result<Option<i64>> {
    // Below this limit, sums of two times cannot overflow.
    ensure!(
        moment_s.is_none_or(|moment_s| moment_s < 1 << 38),
        "`{field}` is not a valid time"
    );
    Ok(moment_s)
}
