//! The section `preprocessing`: the content of samples, their labels, and their splits.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_config::{
    FeatureGroup, HoldCycles, LabelKind, SampleParameters, SearchParameters, SplitClusters,
    SplitMethod, WindowPosition, check_range,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct PreprocessingConfig {
    pub parameters: SearchParameters<SampleParameters>,
    pub window: WindowPosition,
    pub label: LabelKind,
    pub cycles: HoldCycles,
    pub features: Vec<FeatureGroup>,
    #[serde(default)]
    pub outcomes: bool,
    pub split: SplitMethod,
    pub split_clusters: SplitClusters,
    pub fractions: [f64; 3],
    pub ignore_events: Vec<u16>,
    pub exclude_hold_codes: Vec<i32>,
}

impl PreprocessingConfig {
    /// Rejects values out of range, and keys that contradict each other.
    pub fn check(&self) -> Result<()> {
        self.parameters.check()?;
        for fraction in self.fractions {
            check_range("preprocessing.fractions", fraction, 0.0..=1.0)?;
        }
        let sum: f64 = self.fractions.iter().sum();
        ensure!(
            (sum - 1.0).abs() < 1e-9,
            "`preprocessing.fractions` must sum to 1, got {sum}"
        );
        ensure!(
            self.split == SplitMethod::Time || self.split_clusters == SplitClusters::Keep,
            "`preprocessing.split_clusters: separate` requires `split: time`, got `split: {}`",
            self.split
        );
        ensure!(
            !self.features.is_empty(),
            "`preprocessing.features` must name at least one group"
        );
        Ok(())
    }
}
