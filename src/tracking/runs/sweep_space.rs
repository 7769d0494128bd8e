//! The search space of a configuration in W&B's sweep format.

use serde_json::{Map, Value, json};

use poolcast_config::Parameter;
use poolcast_sweep::config::{Config, Method, TrialSource};
use poolcast_sweep::{ParameterNames, parameters_by_kind};

/// Describes the sweep of `config` as a document that W&B can read, because JSON is valid YAML.
/// Early termination is omitted: poolcast does it itself, and W&B would also stop runs.
pub(super) fn sweep_space(config: &Config) -> Value {
    let sweep = &config.wandb.sweep;
    let mut parameters = Map::new();
    let add = |parameters: &mut Map<String, Value>, name: &str, parameter: &Parameter| {
        let written = match parameter {
            Parameter::Constant(value) => json!({"value": value}),
            Parameter::Drawn(distribution) => unconditional(json!(distribution)),
        };
        parameters.entry(name).or_insert(written);
    };

    let source = config.trial_source();
    if source == TrialSource::WaitSamples {
        for (name, parameter) in config.provision.model.all() {
            add(&mut parameters, &name, parameter);
        }
    }
    if source == TrialSource::Logs {
        for (name, parameter) in config.preprocessing.parameters.all() {
            add(&mut parameters, &name, parameter);
        }
    }
    if let Some(command) = &config.command {
        for (name, parameter) in &command.parameters {
            parameters.insert(name.clone(), unconditional(json!(parameter)));
        }
    }
    // A pipeline may have several spaces, but W&B has one: the first definition of a name counts.
    let names = ParameterNames::from_config(config);
    for (kind, name, parameter) in parameters_by_kind(config) {
        add(&mut parameters, &names.name(kind, &name), parameter);
    }
    if !config.pipelines.is_empty() {
        let names: Vec<&String> = config.pipelines.keys().collect();
        parameters.insert("pipeline".to_owned(), json!({"values": names}));
    }

    json!({
        "name": sweep.name,
        "method": method_word(sweep.method),
        "metric": {"name": sweep.metric.title(), "goal": sweep.metric.goal},
        "parameters": parameters,
    })
}

/// Removes the conditions of a parameter and of those that are nested in it: W&B has none.
fn unconditional(mut parameter: Value) -> Value {
    match parameter
        .get_mut("parameters")
        .and_then(Value::as_object_mut)
    {
        Some(nested) => nested
            .values_mut()
            .for_each(|one| *one = unconditional(one.take())),
        None => {
            let keys = parameter.as_object_mut();
            keys.map(|keys| keys.remove("when"));
        }
    }
    parameter
}

/// Returns W&B's name for a search method. W&B has none for Sobol points.
fn method_word(method: Method) -> &'static str {
    match method {
        Method::Grid => "grid",
        Method::Random => "random",
        Method::Sobol => "custom",
        Method::Bayes => "bayes",
    }
}
