//! A job as a cluster's accounting knows it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a job is called: `JobID` of `sacct`, as `12`, `12_3` or `12+1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobNumber {
    /// The number of the job, or of the array or the heterogeneous job that it is a part of.
    pub number: u64,
    /// Which part it is of that.
    pub part: JobPart,
}

/// Which part a job is of another. Slurm knows no array of heterogeneous jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobPart {
    /// All of it.
    Whole,
    /// A part of a heterogeneous job: its place there.
    HetOffset(u32),
    /// An element of an array: its index.
    ArrayTask(u32),
}

impl JobNumber {
    /// A job that is no part of another.
    pub fn single(number: u64) -> JobNumber {
        JobNumber {
            number,
            part: JobPart::Whole,
        }
    }
}

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        match self.part {
            JobPart::Whole => Ok(()),
            JobPart::HetOffset(offset) => write!(f, "+{offset}"),
            JobPart::ArrayTask(task) => write!(f, "_{task}"),
        }
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

/// A moment or a span in seconds, or that it is not known, in the memory of the number alone: a trace
/// of ten million jobs has forty million of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OptionalSeconds(i64);

impl OptionalSeconds {
    /// Not known.
    pub const UNKNOWN: OptionalSeconds = OptionalSeconds(i64::MIN);

    /// The seconds, if they are known.
    pub fn get(self) -> Option<i64> {
        (self != OptionalSeconds::UNKNOWN).then_some(self.0)
    }

    /// What stands for them in a shard.
    pub(super) fn stored(self) -> i64 {
        self.0
    }

    /// What a shard has.
    pub(super) fn from_stored(stored: i64) -> OptionalSeconds {
        OptionalSeconds(stored)
    }
}

impl From<i64> for OptionalSeconds {
    fn from(seconds: i64) -> OptionalSeconds {
        OptionalSeconds(seconds)
    }
}

impl From<Option<i64>> for OptionalSeconds {
    fn from(seconds: Option<i64>) -> OptionalSeconds {
        seconds.map_or(OptionalSeconds::UNKNOWN, OptionalSeconds)
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
    pub start_s: OptionalSeconds,
    /// When it ended, or left the queue without having run.
    pub end_s: OptionalSeconds,
    /// How long it ran, if it has ended.
    pub run_s: OptionalSeconds,
    /// How long it may run; not known where nothing limits it, or nothing says how.
    pub limit_s: OptionalSeconds,
    /// How many nodes it has, or asks for.
    pub nodes: u32,
    /// How far it got.
    pub fate: JobFate,
}

impl TraceJob {
    /// How long it waited for its start after it was submitted, if it started.
    pub fn wait_s(&self) -> Option<i64> {
        match self.fate {
            JobFate::Running | JobFate::Ended => Some(self.start_s.get()? - self.submit_s),
            JobFate::Pending | JobFate::Cancelled => None,
        }
    }
}
