//! Checks hyper-parameters by name, and converts them to the settings of a step or a model.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::pipeline_kind::{PIPELINE_NAMES, PipelineKind};
use poolcast_base::error::hinted;
use poolcast_config::parameters::CLASS_WEIGHT;
use poolcast_config::{HyperParameter, nearest, quote_words};
use poolcast_tables::NumberLoss;

/// Hyper-parameters by name, as a sweep draws them.
pub type HyperParameters = BTreeMap<String, Value>;

/// Returns the pipeline named `name`.
///
/// # Errors
/// Fails if there is no such pipeline.
pub(super) fn find_pipeline(name: &str) -> Result<PipelineKind> {
    PipelineKind::from_name(name).with_context(|| {
        hinted(
            format!("there is no pipeline `{name}`"),
            format!("expected one of {}", quote_words(&PIPELINE_NAMES)),
        )
    })
}

/// Returns the names of the hyper-parameters of `pipeline`.
///
/// # Errors
/// Fails if there is no such pipeline.
pub fn hyper_parameter_names(pipeline: &str) -> Result<Vec<&'static str>> {
    let kind = find_pipeline(pipeline)?;
    Ok(kind
        .hyper_parameters()
        .map(|parameter| parameter.name)
        .collect())
}

/// Returns every hyper-parameter that has an effect, with defaults for missing ones. Two trials
/// that agree in these are the same trial. Parameters that only another choice would use, such as
/// `gamma` with `kernel: linear`, are dropped.
///
/// # Errors
/// Fails if there is no such pipeline, if a name is unknown, or if a value has another type or is
/// out of range.
pub fn effective_hyper_parameters(
    pipeline: &str,
    parameters: &HyperParameters,
) -> Result<HyperParameters> {
    let kind = find_pipeline(pipeline)?;
    let mut effective = HyperParameters::new();

    // Check all given values first, so that a wrong one is an error even if it has no effect.
    for parameter in kind.hyper_parameters() {
        let value = match parameters.get(parameter.name) {
            Some(given) => given.clone(),
            None => parameter_default(parameter),
        };
        // An optional one that is left out has no effect of its own.
        let is_default = value.is_null() || value == parameter_default(parameter);
        if parameter.is_optional && is_default {
            continue;
        }
        let accepted = parameter
            .range
            .accept(&value)
            .ok_or_else(|| out_of_range(pipeline, parameter, &value))?;
        effective.insert(parameter.name.to_owned(), accepted);
    }

    for name in parameters.keys() {
        if !kind.hyper_parameters().any(|known| known.name == name) {
            return Err(unknown_parameter(pipeline, name, kind));
        }
    }

    // Parameters without an effect must not make two trials differ.
    for parameter in kind.hyper_parameters() {
        if let Some(needed) = parameter.needs
            && effective[needed.name] != needed.word
        {
            effective.remove(parameter.name);
        }
    }
    Ok(effective)
}

/// Rejects hyper-parameters that [`effective_hyper_parameters`] rejects.
///
/// # Errors
/// Fails like [`effective_hyper_parameters`].
pub fn check_hyper_parameters(pipeline: &str, parameters: &HyperParameters) -> Result<()> {
    effective_hyper_parameters(pipeline, parameters).map(drop)
}

/// Rejects a pipeline that cannot predict numbers by minimising `loss`, and hyper-parameters for classes
/// alone among `given`.
///
/// # Errors
/// Fails if there is no such pipeline, or if it cannot predict these numbers; the error lists the
/// pipelines that can.
pub fn check_for_numbers<'a>(
    pipeline: &str,
    mut given: impl Iterator<Item = &'a str>,
    loss: NumberLoss,
) -> Result<()> {
    if !find_pipeline(pipeline)?.predicts_numbers(loss) {
        let known = PIPELINE_NAMES.into_iter().zip(PipelineKind::ALL);
        let known = known.filter(|(_, kind)| kind.predicts_numbers(loss));
        let names: Vec<&str> = known.map(|(name, _)| name).collect();
        let what = match loss {
            NumberLoss::Squared => "numbers",
            NumberLoss::Pinball { .. } => "quantiles",
        };
        bail!(hinted(
            format!("the pipeline `{pipeline}` cannot predict {what}"),
            format!("pipelines that predict {what}: {}", quote_words(&names)),
        ));
    }
    ensure!(
        given.all(|name| name != CLASS_WEIGHT),
        hinted(
            format!(
                "`{CLASS_WEIGHT}` of the pipeline `{pipeline}` is for classes, not for numbers"
            ),
            format!("remove `{CLASS_WEIGHT}`"),
        )
    );
    Ok(())
}

