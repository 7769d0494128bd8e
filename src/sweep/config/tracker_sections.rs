//! The sections `wandb` and `mlflow`: the experiment trackers to which runs are sent.

use serde::{Deserialize, Deserializer, Serialize};

use super::sweep::SweepConfig;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct WandbConfig {
    pub enable: bool,
    #[serde(default)]
    pub base_url: Option<String>,
    pub entity: Option<String>,
    pub project: Option<String>,
    pub sweep: SweepConfig,
    #[serde(default, deserialize_with = "id")]
    pub sweep_id: Option<String>,
    #[serde(default, deserialize_with = "id")]
    pub run_id: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct MlflowConfig {
    pub enable: bool,
    pub tracking_uri: Option<String>,
    pub experiment: Option<String>,
}

impl WandbConfig {
    /// Returns W&B's id of the sweep that the runs belong to, if it is known before the first run.
    pub fn known_sweep(&self) -> Option<&str> {
        let given = self.sweep.given().map(|given| given.sweep);
        given.or(self.sweep_id.as_deref())
    }
}

/// Reads an id of W&B; `None`, Python's word for no value, means no id.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|id| id != "None"))
}
