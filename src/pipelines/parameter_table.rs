//! The hyper-parameters of every pipeline: names, ranges and defaults.
//!
//! Names, meanings and defaults are scikit-learn's and xgboost's.

use serde_json::Value;

use super::pipeline_kind::PipelineKind;

/// What a hyper-parameter can be.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParameterRange {
    /// A number, ends included.
    Real(f64, f64),
    /// A whole number, ends included.
    Whole(u32, u32),
    /// A whole number, or null for no limit; 0, where it is allowed, is null.
    Limit(u32, u32),
    /// True or false.
    Flag,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// One of a few words, or a number.
    WordOr(&'static [&'static str], f64, f64),
    /// A list of whole numbers, or one number for a list of one.
    Sizes(u32, u32),
}

/// A choice without which a hyper-parameter has no effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeededChoice {
    /// The hyper-parameter that must be chosen.
    pub(super) name: &'static str,
    /// What it must be.
    pub(super) word: &'static str,
}

/// One hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct HyperParameter {
    /// Its name in a configuration.
    pub(super) name: &'static str,
    /// What it can be.
    pub(super) range: ParameterRange,
    /// Its default, in JSON.
    pub(super) default: &'static str,
    /// The choice without which it has no effect.
    pub(super) needs: Option<NeededChoice>,
}

impl HyperParameter {
    const fn new(
        name: &'static str,
        range: ParameterRange,
        default: &'static str,
    ) -> HyperParameter {
        HyperParameter {
            name,
            range,
            default,
            needs: None,
        }
    }

    const fn only_with(mut self, name: &'static str, word: &'static str) -> HyperParameter {
        self.needs = Some(NeededChoice { name, word });
        self
    }
}

/// The hyper-parameters of the feature selection, which every pipeline has.
const SELECTION: &[HyperParameter] = &[
    HyperParameter::new(
        "selection",
        ParameterRange::Word(&["none", "threshold", "lasso", "forest", "svd"]),
        "\"none\"",
    ),
    HyperParameter::new("selection_threshold", ParameterRange::Real(0.0, 1e12), "0")
        .only_with("selection", "threshold"),
    HyperParameter::new(
        "selection_mode",
        ParameterRange::Word(&["hard", "soft"]),
        "\"hard\"",
    )
    .only_with("selection", "threshold"),
    HyperParameter::new("selection_C", ParameterRange::Real(1e-6, 1e6), "1")
        .only_with("selection", "lasso"),
    HyperParameter::new(
        "selection_min_coefficient",
        ParameterRange::Real(0.0, 1e6),
        "1e-5",
    )
    .only_with("selection", "lasso"),
    HyperParameter::new(
        "selection_n_estimators",
        ParameterRange::Whole(1, 10_000),
        "100",
    )
    .only_with("selection", "forest"),
    HyperParameter::new(
        "selection_min_importance",
        ParameterRange::Real(0.0, 1.0),
        "1e-3",
    )
    .only_with("selection", "forest"),
    HyperParameter::new(
        "selection_n_components",
        ParameterRange::Whole(1, 10_000),
        "2",
    )
    .only_with("selection", "svd"),
];

/// Every pipeline has a scaler but those of trees, which ask only for the order of values.
const SCALER: HyperParameter = HyperParameter::new(
    "scaler",
    ParameterRange::Word(&["none", "standard", "minmax"]),
    "\"standard\"",
);
const C: HyperParameter = HyperParameter::new("C", ParameterRange::Real(1e-6, 1e6), "1");

const LASSO: &[HyperParameter] = &[SCALER, C];
const RIDGE: &[HyperParameter] = &[SCALER, C];
const ELASTIC_NET: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new("l1_ratio", ParameterRange::Real(0.0, 1.0), "0.5"),
];
const SUPPORT_VECTORS: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new(
        "kernel",
        ParameterRange::Word(&["linear", "rbf"]),
        "\"rbf\"",
    ),
    HyperParameter::new(
        "gamma",
        ParameterRange::WordOr(&["scale"], 1e-9, 1e6),
        "\"scale\"",
    )
    .only_with("kernel", "rbf"),
    HyperParameter::new("shrinking", ParameterRange::Flag, "true"),
];
const BOOSTED_TREES: &[HyperParameter] = &[
    HyperParameter::new("n_estimators", ParameterRange::Whole(1, 100_000), "100"),
    HyperParameter::new("max_depth", ParameterRange::Limit(0, 64), "6"),
    HyperParameter::new("learning_rate", ParameterRange::Real(1e-6, 1.0), "0.3"),
    HyperParameter::new("reg_lambda", ParameterRange::Real(0.0, 1e6), "1"),
    HyperParameter::new("reg_alpha", ParameterRange::Real(0.0, 1e6), "0"),
    HyperParameter::new("gamma", ParameterRange::Real(0.0, 1e6), "0"),
    HyperParameter::new("min_child_weight", ParameterRange::Real(0.0, 1e6), "1"),
    HyperParameter::new("subsample", ParameterRange::Real(0.01, 1.0), "1"),
    HyperParameter::new("colsample_bytree", ParameterRange::Real(0.01, 1.0), "1"),
];
const RANDOM_FOREST: &[HyperParameter] = &[
    HyperParameter::new("n_estimators", ParameterRange::Whole(1, 100_000), "100"),
    HyperParameter::new("max_depth", ParameterRange::Limit(1, 1000), "null"),
    HyperParameter::new("min_samples_leaf", ParameterRange::Whole(1, 1_000_000), "1"),
    HyperParameter::new(
        "max_features",
        ParameterRange::WordOr(&["sqrt"], 0.001, 1.0),
        "\"sqrt\"",
    ),
];
const NETWORK: &[HyperParameter] = &[
    SCALER,
    HyperParameter::new(
        "hidden_layer_sizes",
        ParameterRange::Sizes(1, 10_000),
        "[100]",
    ),
    HyperParameter::new(
        "activation",
        ParameterRange::Word(&["relu", "tanh", "logistic"]),
        "\"relu\"",
    ),
    HyperParameter::new("alpha", ParameterRange::Real(0.0, 1e6), "1e-4"),
    HyperParameter::new("solver", ParameterRange::Word(&["adam", "sgd"]), "\"adam\""),
    HyperParameter::new(
        "learning_rate",
        ParameterRange::Word(&["constant", "invscaling", "adaptive"]),
        "\"constant\"",
    ),
    HyperParameter::new(
        "learning_rate_init",
        ParameterRange::Real(1e-7, 10.0),
        "1e-3",
    ),
    HyperParameter::new("batch_size", ParameterRange::Whole(1, 1_000_000), "200"),
    HyperParameter::new("max_iter", ParameterRange::Whole(1, 100_000), "200"),
];

