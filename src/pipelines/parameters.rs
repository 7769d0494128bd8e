//! Hyper-parameters by name, as a sweep draws them → values that are known, of the right kind and in range.
//!
//! Names, meanings and defaults are scikit-learn's and xgboost's.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::config::nearest;
use crate::error::hinted;

/// Hyper-parameters by name, as a sweep draws them.
pub type HyperParameters = BTreeMap<String, Value>;

/// What a hyper-parameter can be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A number, ends included.
    Real(f64, f64),
    /// A whole number, ends included.
    Whole(u32, u32),
    /// A whole number, or null for no limit; 0, where it is allowed, is null.
    Limit(u32, u32),
    /// Whether.
    Flag,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// One of a few words, or a number.
    WordOr(&'static [&'static str], f64, f64),
    /// A list of whole numbers, or one number for a list of one.
    Sizes(u32, u32),
}

/// One hyper-parameter.
#[derive(Debug, Clone, Copy)]
struct Parameter {
    name: &'static str,
    kind: Kind,
    /// In JSON.
    default: &'static str,
    /// The choice without which it has no effect.
    when: Option<(&'static str, &'static str)>,
}

impl Parameter {
    const fn new(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
        Parameter {
            name,
            kind,
            default,
            when: None,
        }
    }

    const fn when(mut self, name: &'static str, word: &'static str) -> Parameter {
        self.when = Some((name, word));
        self
    }
}

/// Of every pipeline.
const SELECTION: &[Parameter] = &[
    Parameter::new(
        "selection",
        Kind::Word(&["none", "threshold", "lasso", "forest", "svd"]),
        "\"none\"",
    ),
    Parameter::new("selection_threshold", Kind::Real(0.0, 1e12), "0")
        .when("selection", "threshold"),
    Parameter::new("selection_mode", Kind::Word(&["hard", "soft"]), "\"hard\"")
        .when("selection", "threshold"),
    Parameter::new("selection_C", Kind::Real(1e-6, 1e6), "1").when("selection", "lasso"),
    Parameter::new("selection_min_coefficient", Kind::Real(0.0, 1e6), "1e-5")
        .when("selection", "lasso"),
    Parameter::new("selection_n_estimators", Kind::Whole(1, 10_000), "100")
        .when("selection", "forest"),
    Parameter::new("selection_min_importance", Kind::Real(0.0, 1.0), "1e-3")
        .when("selection", "forest"),
    Parameter::new("selection_n_components", Kind::Whole(1, 10_000), "2").when("selection", "svd"),
];

/// Of every pipeline but those of trees, which ask only for the order of values.
const SCALER: Parameter = Parameter::new(
    "scaler",
    Kind::Word(&["none", "standard", "minmax"]),
    "\"standard\"",
);
const C: Parameter = Parameter::new("C", Kind::Real(1e-6, 1e6), "1");

const LASSO: &[Parameter] = &[SCALER, C];
const RIDGE: &[Parameter] = &[SCALER, C];
const ENET: &[Parameter] = &[
    SCALER,
    C,
    Parameter::new("l1_ratio", Kind::Real(0.0, 1.0), "0.5"),
];
const SVC: &[Parameter] = &[
    SCALER,
    C,
    Parameter::new("kernel", Kind::Word(&["linear", "rbf"]), "\"rbf\""),
    Parameter::new("gamma", Kind::WordOr(&["scale"], 1e-9, 1e6), "\"scale\"").when("kernel", "rbf"),
    Parameter::new("shrinking", Kind::Flag, "true"),
];
const XGB: &[Parameter] = &[
    Parameter::new("n_estimators", Kind::Whole(1, 100_000), "100"),
    Parameter::new("max_depth", Kind::Limit(0, 64), "6"),
    Parameter::new("learning_rate", Kind::Real(1e-6, 1.0), "0.3"),
    Parameter::new("reg_lambda", Kind::Real(0.0, 1e6), "1"),
    Parameter::new("reg_alpha", Kind::Real(0.0, 1e6), "0"),
    Parameter::new("gamma", Kind::Real(0.0, 1e6), "0"),
    Parameter::new("min_child_weight", Kind::Real(0.0, 1e6), "1"),
    Parameter::new("subsample", Kind::Real(0.01, 1.0), "1"),
    Parameter::new("colsample_bytree", Kind::Real(0.01, 1.0), "1"),
];
const RF: &[Parameter] = &[
    Parameter::new("n_estimators", Kind::Whole(1, 100_000), "100"),
    Parameter::new("max_depth", Kind::Limit(1, 1000), "null"),
    Parameter::new("min_samples_leaf", Kind::Whole(1, 1_000_000), "1"),
    Parameter::new(
        "max_features",
        Kind::WordOr(&["sqrt"], 0.001, 1.0),
        "\"sqrt\"",
    ),
];
const NN: &[Parameter] = &[
    SCALER,
    Parameter::new("hidden_layer_sizes", Kind::Sizes(1, 10_000), "[100]"),
    Parameter::new(
        "activation",
        Kind::Word(&["relu", "tanh", "logistic"]),
        "\"relu\"",
    ),
    Parameter::new("alpha", Kind::Real(0.0, 1e6), "1e-4"),
    Parameter::new("solver", Kind::Word(&["adam", "sgd"]), "\"adam\""),
    Parameter::new(
        "learning_rate",
        Kind::Word(&["constant", "invscaling", "adaptive"]),
        "\"constant\"",
    ),
    Parameter::new("learning_rate_init", Kind::Real(1e-7, 10.0), "1e-3"),
    Parameter::new("batch_size", Kind::Whole(1, 1_000_000), "200"),
    Parameter::new("max_iter", Kind::Whole(1, 100_000), "200"),
];

