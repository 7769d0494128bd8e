//! Settings of a simulation.

use anyhow::Result;
use serde::Serialize;

use super::truth_file::TRUTH;
use poolcast_base::manifest;

/// Version of the simulation's rules. Increase it whenever the same settings give another log.
const RULES_VERSION: u32 = 3;

/// Settings of a simulation.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SimulationSettings {
    /// Seed of all random draws.
    pub seed: u64,
    /// Number of jobs to submit.
    pub jobs: u64,
    /// Days from the start to the end of the log.
    pub days: u32,
    /// Start of the log, epoch ms.
    pub start_ms: i64,
    /// Log size from which the log is rotated, in bytes; `None` for no rotation.
    pub rotate_bytes: Option<u64>,
}

impl SimulationSettings {
    /// Returns the default number of days: one day per 20,000 jobs, but at least seven.
    pub fn usual_days(jobs: u64) -> u32 {
        u32::try_from(jobs.div_ceil(20_000))
            .unwrap_or(u32::MAX)
            .max(7)
    }

    /// Returns a digest of all inputs of a simulation. It includes the version of the rules,
    /// because other rules give another log.
    pub(super) fn key(&self) -> Result<String> {
        manifest::key(&(
            TRUTH.version,
            RULES_VERSION,
            env!("CARGO_PKG_VERSION"),
            self,
        ))
    }
}
