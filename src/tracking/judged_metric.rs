//! What a sweep on W&B judges its runs by → whether the runs of poolcast have it.

use anyhow::Result;
use serde::Deserialize;

use super::http_sender::SendError;
use super::tracked_trial::metric_names;
use super::wandb_client::{WandbClient, unusable};
use super::wandb_requests::sweep_config;
use poolcast_config::yaml;
use poolcast_base::output::cut;

/// So much of a metric's name is shown.
const MOST_NAME_CHARACTERS: usize = 100;

/// What counts here of the configuration of a sweep.
#[derive(Deserialize)]
struct WandbSweepConfig {
    metric: Option<SweepMetric>,
}

#[derive(Deserialize)]
struct SweepMetric {
    name: Option<String>,
}

/// Refuses the `sweep` of this id where it judges runs by what those of poolcast do not have: its search
/// would learn nothing. A server that does not tell the configuration is believed.
///
/// # Errors
/// Fails with a [`SendError`] in its chain.
pub(super) fn check_judged_metric(client: &mut WandbClient, sweep: &str) -> Result<()> {
    let question = sweep_config(client.place(), sweep);
    let answer = client.ask_if_known(&question)?.unwrap_or_default();
    let written = answer["data"]["project"]["sweep"]["config"].as_str();
    Ok(check_metric_of(sweep, written.unwrap_or_default())?)
}

/// The same for a sweep with this configuration, in YAML.
fn check_metric_of(sweep: &str, written: &str) -> Result<(), SendError> {
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
        "its sweep {} judges runs by `{}`, which those of poolcast do not have: make one whose metric is one of {}",
        cut(sweep, MOST_NAME_CHARACTERS),
        cut(&name, MOST_NAME_CHARACTERS),
        known.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_judges_by_what_runs_do_not_have_is_refused() {
        for written in [
            "method: bayes\nmetric: {name: validation_roc_auc, goal: maximize}\nparameters: {}\n",
            "{\"method\": \"bayes\", \"metric\": {\"name\": \"train_loss\"}}",
            "method: random\n",
            "metric: {goal: minimize}",
            "metric: val_loss",
            "",
            "no: [YAML",
        ] {
            assert!(check_metric_of("swp1", written).is_ok(), "{written}");
        }
        let refused = check_metric_of("swp1", "metric: {name: \"val_loss\\e[31m\"}");
        let refused = refused.expect_err("no run has it").to_string();
        assert!(
            refused.starts_with("W&B: its sweep swp1 judges runs by `val_loss")
                && refused.contains("validation_loss, validation_accuracy")
                && !refused.contains('\u{1b}'),
            "{refused}"
        );
    }
}
