//! The data of one run that trackers receive. It has no paths, hosts, owners, job ids or log texts.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use poolcast_base::manifest;

/// A training or a fit, as sent to trackers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackedRun {
    /// 16 hexadecimal digits, derived from the sweep's name, the trial number and the key of the
    /// run. Every sender of a run, on any machine, gets the same id.
    pub run_id: String,
    /// Display name: `trial-0007`, or the model's name for a single run.
    pub name: String,
    /// The sweep's name; `None` for a single run.
    pub group: Option<String>,
    /// The model or pipeline that is fitted, and the split of tables that it learns from.
    pub tags: Vec<String>,
    /// Hyper-parameters and other settings that determine the result.
    pub config: Map<String, Value>,
    /// Start time, in seconds since 1970 in UTC.
    pub began_s: f64,
    /// Measurements per epoch, in ascending steps.
    pub epochs: Vec<TrackedEpoch>,
    /// Results by name: final ones, or those so far.
    pub summary: Map<String, Value>,
    /// State or outcome of the run.
    pub outcome: TrackedOutcome,
}

impl TrackedRun {
    /// The model or pipeline, or `sweep` for a sweep.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.tags.first().map(String::as_str)
    }

    /// End of the last epoch, in seconds since 1970 in UTC; the start time if there is no epoch.
    pub fn ended_s(&self) -> f64 {
        self.epochs
            .last()
            .map_or(self.began_s, |epoch| epoch.ended_s)
    }
}

/// Measurements at one step of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackedEpoch {
    /// The epoch, counted from 1; for a fit, 1.
    pub step: u64,
    /// End time, in seconds since 1970 in UTC.
    pub ended_s: f64,
    /// Measured values by name. A value may be NaN or infinite.
    pub values: BTreeMap<String, f64>,
    /// Resource usage by name; empty if it is not known.
    pub system: BTreeMap<String, f64>,
}

/// State or outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrackedOutcome {
    /// The run has not ended.
    Running,
    /// The run has a model and did all its work.
    Finished,
    /// The run has a model and ended early, because it no longer improved.
    StoppedEarly,
    /// The run has a model and was ended early, because other trials did better.
    TerminatedEarly,
    /// The run has a model and ended early because a user asked for it on its page.
    EndedOnRequest,
    /// The run has no model.
    Failed,
    /// Too many workers died while they ran this trial.
    Quarantined,
}

impl TrackedRun {
    /// The trial number, counted from 1; `None` for a single run.
    pub fn trial(&self) -> Option<usize> {
        let named = self.config.get("trial")?.as_u64()?;
        usize::try_from(named).ok()
    }
}

impl TrackedOutcome {
    /// The exit code that trackers show; `None` for a run that has not ended. A quarantined run has
    /// the exit code of a killed process.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            TrackedOutcome::Running => None,
            TrackedOutcome::Finished
            | TrackedOutcome::StoppedEarly
            | TrackedOutcome::TerminatedEarly
            | TrackedOutcome::EndedOnRequest => Some(0),
            TrackedOutcome::Failed => Some(1),
            TrackedOutcome::Quarantined => Some(137),
        }
    }
}

/// Returns the id of the run `key` of the sweep or training `name`. `trial` is its trial number, if
/// it is a trial.
pub(super) fn run_id(name: &str, trial: Option<usize>, key: &str) -> String {
    let identity = format!("{name}\n{}\n{key}", trial.unwrap_or(0));
    let mut digest = manifest::sha256(identity.as_bytes());
    digest.truncate(16);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_depend_on_sweep_trial_and_key() {
        let ids = [
            run_id("sweep", Some(1), "key"),
            run_id("sweep", Some(2), "key"),
            run_id("sweep", None, "key"),
            run_id("other", Some(1), "key"),
            run_id("sweep", Some(1), "other"),
        ];
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert!(ids.iter().all(|id| id.len() == 16));
        assert_eq!(run_id("sweep", Some(1), "key"), ids[0]);
    }
}
