//! The section `training`: the hyper-parameters of a network, and settings of its training.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use poolcast_config::{NetworkParameters, SearchParameters, Threshold, check_range};
use poolcast_models::{Architecture, EngineChoice, find_architecture};

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
    /// Returns true if a model that may be trained reads outcome tokens.
    pub fn takes_tokens(&self) -> bool {
        let names = self.parameters.written_values("model");
        let names = names.iter().filter_map(|name| name.as_str());
        let mut models = names.filter_map(|name| find_architecture(name).ok());
        models.any(Architecture::takes_tokens)
    }

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
