//! A job that Slurm lists.

use anyhow::{Result, ensure};

use super::slurm_state::{JobOutcome, QueueState};

/// A job that Slurm knows, or the elements of an array that wait together. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// Its number.
    pub id: u64,
    /// Of an element of an array: the number of the array, and its own in it.
    pub array_task: Option<(i64, i64)>,
    /// How many jobs it stands for: elements of an array that wait share a row.
    pub jobs: u32,
    /// How far it got.
    pub state: QueueState,
    /// How it ended, if it has and Slurm says how.
    pub outcome: Option<JobOutcome>,
    /// Why it waits, in Slurm's word.
    pub reason: String,
    /// Whose it is, by name.
    pub user: String,
    /// The partitions it may run in.
    pub partitions: Vec<String>,
    /// On whose account it runs.
    pub account: Option<String>,
    /// Its quality of service.
    pub qos: Option<String>,
    /// How many nodes it has, or asks for.
    pub nodes: u32,
    /// How long it may run, seconds; `None` without a limit.
    pub limit_s: Option<i64>,
    /// When it was submitted.
    pub submit_s: i64,
    /// From when on it could start; `None` where it depends on another job or is held.
    pub eligible_s: Option<i64>,
    /// When it started, or is planned to.
    pub start_s: Option<i64>,
    /// When it ended, or will at its limit.
    pub end_s: Option<i64>,
    /// Its priority.
    pub priority: Option<i64>,
    /// The names of its nodes, as Slurm abbreviates them.
    pub node_list: String,
    /// What was said of it when it was submitted.
    pub comment: String,
}

impl ListedJob {
    /// What it is called: `12`, or `12_3` in an array.
    pub fn name(&self) -> String {
        match self.array_task {
            Some((array, task)) => format!("{array}_{task}"),
            None => self.id.to_string(),
        }
    }

    /// Whether it is what `name` means.
    pub fn is_called(&self, name: &str) -> bool {
        match name.split_once('_') {
            None => self.array_task.is_none() && name.parse() == Ok(self.id),
            Some((array, task)) => {
                let named = array.parse().ok().zip(task.parse().ok());
                named.is_some() && self.array_task == named
            }
        }
    }

    /// Why it does not wait for its turn though it is pending at `now_s`.
    pub fn idle_reason(&self, now_s: i64) -> Option<IdleReason> {
        match self.reason.as_str() {
            "Dependency" | "DependencyNeverSatisfied" => return Some(IdleReason::Depends),
            "JobHeldUser" | "JobHeldAdmin" | "JobHoldMaxRequeue" => return Some(IdleReason::Held),
            "BeginTime" => return Some(IdleReason::Later),
            _ => {}
        }
        if self.priority == Some(0) {
            return Some(IdleReason::Held);
        }
        let begins_later = self.eligible_s.is_some_and(|eligible_s| eligible_s > now_s);
        begins_later.then_some(IdleReason::Later)
    }
}

/// Why a pending job does not wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReason {
    /// It depends on another job.
    Depends,
    /// It is held.
    Held,
    /// It is not to begin yet.
    Later,
}

/// What was read of a listing.
#[derive(Debug, Default)]
pub(super) struct ReadJobs {
    pub(super) jobs: Vec<ListedJob>,
    /// Rows that are left out: jobs in a state that is not known, or what is no row.
    pub(super) left_out: usize,
    /// When Slurm last changed something in them, epoch seconds, where that is said.
    pub(super) last_update_s: Option<i64>,
}

/// A moment that a calendar knows.
pub(super) fn listed_moment(field: &str, moment_s: Option<i64>) -> Result<Option<i64>> {
    // Sums of two such moments do not overflow either.
    ensure!(
        moment_s.is_none_or(|moment_s| moment_s < 1 << 38),
        "`{field}` is no moment"
    );
    Ok(moment_s)
}
