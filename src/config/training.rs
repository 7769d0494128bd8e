//! The section `training`: the hyper-parameters of a network, and settings of its training.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::parameters::NetworkParameters;
use super::range::check_range;
use super::search_parameters::SearchParameters;
use super::threshold::Threshold;

/// The engine that computes a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fused engine where it can, else candle.
    Auto,
    /// Kernels for an LSTM on a CPU.
    Fused,
    /// The operations of candle, for each architecture and device.
    Candle,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct TrainingConfig {
    pub checkpoint_minutes: f64,
    pub engine: EngineChoice,
    pub time_cuts: usize,
    pub threshold: Threshold,
    pub parameters: SearchParameters<NetworkParameters>,
}

impl TrainingConfig {
    /// Rejects values out of range.
    pub fn check(&self) -> Result<()> {
        check_range(
            "training.checkpoint_minutes",
            self.checkpoint_minutes,
            0.0..=1e6,
        )?;
        check_range("training.time_cuts", self.time_cuts as f64, 1.0..=100.0)?;
        self.threshold.check()?;
        self.parameters.check()
    }
}
