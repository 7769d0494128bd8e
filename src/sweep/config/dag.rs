//! The section `dag`: requirements of HTCondor jobs, and settings for running a sweep with DAGMan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use poolcast_config::check_range;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct DagConfig {
    pub image: Option<String>,
    pub site: Option<PathBuf>,
    pub events: Option<PathBuf>,
    pub parse_in_job: bool,
    pub trials_per_job: Option<usize>,
    pub max_jobs: usize,
    pub per_epoch: bool,
    pub cleanup: bool,
    pub shared_inputs: SharedInputs,
    pub submit: SubmitConfig,
}

impl DagConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_range("dag.max_jobs", self.max_jobs as f64, 1.0..=100_000.0)?;
        let trials_per_job = self.trials_per_job.unwrap_or(1);
        check_range(
            "dag.trials_per_job",
            trials_per_job as f64,
            1.0..=1_000_000.0,
        )
    }
}

/// The location of inputs that many jobs fetch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct SharedInputs {
    pub directory: Option<PathBuf>,
    pub address: Option<String>,
}

/// Submit commands for each step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct SubmitConfig {
    pub parse: SubmitCommands,
    pub tensors: SubmitCommands,
    pub trials: SubmitCommands,
    pub best: SubmitCommands,
    pub evaluate: SubmitCommands,
}

/// Submit commands and their values: `request_memory: 4GB`.
pub type SubmitCommands = BTreeMap<String, SubmitCommand>;

/// The value of a submit command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum SubmitCommand {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl std::fmt::Display for SubmitCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SubmitCommand::Flag(flag) => flag.fmt(f),
            SubmitCommand::Whole(whole) => whole.fmt(f),
            SubmitCommand::Number(number) => number.fmt(f),
            SubmitCommand::Text(text) => text.fmt(f),
        }
    }
}
