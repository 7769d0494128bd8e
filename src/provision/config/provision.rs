//! The section `provision`: the simulated Slurm cluster, its scheduler, and the chained jobs on it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_config::{DEFAULT, SearchParameters, WaitModelParameters, check_range, yaml};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct ProvisionConfig {
    pub scheduler: SchedulerKind,
    pub nodes: Option<NodeCount>,
    pub max_jobs_per_user: Option<u32>,
    pub bf_interval: u32,
    pub bf_resolution: u32,
    pub bf_window: u32,
    pub bf_max_job_test: usize,
    /// Missing in configurations that were written before this key existed.
    #[serde(default)]
    pub turnaround: u32,
    pub priority_weight_age: u32,
    pub priority_weight_job_size: u32,
    pub priority_max_age: u32,
    pub start_time: Option<String>,
    pub end_time: Option<String>,
    pub interval: u32,
    pub workload_len: u32,
    pub warmup_len: u32,
    #[serde(default)]
    pub cold_start: bool,
    pub num_probe: u32,
    pub job_nodes: u32,
    pub job_limit: u32,
    pub job_length: Option<u32>,
    pub decision_interval: u32,
    pub cost_ratio: CostRatio,
    pub draws: u32,
    pub run_history: usize,
    #[serde(default)]
    pub samples: Option<PathBuf>,
    #[serde(default = "default_model")]
    pub model: SearchParameters<WaitModelParameters>,
}

fn default_model() -> SearchParameters<WaitModelParameters> {
    ProvisionConfig::default().model
}

/// Cost of an hour of interruption, in hours of overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum CostRatio {
    Number(f64),
    /// Several ratios, to be compared.
    List(Vec<f64>),
}

impl CostRatio {
    /// All ratios.
    pub fn list(&self) -> Vec<f64> {
        match self {
            CostRatio::Number(ratio) => vec![*ratio],
            CostRatio::List(ratios) => ratios.clone(),
        }
    }
}

/// The simulated scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SchedulerKind {
    /// Slurm, with the settings of a site
    Slurm,
    /// The simulator that the project Mirage published, with its bugs
    Published,
}

/// Number of nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NodeCount {
    Number(u32),
    /// Number of nodes from each date, or date and time, on, in local time.
    Dated(BTreeMap<String, u32>),
}

impl Default for ProvisionConfig {
    /// The defaults in config/default.yaml, for configurations that were written before these keys
    /// existed.
    fn default() -> ProvisionConfig {
        #[derive(Deserialize)]
        struct ProvisionKeys {
            provision: ProvisionConfig,
        }
        let default: Result<ProvisionKeys> = yaml::read(DEFAULT);
        default.expect("the defaults are sound").provision
    }
}

impl ProvisionConfig {
    /// Rejects values out of range.
    pub fn check(&self) -> Result<()> {
        let most = f64::from(u32::MAX >> 8);
        for (name, value) in [
            ("bf_interval", self.bf_interval),
            ("bf_resolution", self.bf_resolution),
            ("bf_window", self.bf_window),
            ("priority_max_age", self.priority_max_age),
        ] {
            check_range(&format!("provision.{name}"), f64::from(value), 1.0..=most)?;
        }
        let tests = self.bf_max_job_test as f64;
        check_range("provision.bf_max_job_test", tests, 1.0..=1e9)?;
        let turnaround = f64::from(self.turnaround);
        check_range("provision.turnaround", turnaround, 0.0..=86_400.0)?;
        self.check_windows()?;

        match &self.nodes {
            None => Ok(()),
            Some(NodeCount::Number(nodes)) => {
                check_range("provision.nodes", f64::from(*nodes), 1.0..=most)
            }
            Some(NodeCount::Dated(steps)) => check_steps(steps, most),
        }
    }

    /// Checks the keys of `provision validate`.
    fn check_windows(&self) -> Result<()> {
        let length = self.job_length.unwrap_or(self.job_limit);
        for (name, value, range) in [
            ("interval", self.interval, 1.0..=8760.0),
            ("workload_len", self.workload_len, 1.0..=365.0),
            ("warmup_len", self.warmup_len, 0.0..=365.0),
            ("num_probe", self.num_probe, 2.0..=1000.0),
            ("job_nodes", self.job_nodes, 1.0..=1e6),
            ("job_limit", self.job_limit, 1.0..=1e6),
            ("job_length", length, 1.0..=f64::from(self.job_limit)),
            ("decision_interval", self.decision_interval, 1.0..=1e6),
            ("draws", self.draws, 1.0..=1e5),
        ] {
            check_range(&format!("provision.{name}"), f64::from(value), range)?;
        }
        check_range("provision.run_history", self.run_history as f64, 1.0..=1e9)?;
        ensure!(
            self.warmup_len < self.workload_len,
            hinted(
                format!(
                    "`provision.warmup_len` must be less than `provision.workload_len`, got {} and {}",
                    self.warmup_len, self.workload_len
                ),
                "the chained job enters the queue after the warm-up, while other jobs are still submitted"
            )
        );

        self.model.check_examples()?;
        let ratios = self.cost_ratio.list();
        ensure!(!ratios.is_empty(), "`provision.cost_ratio` is empty");
        for ratio in ratios {
            check_range("provision.cost_ratio", ratio, 0.01..=100.0)?;
        }
        Ok(())
    }
}

fn check_steps(steps: &BTreeMap<String, u32>, most: f64) -> Result<()> {
    ensure!(
        !steps.is_empty(),
        hinted(
            "`provision.nodes` is empty",
            "write a number, or dates such as `{2022-10-01: 32, 2022-11-10: 74}`"
        )
    );
    for (date, nodes) in steps {
        let is_date = date.parse::<jiff::civil::DateTime>().is_ok();
        ensure!(
            is_date,
            hinted(
                format!("`provision.nodes` has `{date}`, which is not a date"),
                "write `2022-11-10`, or `2022-11-10T12:00`"
            )
        );
        check_range("provision.nodes", f64::from(*nodes), 0.0..=most)?;
    }
    Ok(())
}
