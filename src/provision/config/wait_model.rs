//! The wait models that `provision.model` describes: one, or those that a sweep tries.

use anyhow::{Result, ensure};
use serde::de::DeserializeOwned;

use super::provision::ProvisionConfig;
use poolcast_base::error::hinted;
use poolcast_config::{Metric, MetricName, WaitModelName, WaitModelParameters, WaitModelTarget};

/// Returns the parameters in config/default.yaml.
pub fn default_wait_model() -> WaitModelParameters {
    let plain = ProvisionConfig::default().model.trial();
    plain.expect("the defaults are plain and sound")
}

impl ProvisionConfig {
    /// Returns the kinds of models to try, in the order in which they are written.
    ///
    /// # Errors
    /// Fails for an unknown kind.
    pub fn tried_kinds(&self) -> Result<Vec<WaitModelName>> {
        self.tried_words("name")
    }

    fn tried_words<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>> {
        let written = self.model.written_values(name).into_iter();
        Ok(written
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()?)
    }

    /// Rejects a `metric` that cannot compare all of the models to try.
    pub fn check_metric(&self, metric: &Metric) -> Result<()> {
        metric.check_wait_metric("wandb.sweep.metric")?;
        let targets: Vec<WaitModelTarget> = self.tried_words("target")?;
        let predicts_waits = !targets.contains(&WaitModelTarget::Reward)
            && !self.tried_kinds()?.contains(&WaitModelName::Dqn);
        ensure!(
            predicts_waits || metric.name != MetricName::HeldBackPinball,
            hinted(
                format!(
                    "`wandb.sweep.metric.name` is {}, which models that predict no wait do not have",
                    metric.name
                ),
                "write `wandb.sweep.metric: {name: held_back_cost, goal: minimize}`, which all models have; or try only `target: wait`, without `dqn`",
            )
        );
        Ok(())
    }
}
