//! Configurations for tests: the defaults with a few changes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::config::{AdviceConfig, TrainingConfig};
use poolcast_config::{ResolvedConfig, TrainingKeys, layers};
use poolcast_tensors::{PreprocessingConfig, TensorSettings};

/// The keys of the configuration that determine samples and trainings.
#[derive(Deserialize)]
pub(crate) struct TestConfig {
    #[serde(flatten)]
    pub(crate) keys: TrainingKeys,
    pub(crate) preprocessing: PreprocessingConfig,
    pub(crate) training: TrainingConfig,
    pub(crate) advice: AdviceConfig,
}

impl TestConfig {
    /// Reads the defaults, with `changes` (paths of keys and their values).
    pub(crate) fn load(changes: &[(&str, Value)]) -> TestConfig {
        let flags = BTreeMap::from_iter(changes.iter().cloned());
        layers::merge(&[], "the configuration", &flags).expect("a configuration")
    }

    /// Returns the settings of answers that follow from a log alone.
    pub(crate) fn without_prior() -> AdviceConfig {
        AdviceConfig {
            prior: false,
            ..TestConfig::load(&[]).advice
        }
    }

    /// Returns the settings of its samples.
    pub(crate) fn tensor_settings(&self) -> TensorSettings {
        TensorSettings::new(&self.preprocessing, self.keys.seed).expect("settings")
    }

    /// A text for the file beside a run. The tests only need that it is there.
    pub(crate) fn resolved(&self) -> ResolvedConfig {
        ResolvedConfig::new(&self.training).expect("rendered")
    }
}
