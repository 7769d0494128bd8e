//! The report of a program that ran as a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The report of a program that ran as a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedValues {
    /// Number of reports of the sweep's metric.
    pub reports: usize,
    /// Last value of each name that was reported. A nested name is dotted.
    pub last: BTreeMap<String, f64>,
    /// Exit code; `None` if a signal ended the program.
    pub exit_code: Option<i32>,
    /// True if the sweep ended the program early, because others were better.
    #[serde(default)]
    pub is_terminated: bool,
    /// Number of times that the program exited with a checkpoint and was started again.
    #[serde(default)]
    pub checkpoints: usize,
    /// Last lines of the output of a program that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_tail: Vec<String>,
}
