//! The section `training`: the hyper-parameters of a network, and how it is trained.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::parameters::NetworkParameters;
use super::range::check_range;
use super::search_parameters::SearchParameters;
use super::threshold::Threshold;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct TrainingConfig {
    pub checkpoint_minutes: f64,
    pub time_cuts: usize,
    pub threshold: Threshold,
    pub parameters: SearchParameters<NetworkParameters>,
}

impl TrainingConfig {
    pub(super) fn check(&self) -> Result<()> {
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