/// The pipelines and the hyper-parameters of each, beside those of [`SELECTION`].
const TABLE: [(&str, &[Parameter]); 7] = [
    ("lasso", LASSO),
    ("ridge", RIDGE),
    ("enet", ENET),
    ("svc", SVC),
    ("xgb", XGB),
    ("rf", RF),
    ("nn", NN),
];

/// The names of the pipelines.
pub const PIPELINE_NAMES: [&str; 7] = ["lasso", "ridge", "enet", "svc", "xgb", "rf", "nn"];

fn parameters_of(pipeline: &str) -> Result<impl Iterator<Item = &'static Parameter>> {
    let own = TABLE
        .iter()
        .find(|(name, _)| *name == pipeline)
        .map(|(_, own)| own);
    let own = own.with_context(|| {
        hinted(
            format!("there is no pipeline `{pipeline}`"),
            format!("a pipeline is one of {}", words(&PIPELINE_NAMES)),
        )
    })?;
    Ok(own.iter().chain(SELECTION))
}

/// The names of the hyper-parameters of `pipeline`.
///
/// # Errors
/// Fails when there is no such pipeline.
pub fn hyper_parameter_names(pipeline: &str) -> Result<Vec<&'static str>> {
    Ok(parameters_of(pipeline)?
        .map(|parameter| parameter.name)
        .collect())
}

/// Every hyper-parameter that has an effect, those that were not given with their defaults: where two trials agree in
/// these, they are one. What only another choice would use, such as `gamma` under `kernel: linear`, is left out.
///
/// # Errors
/// Fails when there is no such pipeline, and on a name that is not known, a value of another kind or out of range.
pub fn effective_hyper_parameters(
    pipeline: &str,
    parameters: &HyperParameters,
) -> Result<HyperParameters> {
    let mut effective = HyperParameters::new();
    for parameter in parameters_of(pipeline)? {
        let default = || serde_json::from_str(parameter.default).expect("the defaults are JSON");
        let value = parameters
            .get(parameter.name)
            .cloned()
            .unwrap_or_else(default);
        let value = parameter
            .kind
            .accept(&value)
            .ok_or_else(|| wrong(pipeline, parameter, &value))?;
        effective.insert(parameter.name.to_owned(), value);
    }
    let unknown = parameters
        .keys()
        .find(|name| !effective.contains_key(*name));
    unknown.map_or(Ok(()), |name| {
        Err(not_known(pipeline, name, effective.keys()))
    })?;
    for parameter in parameters_of(pipeline)? {
        if parameter
            .when
            .is_some_and(|(choice, word)| effective[choice] != word)
        {
            effective.remove(parameter.name);
        }
    }
    Ok(effective)
}

/// Refuses hyper-parameters that [`effective_hyper_parameters`] refuses.
///
/// # Errors
/// As [`effective_hyper_parameters`].
pub fn check_hyper_parameters(pipeline: &str, parameters: &HyperParameters) -> Result<()> {
    effective_hyper_parameters(pipeline, parameters).map(drop)
}

fn wrong(pipeline: &str, parameter: &Parameter, value: &Value) -> anyhow::Error {
    let message = format!(
        "`{}` of pipeline `{pipeline}` cannot be {value}",
        parameter.name
    );
    hinted(
        message,
        format!(
            "it is {}; the default is {}",
            parameter.kind.words(),
            parameter.default
        ),
    )
    .into()
}

fn not_known<'a>(
    pipeline: &str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
) -> anyhow::Error {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("the nearest that it has is `{nearest}`"),
        None => format!("it has {}", words(&known)),
    };
    hinted(
        format!("pipeline `{pipeline}` has no hyper-parameter `{name}`"),
        hint,
    )
    .into()
}

