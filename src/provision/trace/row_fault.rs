//! Faults of rejected rows, and their counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The reason why a row of a trace was rejected.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RowFault {
    #[error("wrong number of fields")]
    FieldCount,
    #[error("file ends within the row")]
    CutShort,
    #[error("not UTF-8")]
    NotText,
    #[error("invalid job id")]
    JobId,
    #[error("array of more than 100,000 elements")]
    LongArray,
    #[error("arrays of more than 500,000 elements in one file")]
    ManyElements,
    #[error("no submit time")]
    Submit,
    #[error("invalid eligible time")]
    Eligible,
    #[error("invalid start time")]
    Start,
    #[error("invalid end time")]
    End,
    #[error("invalid run time")]
    RunTime,
    #[error("invalid time limit")]
    TimeLimit,
    #[error("number of nodes invalid or 0")]
    Nodes,
    #[error("start before submission")]
    StartBeforeSubmit,
    #[error("end before start or submission")]
    EndBeforeStart,
    #[error("neither a run time nor a time at which it left the queue")]
    NoOutcome,
}

/// Rows that were rejected for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRows {
    /// The reason.
    pub fault: RowFault,
    /// Number of rows.
    pub rows: u64,
    /// The line of the first such row, counted from 1. For JSON, the position of the job in the
    /// list.
    pub first_line: u64,
}

/// Counts of rejected rows by reason, each with its first line.
#[derive(Debug, Default)]
pub(super) struct RowFaults {
    by_fault: BTreeMap<RowFault, (u64, u64)>,
}

impl RowFaults {
    /// Counts the row at `line`.
    pub(super) fn add(&mut self, fault: RowFault, line: u64) {
        let (rows, _) = self.by_fault.entry(fault).or_insert((0, line));
        *rows += 1;
    }

    /// Returns the counts.
    pub(super) fn counted(self) -> Vec<RejectedRows> {
        let mut all = Vec::new();
        for (fault, (rows, first_line)) in self.by_fault {
            all.push(RejectedRows {
                fault,
                rows,
                first_line,
            });
        }
        all
    }
}
