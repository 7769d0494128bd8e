//! Checks that a sweep on W&B optimizes a metric that poolcast's runs have.

use anyhow::Result;
use serde::Deserialize;

use super::client::{WandbClient, unusable};
use super::requests::sweep_config;
use crate::runs::metric_names;
use crate::server::SendError;
use poolcast_base::output::cut;
use poolcast_config::yaml;

/// Maximum length of a metric's name in a message, in characters.
const MAX_NAME_CHARACTERS: usize = 100;

/// The relevant part of the configuration of a W&B sweep.
#[derive(Deserialize)]
struct WandbSweepConfig {
    metric: Option<SweepMetric>,
}

#[derive(Deserialize)]
struct SweepMetric {
    name: Option<String>,
}

/// Rejects the `sweep` of this id if its metric is one that poolcast's runs lack: its search would
/// learn nothing. If the server does not return the configuration, the sweep is accepted.
///
/// # Errors
/// Fails with a [`SendError`] in its chain.
pub(super) fn check_judged_metric(client: &mut WandbClient, sweep: &str) -> Result<()> {
    let question = sweep_config(client.place(), sweep);
    let answer = client.query_if_supported(&question)?.unwrap_or_default();
    let written = answer["data"]["project"]["sweep"]["config"].as_str();
    Ok(check_configured_metric(sweep, written.unwrap_or_default())?)
}

/// Checks a sweep by its configuration, in YAML.
fn check_configured_metric(sweep: &str, written: &str) -> Result<(), SendError> {
    let Ok(config) = yaml::read::<WandbSweepConfig>(written) else {
        return Ok(());
    };
    let Some(name) = config.metric.and_then(|metric| metric.name) else {
        return Ok(());
    };
    let known = metric_names();
    if known.contains(&name) {
        return Ok(());
    }
    Err(unusable(&format!(
        "its sweep {} optimizes `{}`, which poolcast's runs do not have: use a sweep that optimizes one of {}",
        cut(sweep, MAX_NAME_CHARACTERS),
        cut(&name, MAX_NAME_CHARACTERS),
        known.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_with_an_unknown_metric_is_rejected() {
        for written in [
            "method: bayes\nmetric: {name: validation_roc_auc, goal: maximize}\nparameters: {}\n",
            "{\"method\": \"bayes\", \"metric\": {\"name\": \"train_loss\"}}",
            "method: random\n",
            "metric: {goal: minimize}",
            "metric: val_loss",
            "",
            "no: [YAML",
        ] {
            assert!(
                check_configured_metric("swp1", written).is_ok(),
                "{written}"
            );
        }
        let refused = check_configured_metric("swp1", "metric: {name: \"val_loss\\e[31m\"}");
        let refused = refused.expect_err("no run has it").to_string();
        assert!(
            refused.starts_with("W&B: its sweep swp1 optimizes `val_loss")
                && refused.contains("validation_loss, validation_accuracy")
                && !refused.contains('\u{1b}'),
            "{refused}"
        );
    }
}