/// Words for a message.
fn words(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Kind {
    /// The value, whole numbers as such: a distribution may give 100 as 100.0.
    fn accept(self, value: &Value) -> Option<Value> {
        let real = |least, most| value.as_f64().filter(|real| (least..=most).contains(real));
        let known = |known: &[&str]| {
            value
                .as_str()
                .is_some_and(|word| known.contains(&word))
                .then(|| value.clone())
        };
        match self {
            Kind::Real(least, most) => real(least, most).map(Value::from),
            Kind::Whole(least, most) => whole(value, least, most),
            Kind::Limit(least, most) => {
                let is_none = value.is_null() || least == 0 && value.as_f64() == Some(0.0);
                is_none
                    .then_some(Value::Null)
                    .or_else(|| whole(value, least, most))
            }
            Kind::Flag => value.is_boolean().then(|| value.clone()),
            Kind::Word(choices) => known(choices),
            Kind::WordOr(choices, least, most) => {
                known(choices).or_else(|| real(least, most).map(Value::from))
            }
            Kind::Sizes(least, most) => {
                let list = value
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![value.clone()]);
                let sizes: Option<Vec<Value>> =
                    list.iter().map(|size| whole(size, least, most)).collect();
                sizes
                    .filter(|sizes| (1..=8).contains(&sizes.len()))
                    .map(Value::Array)
            }
        }
    }

    /// For a message.
    fn words(self) -> String {
        match self {
            Kind::Real(least, most) => format!("a number from {least} to {most}"),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Limit(0, most) => {
                format!("a whole number from 1 to {most}, or null or 0 for no limit")
            }
            Kind::Limit(least, most) => {
                format!("a whole number from {least} to {most}, or null for no limit")
            }
            Kind::Flag => "true or false".to_owned(),
            Kind::Word(choices) => format!("one of {}", words(choices)),
            Kind::WordOr(choices, least, most) => {
                format!("{} or a number from {least} to {most}", words(choices))
            }
            Kind::Sizes(least, most) => {
                format!("a list of 1 to 8 whole numbers from {least} to {most}")
            }
        }
    }
}

fn whole(value: &Value, least: u32, most: u32) -> Option<Value> {
    let real = value.as_f64().filter(|real| real.fract() == 0.0)?;
    (f64::from(least)..=f64::from(most))
        .contains(&real)
        .then(|| Value::from(real as u64))
}

/// What [`effective_hyper_parameters`] gave, by the type it was found to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a>(pub(super) &'a HyperParameters);

impl<'a> Settings<'a> {
    /// A number; none for a word.
    pub(super) fn number(self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    /// A number.
    pub(super) fn real(self, name: &str) -> Result<f64> {
        self.number(name)
            .with_context(|| format!("`{name}` is not a number"))
    }

    /// A whole number.
    pub(super) fn whole(self, name: &str) -> Result<usize> {
        let real = self.real(name)?;
        ensure!(
            real.fract() == 0.0 && real >= 0.0,
            "`{name}` is not a whole number"
        );
        Ok(real as usize)
    }

    /// A word.
    pub(super) fn word(self, name: &str) -> Result<&'a str> {
        self.0
            .get(name)
            .and_then(Value::as_str)
            .with_context(|| format!("`{name}` is not a word"))
    }

    /// Whether.
    pub(super) fn flag(self, name: &str) -> Result<bool> {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .with_context(|| format!("`{name}` is neither true nor false"))
    }

    /// A list of whole numbers.
    pub(super) fn sizes(self, name: &str) -> Result<Vec<usize>> {
        let list = self
            .0
            .get(name)
            .and_then(Value::as_array)
            .with_context(|| format!("`{name}` is not a list"))?;
        Ok(list
            .iter()
            .filter_map(Value::as_u64)
            .map(|size| size as usize)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parameters(value: Value) -> HyperParameters {
        serde_json::from_value(value).expect("an object")
    }

    fn refusal(pipeline: &str, value: Value) -> String {
        crate::error::render(
            &check_hyper_parameters(pipeline, &parameters(value)).expect_err("is refused"),
        )
    }

    #[test]
    fn every_default_is_accepted() {
        for (place, (pipeline, _)) in TABLE.iter().enumerate() {
            assert_eq!(PIPELINE_NAMES[place], *pipeline);
            check_hyper_parameters(pipeline, &HyperParameters::new()).expect("defaults");
        }
    }

    #[test]
    fn what_has_no_effect_is_no_difference() {
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
        let depth = |depth: Value| {
            effective_hyper_parameters("xgb", &parameters(json!({"max_depth": depth})))
                .expect("accepted")
        };
        assert_eq!(depth(json!(0)), depth(Value::Null), "both are no limit");
        assert_ne!(depth(json!(6)), depth(Value::Null));
    }

    #[test]
    fn refusals_say_what_would_do() {
        assert_eq!(
            refusal("lasso", json!({"c": 1})),
            "error: pipeline `lasso` has no hyper-parameter `c`\n\nhint: the nearest that it has is `C`\n"
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
    fn numbers_are_taken_as_distributions_give_them() {
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
