//! What to simulate.

use anyhow::Result;
use serde::Serialize;

use super::truth_file::TRUTH;
use poolcast_base::manifest;

/// Grows whenever the same settings make another log.
const LAWS_VERSION: u32 = 2;
/// The milliseconds of a day.
pub(super) const DAY_MS: i64 = 86_400_000;

/// What to simulate.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SimulationSettings {
    /// The root of every random choice.
    pub seed: u64,
    /// Jobs to submit.
    pub jobs: u64,
    /// Days from the first submission to the end of the log.
    pub days: u32,
    /// The first moment, epoch ms.
    pub start_ms: i64,
    /// Rotate once the log has so many bytes.
    pub rotate_bytes: Option<u64>,
}

impl SimulationSettings {
    /// As many days as make 20,000 jobs a day, and at least a week.
    pub fn usual_days(jobs: u64) -> u32 {
        u32::try_from(jobs.div_ceil(20_000))
            .unwrap_or(u32::MAX)
            .max(7)
    }

    /// The digest of everything that a simulation is made from. The version of the pool's laws is
    /// part of it, as other laws draw other lives.
    pub(super) fn key(&self) -> Result<String> {
        manifest::key(&(TRUTH.version, LAWS_VERSION, env!("CARGO_PKG_VERSION"), self))
    }
}