/// Reads the settings of a step or a model from effective hyper-parameters. Fields have the names
/// of the parameters. Words are variants of enums, so one cannot be mistaken for another.
pub(super) fn read_settings<S: DeserializeOwned>(parameters: &HyperParameters) -> Result<S> {
    let object = Value::Object(parameters.clone().into_iter().collect());
    serde_json::from_value(object).context("the hyper-parameters are not those of the pipeline")
}

fn parameter_default(parameter: &HyperParameter) -> Value {
    let default = parameter.default.unwrap_or("null");
    serde_json::from_str(default).expect("the defaults are JSON")
}

fn out_of_range(pipeline: &str, parameter: &HyperParameter, value: &Value) -> anyhow::Error {
    let HyperParameter {
        name,
        range,
        default,
        ..
    } = parameter;
    let default = default.unwrap_or("null");
    let each = match value {
        Value::Array(_) => format!("; to try each, write `{name}: {{values: {value}}}`"),
        _ => String::new(),
    };
    hinted(
        format!("`{name}` of pipeline `{pipeline}` cannot be {value}"),
        format!(
            "expected {}; the default is {default}{each}",
            range.describe()
        ),
    )
    .into()
}

fn unknown_parameter(pipeline: &str, name: &str, kind: PipelineKind) -> anyhow::Error {
    let mut known: Vec<&str> = kind.hyper_parameters().map(|known| known.name).collect();
    known.sort_unstable();
    let hint = match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("its hyper-parameters are {}", quote_words(&known)),
    };
    hinted(
        format!("pipeline `{pipeline}` has no hyper-parameter `{name}`"),
        hint,
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parameters(value: Value) -> HyperParameters {
        serde_json::from_value(value).expect("an object")
    }

    fn refusal(pipeline: &str, value: Value) -> String {
        poolcast_base::error::render(
            &check_hyper_parameters(pipeline, &parameters(value)).expect_err("is refused"),
        )
    }

    #[test]
    fn every_default_is_accepted() {
        for (name, kind) in PIPELINE_NAMES.into_iter().zip(PipelineKind::ALL) {
            assert_eq!(PipelineKind::from_name(name), Some(kind));
            check_hyper_parameters(name, &HyperParameters::new()).expect("defaults");
        }
    }

    #[test]
    fn parameters_without_effect_are_dropped() {
        let of = |value| effective_hyper_parameters("svc", &parameters(value)).expect("accepted");
        assert_eq!(
            of(json!({"kernel": "linear", "gamma": 0.5})),
            of(json!({"kernel": "linear"}))
        );
        assert_ne!(
            of(json!({"kernel": "rbf", "gamma": 0.5})),
            of(json!({"kernel": "rbf"}))
        );
        assert_eq!(of(json!({"selection_C": 3})), of(json!({"C": 1.0})));
        for default in [json!({"imputer": "median"}), json!({"class_weight": null})] {
            assert_eq!(of(default), of(json!({})), "left out");
        }
        assert_eq!(of(json!({"imputer": "mean"}))["imputer"], "mean");
        let depth = |depth: Value| {
            effective_hyper_parameters("xgb", &parameters(json!({"max_depth": depth})))
                .expect("accepted")
        };
        assert_eq!(depth(json!(0)), depth(Value::Null), "both are no limit");
        assert_ne!(depth(json!(6)), depth(Value::Null));
    }

    #[test]
    fn errors_state_the_accepted_values() {
        assert_eq!(
            refusal("lasso", json!({"c": 1})),
            "error: pipeline `lasso` has no hyper-parameter `c`\n\nhint: did you mean `C`?\n"
        );
        let text = refusal("xgb", json!({"max_depth": 65}));
        assert!(
            text.contains("`max_depth` of pipeline `xgb` cannot be 65"),
            "{text}"
        );
        assert!(
            text.contains(
                "a whole number from 1 to 64, or null or 0 for no limit; the default is 6"
            ),
            "{text}"
        );
        assert!(
            refusal("svc", json!({"shrinking": 1})).contains("true or false; the default is true")
        );
        for wrong in [
            json!({"C": 0}),
            json!({"C": "1"}),
            json!({"scaler": 1}),
            json!({"l1_ratio": 1.5}),
        ] {
            assert!(refusal("enet", wrong).contains("cannot be"));
        }
        assert!(
            refusal("nn", json!({"hidden_layer_sizes": []}))
                .contains("a list of 1 to 8 whole numbers")
        );
        assert!(refusal("lars", json!({})).contains("there is no pipeline `lars`"));
    }

    #[test]
    fn floats_from_distributions_are_accepted() {
        let sizes = effective_hyper_parameters(
            "nn",
            &parameters(json!({"hidden_layer_sizes": 50.0, "max_iter": 20.0})),
        );
        let sizes = sizes.expect("accepted");
        assert_eq!(
            (&sizes["hidden_layer_sizes"], &sizes["max_iter"]),
            (&json!([50]), &json!(20))
        );
    }
}