impl PipelineKind {
    /// All hyper-parameters of the pipeline: those of its model, then those of the selection.
    pub(super) fn hyper_parameters(self) -> impl Iterator<Item = &'static HyperParameter> {
        let own = match self {
            PipelineKind::Lasso => LASSO,
            PipelineKind::Ridge => RIDGE,
            PipelineKind::ElasticNet => ELASTIC_NET,
            PipelineKind::SupportVectors => SUPPORT_VECTORS,
            PipelineKind::BoostedTrees => BOOSTED_TREES,
            PipelineKind::RandomForest => RANDOM_FOREST,
            PipelineKind::Network => NETWORK,
        };
        own.iter().chain(SELECTION)
    }
}

impl ParameterRange {
    /// The value, if it is in range. Whole numbers become such: a distribution may give 100 as
    /// 100.0.
    pub(super) fn accept(self, value: &Value) -> Option<Value> {
        match self {
            ParameterRange::Real(least, most) => accept_real(value, least, most),
            ParameterRange::Whole(least, most) => accept_whole(value, least, most),
            ParameterRange::Limit(least, most) => accept_limit(value, least, most),
            ParameterRange::Flag => value.is_boolean().then(|| value.clone()),
            ParameterRange::Word(choices) => accept_word(value, choices),
            ParameterRange::WordOr(choices, least, most) => {
                accept_word(value, choices).or_else(|| accept_real(value, least, most))
            }
            ParameterRange::Sizes(least, most) => accept_sizes(value, least, most),
        }
    }

    /// The range in words, for a message.
    pub(super) fn describe(self) -> String {
        match self {
            ParameterRange::Real(least, most) => format!("a number from {least} to {most}"),
            ParameterRange::Whole(least, most) => {
                format!("a whole number from {least} to {most}")
            }
            ParameterRange::Limit(0, most) => {
                format!("a whole number from 1 to {most}, or null or 0 for no limit")
            }
            ParameterRange::Limit(least, most) => {
                format!("a whole number from {least} to {most}, or null for no limit")
            }
            ParameterRange::Flag => "true or false".to_owned(),
            ParameterRange::Word(choices) => format!("one of {}", quote_words(choices)),
            ParameterRange::WordOr(choices, least, most) => {
                format!(
                    "{} or a number from {least} to {most}",
                    quote_words(choices)
                )
            }
            ParameterRange::Sizes(least, most) => {
                format!("a list of 1 to 8 whole numbers from {least} to {most}")
            }
        }
    }
}

fn accept_real(value: &Value, least: f64, most: f64) -> Option<Value> {
    let real = value.as_f64()?;
    (least..=most).contains(&real).then(|| Value::from(real))
}

fn accept_whole(value: &Value, least: u32, most: u32) -> Option<Value> {
    let real = value.as_f64().filter(|real| real.fract() == 0.0)?;
    (f64::from(least)..=f64::from(most))
        .contains(&real)
        .then(|| Value::from(real as u64))
}

fn accept_limit(value: &Value, least: u32, most: u32) -> Option<Value> {
    let is_none = value.is_null() || least == 0 && value.as_f64() == Some(0.0);
    if is_none {
        Some(Value::Null)
    } else {
        accept_whole(value, least, most)
    }
}

fn accept_word(value: &Value, choices: &[&str]) -> Option<Value> {
    let word = value.as_str()?;
    choices.contains(&word).then(|| value.clone())
}

fn accept_sizes(value: &Value, least: u32, most: u32) -> Option<Value> {
    let one = std::slice::from_ref(value);
    let sizes = value
        .as_array()
        .map_or(one, Vec::as_slice)
        .iter()
        .map(|size| accept_whole(size, least, most))
        .collect::<Option<Vec<Value>>>()?;
    (1..=8)
        .contains(&sizes.len())
        .then_some(Value::Array(sizes))
}

/// Words for a message, each quoted.
pub(super) fn quote_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
