//! What trackers are told of one run: no paths, no hosts, no owners, no numbers of jobs and no words
//! of logs are among it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use poolcast_base::manifest;

/// A training or a fit, as trackers are told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackedRun {
    /// 16 hexadecimal digits, that follow from the sweep's name, the number of the trial and the key
    /// of the run: whoever sends a run, from wherever, means the same one.
    pub run_id: String,
    /// What people read: `trial-0007`, or the name of the model of a single run.
    pub name: String,
    /// The sweep's name, if it is a trial.
    pub group: Option<String>,
    /// What it fits, and the split of tables that it learns from.
    pub tags: Vec<String>,
    /// Its hyper-parameters, and what else decides what comes of it.
    pub config: Map<String, Value>,
    /// When it began, in seconds since 1970 in UTC.
    pub began_s: f64,
    /// What was measured, in ascending steps.
    pub epochs: Vec<TrackedEpoch>,
    /// What came of it, or has come of it so far.
    pub summary: Map<String, Value>,
    /// How it ended.
    pub outcome: TrackedOutcome,
}

impl TrackedRun {
    /// When its last epoch ended, in seconds since 1970 in UTC.
    pub fn ended_s(&self) -> f64 {
        self.epochs
            .last()
            .map_or(self.began_s, |epoch| epoch.ended_s)
    }
}

/// What was measured at one step of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackedEpoch {
    /// The epoch, counted from 1; of a fit, 1.
    pub step: u64,
    /// When it ended, in seconds since 1970 in UTC.
    pub ended_s: f64,
    /// What was measured, by name. A value may be NaN or infinite.
    pub values: BTreeMap<String, f64>,
    /// What it cost, by name; empty where that is not known.
    pub system: BTreeMap<String, f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrackedOutcome {
    /// It has not ended.
    Running,
    /// With a model, after all that it was to do.
    Finished,
    /// With a model, before that: it no longer improved, or others did better.
    StoppedEarly,
    /// With a model, before that: somebody has asked for it on its page.
    EndedOnRequest,
    /// Without a model.
    Failed,
    /// Too many workers died of it.
    Quarantined,
}

impl TrackedRun {
    /// The number of the trial, counted from 1, if it is one.
    pub fn trial(&self) -> Option<usize> {
        let named = self.config.get("trial")?.as_u64()?;
        usize::try_from(named).ok()
    }
}

impl TrackedOutcome {
    /// The exit code that trackers show; `None` for what has not ended. A quarantined run has that of
    /// a process that was killed.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            TrackedOutcome::Running => None,
            TrackedOutcome::Finished
            | TrackedOutcome::StoppedEarly
            | TrackedOutcome::EndedOnRequest => Some(0),
            TrackedOutcome::Failed => Some(1),
            TrackedOutcome::Quarantined => Some(137),
        }
    }
}

/// The id of the run `key` of a sweep or a training called `name`, which is this `trial` if it is one.
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
    fn runs_differ_by_sweep_by_trial_and_by_key() {
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
