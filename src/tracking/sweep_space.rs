//! A configuration → its search space in W&B's own words.

use serde_json::{Map, Value, json};

use poolcast_config::{Config, Method, Parameter, TrialSource};

/// The sweep of `config` as W&B reads it: JSON is YAML, too. What ends trials early is left out, as
/// poolcast does that itself, and W&B would tell runs to stop, too.
pub(super) fn sweep_space(config: &Config) -> Value {
    let sweep = &config.wandb.sweep;
    let mut parameters = Map::new();
    let mut add = |name: &str, parameter: &Parameter| {
        let written = match parameter {
            Parameter::Constant(value) => json!({"value": value}),
            Parameter::Drawn(distribution) => json!(distribution),
        };
        parameters.entry(name).or_insert(written);
    };

    let source = config.trial_source();
    if source == TrialSource::WaitSamples {
        for (name, parameter) in config.provision.model.all() {
            add(&name, parameter);
        }
    }
    if source == TrialSource::Logs {
        for (name, parameter) in config.preprocessing.parameters.all() {
            add(name, parameter);
        }
    }
    if source != TrialSource::WaitSamples && config.runs > 0 {
        for (name, parameter) in config.training.parameters.all() {
            add(name, parameter);
        }
    }
    // A pipeline may have several spaces, and W&B knows one: each name counts as it comes first.
    for spaces in config.pipelines.values() {
        for space in spaces.all() {
            for (name, parameter) in &space.parameters {
                add(name, parameter);
            }
        }
    }
    if !config.pipelines.is_empty() {
        let names: Vec<&String> = config.pipelines.keys().collect();
        parameters.insert("pipeline".to_owned(), json!({"values": names}));
    }

    json!({
        "name": sweep.name,
        "method": method_word(sweep.method),
        "metric": {"name": sweep.metric.name, "goal": sweep.metric.goal},
        "parameters": parameters,
    })
}

/// W&B's word for a way of drawing. It has none for Sobol points.
fn method_word(method: Method) -> &'static str {
    match method {
        Method::Grid => "grid",
        Method::Random => "random",
        Method::Sobol => "custom",
        Method::Bayes => "bayes",
    }
}
