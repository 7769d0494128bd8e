//! A job as a cluster's accounting knows it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a job is called: `JobID` of `sacct`, as `12`, `12_3` or `12+1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobNumber {
    /// The number of the job, or of the array or the heterogeneous job that it is a part of.
    pub number: u64,
    /// Its index in an array.
    pub array_task: Option<u32>,
    /// Its place in a heterogeneous job.
    pub het_offset: Option<u32>,
}

impl JobNumber {
    /// A job that is no part of another.
    pub fn single(number: u64) -> JobNumber {
        JobNumber {
            number,
            array_task: None,
            het_offset: None,
        }
    }
}

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        if let Some(task) = self.array_task {
            write!(f, "_{task}")?;
        }
        if let Some(offset) = self.het_offset {
            write!(f, "+{offset}")?;
        }
        Ok(())
    }
}

/// How far a job got by the time its trace was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobFate {
    /// It waits.
    Pending,
    /// It runs.
    Running,
    /// It left the queue without having run.
    Cancelled,
    /// It has run.
    Ended,
}

impl JobFate {
    /// All of them, in the order of their stored codes.
    pub const ALL: [JobFate; 4] = [
        JobFate::Pending,
        JobFate::Running,
        JobFate::Cancelled,
        JobFate::Ended,
    ];

    /// As it is stored.
    pub(super) fn code(self) -> u8 {
        JobFate::ALL
            .iter()
            .position(|fate| *fate == self)
            .map_or(0, |code| code as u8)
    }
}

/// A job. Moments are seconds of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceJob {
    /// What it is called.
    pub id: JobNumber,
    /// A salted hash of whose it is; 0 where nothing says it.
    pub user: u64,
    /// When it was submitted.
    pub submit_s: i64,
    /// From when on it could have started, never before it was submitted: `--begin`, dependencies
    /// and holds are over.
    pub eligible_s: i64,
    /// When it started, if it did and the trace says when.
    pub start_s: Option<i64>,
    /// When it ended, or left the queue without having run.
    pub end_s: Option<i64>,
    /// How long it ran, if it has ended.
    pub run_s: Option<i64>,
    /// How long it may run; `None` where nothing limits it, or nothing says how.
    pub limit_s: Option<i64>,
    /// How many nodes it has, or asks for.
    pub nodes: u32,
    /// How far it got.
    pub fate: JobFate,
}

impl TraceJob {
    /// How long it waited for its start after it was submitted, if it started.
    pub fn wait_s(&self) -> Option<i64> {
        match self.fate {
            JobFate::Running | JobFate::Ended => Some(self.start_s? - self.submit_s),
            JobFate::Pending | JobFate::Cancelled => None,
        }
    }
}
