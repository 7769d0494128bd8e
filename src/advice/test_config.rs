//! The default settings of advice, for tests.

use std::collections::BTreeMap;

use serde::Deserialize;

use poolcast_config::layers;
use poolcast_holds::config::AdviceConfig;

#[derive(Deserialize)]
struct DefaultConfig {
    advice: AdviceConfig,
}

/// Returns the section `advice` of the default configuration.
pub(crate) fn default_settings() -> AdviceConfig {
    let config = layers::merge(&[], "the configuration", &BTreeMap::new());
    let DefaultConfig { advice } = config.expect("a configuration");
    advice
}
