//! A job of a trace, as described by a cluster's accounting.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of a job: `JobID` of `sacct`, such as `12`, `12_3` or `12+1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobNumber {
    /// The number of the job, or of the array or the heterogeneous job that contains it.
    pub number: u64,
    /// The part of that job or array.
    pub part: JobPart,
}

/// The part of a job or array that a [`JobNumber`] names. Slurm has no arrays of heterogeneous
/// jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobPart {
    /// The whole job.
    Whole,
    /// A component of a heterogeneous job, by its offset.
    HetOffset(u32),
    /// An element of an array, by its index.
    ArrayTask(u32),
}

impl JobNumber {
    /// Returns the id of a job that is not part of another.
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

/// The last stage that a job had reached when its trace was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobFate {
    /// The job is pending.
    Pending,
    /// The job is running.
    Running,
    /// The job left the queue without having run.
    Cancelled,
    /// The job has run.
    Ended,
}

impl JobFate {
    /// All fates, in the order of their stored codes.
    pub const ALL: [JobFate; 4] = [
        JobFate::Pending,
        JobFate::Running,
        JobFate::Cancelled,
        JobFate::Ended,
    ];

    /// Returns the stored code.
    pub(super) fn code(self) -> u8 {
        JobFate::ALL
            .iter()
            .position(|fate| *fate == self)
            .map_or(0, |code| code as u8)
    }
}

/// A time or a duration in seconds, or unknown. It takes only eight bytes, because a trace of ten
/// million jobs has forty million of these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OptionalSeconds(i64);

impl OptionalSeconds {
    /// An unknown value.
    pub const UNKNOWN: OptionalSeconds = OptionalSeconds(i64::MIN);

    /// Returns the seconds, if known.
    pub fn get(self) -> Option<i64> {
        (self != OptionalSeconds::UNKNOWN).then_some(self.0)
    }

    /// Returns the representation in a shard.
    pub(super) fn stored(self) -> i64 {
        self.0
    }

    /// Converts the representation in a shard back.
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

/// A job. Times are in seconds of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceJob {
    /// The job id.
    pub id: JobNumber,
    /// The salted hash of the user; 0 if unknown.
    pub user: u64,
    /// Submission time.
    pub submit_s: i64,
    /// The time from which the job could have started, never before its submission: no `--begin`,
    /// dependency or hold delays it any longer.
    pub eligible_s: i64,
    /// Start time, if the job started and the trace has the time.
    pub start_s: OptionalSeconds,
    /// End time, or the time at which the job left the queue without having run.
    pub end_s: OptionalSeconds,
    /// Run time, in seconds, if the job has ended.
    pub run_s: OptionalSeconds,
    /// Time limit, in seconds; unknown if there is none or the trace does not state it.
    pub limit_s: OptionalSeconds,
    /// Number of allocated or requested nodes.
    pub nodes: u32,
    /// The last stage that the job reached.
    pub fate: JobFate,
}

impl TraceJob {
    /// Returns the wait from submission to start, in seconds, if the job started.
    pub fn wait_s(&self) -> Option<i64> {
        match self.fate {
            JobFate::Running | JobFate::Ended => Some(self.start_s.get()? - self.submit_s),
            JobFate::Pending | JobFate::Cancelled => None,
        }
    }
}
