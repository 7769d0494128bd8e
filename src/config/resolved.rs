//! The resolved configuration, with every key and its value, as a file beside an artefact.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::yaml;

/// File name of the resolved configuration beside an artefact.
pub const FILE: &str = "config.yaml";

/// The text of a resolved configuration.
#[derive(Debug, Clone)]
pub struct ResolvedConfig(String);

impl ResolvedConfig {
    /// Renders `config`, which has every key.
    pub fn new(config: &impl Serialize) -> Result<ResolvedConfig> {
        Ok(ResolvedConfig(yaml::write(config)?))
    }

    /// Writes the configuration beside the artefact in `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        poolcast_base::files::write_atomic(&dir.join(FILE), self.0.as_bytes())
    }
}
