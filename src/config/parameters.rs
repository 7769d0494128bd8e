//! The hyper-parameters of samples, networks, wait models and pipelines. Each group has one table,
//! with types, ranges and defaults. For all groups but pipelines there are also structs with the
//! values of one trial.
//!
//! A hyper-parameter is in the table of the group that it affects. Each default is defined once.
//! The defaults of samples, networks and wait models are in `config/default.yaml`, which is the
//! first layer of every configuration and names all of its keys. The hyper-parameters of pipelines
//! are not keys in that file, so their defaults are here. Names, meanings and defaults follow
//! scikit-learn and xgboost.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameter_range::{ParameterRange, check_as, choices};
use super::range::check_range;
use super::sample_words::{ContextChoice, Vocabulary};
use super::states::StateEvents;
use super::wait_model_words::{WaitModelName, WaitModelSize, WaitModelTarget};

/// A condition on another hyper-parameter, without which a hyper-parameter has no effect.
#[derive(Debug, Clone, Copy)]
pub struct NeededChoice {
    /// Name of the other hyper-parameter.
    pub name: &'static str,
    /// Value that it must have.
    pub word: &'static str,
}

/// A command-line flag that sets a hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterFlag {
    /// Name, without the leading dashes.
    pub name: &'static str,
    /// Placeholder of the value in the help.
    pub value_name: &'static str,
    /// Description in the help.
    pub about: &'static str,
}

/// One hyper-parameter: its name, its values, its default and its flag.
#[derive(Debug, Clone, Copy)]
pub struct HyperParameter {
    /// Name in a configuration.
    pub name: &'static str,
    /// Type and range of its values.
    pub range: ParameterRange,
    /// Default, in JSON; `None` if the default is in `config/default.yaml`.
    pub default: Option<&'static str>,
    /// Condition without which it has no effect.
    pub needs: Option<NeededChoice>,
    /// True if it may be null or missing. Null stands for the default, or for one that depends on other values. Of a
    /// pipeline, a trial that has the default does not name it.
    pub is_optional: bool,
    /// Flag of `poolcast train` or `poolcast provision train` that sets it.
    pub flag: Option<ParameterFlag>,
}

impl HyperParameter {
    /// Creates a hyper-parameter whose default is in `config/default.yaml`.
    const fn new(name: &'static str, range: ParameterRange) -> HyperParameter {
        HyperParameter {
            name,
            range,
            default: None,
            needs: None,
            is_optional: false,
            flag: None,
        }
    }

    const fn or(mut self, default: &'static str) -> HyperParameter {
        self.default = Some(default);
        self
    }

    const fn only_with(mut self, name: &'static str, word: &'static str) -> HyperParameter {
        self.needs = Some(NeededChoice { name, word });
        self
    }

    const fn optional(mut self) -> HyperParameter {
        self.is_optional = true;
        self
    }

    const fn flag(
        mut self,
        name: &'static str,
        value_name: &'static str,
        about: &'static str,
    ) -> HyperParameter {
        self.flag = Some(ParameterFlag {
            name,
            value_name,
            about,
        });
        self
    }

    /// Returns true if `value` is null, and may be.
    fn is_unset(&self, value: &Value) -> bool {
        self.is_optional && value.is_null()
    }

    /// Rejects a value of the wrong type. For plain numbers, the range is not checked.
    ///
    /// # Errors
    /// The error describes the expected type.
    pub(super) fn check_kind(&self, value: &Value) -> Result<(), String> {
        if self.is_unset(value) {
            return Ok(());
        }
        self.range.check_kind(value)
    }

    /// Returns `value` in the form that a trial uses. `key` names the hyper-parameter in messages.
    ///
    /// # Errors
    /// Fails for a value out of range.
    pub(super) fn accept(&self, key: &str, value: &Value) -> Result<Value> {
        if self.is_unset(value) {
            return Ok(Value::Null);
        }
        if let Some(accepted) = self.range.accept(value) {
            return Ok(accepted);
        }

        if let (Some(number), Some(bounds)) = (value.as_f64(), self.range.bounds()) {
            check_range(key, number, bounds)?;
            bail!("`{key}` must be a whole number, got {value}");
        }
        bail!("`{key}` must be {}, got {value}", self.range.describe())
    }
}

/// Hyper-parameters of one trial: plain values, each in a field of the same name.
pub trait TrialParameters: DeserializeOwned {
    /// Definitions of the hyper-parameters, in the order in which they are written.
    const TABLE: &'static [HyperParameter];

    /// Keys of the section: the names of the hyper-parameters, in the same order, and then the
    /// [`PIPELINE`](TrialParameters::PIPELINE).
    const NAMES: &'static [&'static str];

    /// Key of the hyper-parameters of a pipeline, which the table of the pipeline checks; `None` if
    /// the section has no such key.
    const PIPELINE: Option<&'static str> = None;

    /// Prefix of the names in messages.
    const KEY_PREFIX: &'static str = "";
}

/// Maximum number of jobs in a sample, and maximum number of frames.
pub const MAX_JOBS_OR_FRAMES: u32 = 10_000;

/// Name of the hyper-parameter for the length of a time frame, in seconds.
pub const TIMEFRAME_LEN: &str = "timeframe_len";

/// Hyper-parameters of samples, in the section `preprocessing`.
const SAMPLES: &[HyperParameter] = &[
    HyperParameter::new("j", ParameterRange::Whole(1, MAX_JOBS_OR_FRAMES)),
    HyperParameter::new("m", ParameterRange::Whole(1, MAX_JOBS_OR_FRAMES)),
    HyperParameter::new(TIMEFRAME_LEN, ParameterRange::WholeOrAuto(1, 31_536_000)),
    HyperParameter::new("context", ParameterRange::Typed(check_as::<ContextChoice>)),
    HyperParameter::new("vocabulary", ParameterRange::Typed(check_as::<Vocabulary>)),
    HyperParameter::new("states", ParameterRange::Typed(check_as::<StateEvents>)),
];

/// Hyper-parameters of the samples of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleParameters {
    /// Jobs in a sample, the held one included.
    pub j: usize,
    /// Time frames in a sample.
    pub m: usize,
    /// Length of a time frame, in seconds.
    #[serde(rename = "timeframe_len")]
    pub timeframe_len_s: u32,
    /// Rule for choosing the other jobs in a sample.
    pub context: ContextChoice,
    /// Kind of states of a job: event numbers only, or also hold codes.
    pub vocabulary: Vocabulary,
    /// Events that count as states.
    pub states: StateEvents,
}

/// Hyper-parameters of networks, in the section `training`.
const NETWORK: &[HyperParameter] = &[
    // A later module defines the known models and checks the name.
    HyperParameter::new("model", ParameterRange::Typed(check_as::<String>)),
    HyperParameter::new("lstm_layers", ParameterRange::Whole(1, 16)).flag(
        "lstm-layers",
        "N",
        "Number of layers, for every architecture",
    ),
    HyperParameter::new("hidden_size", ParameterRange::Whole(1, 4096)).flag(
        "hidden-size",
        "N",
        "Width of each layer",
    ),
    HyperParameter::new("learning_rate", ParameterRange::Real(0.0, 10.0)).flag(
        "learning-rate",
        "RATE",
        "Learning rate of Adam",
    ),
    HyperParameter::new("weight_decay", ParameterRange::Real(0.0, 1000.0))
        .optional()
        .flag(
            "weight-decay",
            "SHARE",
            "Share of the learning rate by which every weight shrinks at each step, as in AdamW",
        ),
    HyperParameter::new("clip_grad_norm", ParameterRange::Real(0.0, 1e9))
        .optional()
        .flag(
            "clip-grad-norm",
            "NORM",
            "Maximum norm of a gradient; 0: no limit",
        ),
    HyperParameter::new("batch_size", ParameterRange::Whole(1, 1_000_000)).flag(
        "batch-size",
        "N",
        "Number of samples in a batch",
    ),
    HyperParameter::new("pos_weight", ParameterRange::Real(1e-6, 1e6)).flag(
        "pos-weight",
        "WEIGHT",
        "Weight of a success in the loss; a failure has weight 1",
    ),
];

/// Hyper-parameters of the network of one trial and of its training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkParameters {
    /// Name of the architecture.
    pub model: String,
    /// Number of layers.
    pub lstm_layers: usize,
    /// Width of each layer.
    pub hidden_size: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Fraction of the learning rate by which each weight shrinks at each step; `None` for the
    /// default of the architecture.
    pub weight_decay: Option<f64>,
    /// Maximum norm of the gradient; 0 means no limit, and `None` the default of the architecture.
    pub clip_grad_norm: Option<f64>,
    /// Samples per optimizer step.
    pub batch_size: usize,
    /// Weight of a success in the loss, relative to a failure.
    pub pos_weight: f64,
}

/// Key of the hyper-parameters of a pipeline among the keys of a wait model.
pub const PIPELINE_PARAMETERS: &str = "parameters";

/// Hyper-parameters of wait models, in the section `provision.model`.
const WAIT_MODEL: &[HyperParameter] = &[
    HyperParameter::new("name", ParameterRange::Choice(choices::<WaitModelName>)).flag(
        "model",
        "KIND",
        "Kind of model",
    ),
    HyperParameter::new("size", ParameterRange::Choice(choices::<WaitModelSize>)).flag(
        "size",
        "SIZE",
        "Size of a network",
    ),
    HyperParameter::new("target", ParameterRange::Choice(choices::<WaitModelTarget>)).flag(
        "target",
        "TARGET",
        "Target to learn",
    ),
    HyperParameter::new("learning_rate", ParameterRange::Real(1e-9, 10.0))
        .optional()
        .flag("learning-rate", "RATE", "Learning rate of a network"),
    HyperParameter::new("batch_size", ParameterRange::Whole(1, 1_000_000)),
    HyperParameter::new("epochs", ParameterRange::Whole(1, 1_000_000)).optional(),
];

/// Hyper-parameters of one wait model and of its training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelParameters {
    /// Kind of model.
    pub name: WaitModelName,
    /// Size of the network.
    pub size: WaitModelSize,
    /// Quantity that the model predicts.
    pub target: WaitModelTarget,
    /// Learning rate of a network; `None` for the default of its size.
    pub learning_rate: Option<f64>,
    /// Samples per optimizer step of a network.
    pub batch_size: usize,
    /// Maximum number of epochs of a network; `None` for the value of the top-level key `epochs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// Hyper-parameters of a pipeline, by name.
    pub parameters: BTreeMap<String, Value>,
}

impl TrialParameters for SampleParameters {
    const TABLE: &'static [HyperParameter] = SAMPLES;
    const NAMES: &'static [&'static str] = &key_names::<{ SAMPLES.len() }>(SAMPLES);
}

impl TrialParameters for NetworkParameters {
    const TABLE: &'static [HyperParameter] = NETWORK;
    const NAMES: &'static [&'static str] = &key_names::<{ NETWORK.len() }>(NETWORK);
}

impl TrialParameters for WaitModelParameters {
    const TABLE: &'static [HyperParameter] = WAIT_MODEL;
    const NAMES: &'static [&'static str] = &key_names::<{ WAIT_MODEL.len() + 1 }>(WAIT_MODEL);
    const PIPELINE: Option<&'static str> = Some(PIPELINE_PARAMETERS);
    const KEY_PREFIX: &'static str = "provision.model.";
}

/// Returns the names in `table`. A last name without a row belongs to the pipeline's
/// hyper-parameters.
const fn key_names<const N: usize>(table: &[HyperParameter]) -> [&'static str; N] {
    let mut names = [PIPELINE_PARAMETERS; N];
    let mut place = 0;
    while place < table.len() {
        names[place] = table[place].name;
        place += 1;
    }
    names
}

/// Name of the hyper-parameter for the weights of classes.
pub const CLASS_WEIGHT: &str = "class_weight";

/// Hyper-parameters that every pipeline has: what missing values become, what the rows of each class weigh, and
/// the feature selection.
pub const OF_ALL_PIPELINES: &[HyperParameter] = &[
    HyperParameter::new("imputer", ParameterRange::Word(&["median", "mean", "zero"]))
        .or("\"median\"")
        .optional(),
    HyperParameter::new(CLASS_WEIGHT, ParameterRange::Word(&["none", "balanced"]))
        .or("\"none\"")
        .optional(),
    HyperParameter::new(
        "selection",
        ParameterRange::Word(&["none", "threshold", "lasso", "forest", "svd"]),
    )
    .or("\"none\""),
    HyperParameter::new("selection_threshold", ParameterRange::Real(0.0, 1e12))
        .or("0")
        .only_with("selection", "threshold"),
    HyperParameter::new("selection_mode", ParameterRange::Word(&["hard", "soft"]))
        .or("\"hard\"")
        .only_with("selection", "threshold"),
    HyperParameter::new("selection_C", ParameterRange::Real(1e-6, 1e6))
        .or("1")
        .only_with("selection", "lasso"),
    HyperParameter::new("selection_min_coefficient", ParameterRange::Real(0.0, 1e6))
        .or("1e-5")
        .only_with("selection", "lasso"),
    HyperParameter::new("selection_n_estimators", ParameterRange::Whole(1, 10_000))
        .or("100")
        .only_with("selection", "forest"),
    HyperParameter::new("selection_min_importance", ParameterRange::Real(0.0, 1.0))
        .or("1e-3")
        .only_with("selection", "forest"),
    HyperParameter::new("selection_n_components", ParameterRange::Whole(1, 10_000))
        .or("2")
        .only_with("selection", "svd"),
];

/// The scaler. All pipelines have one, except trees, which depend only on the order of values.
const SCALER: HyperParameter = HyperParameter::new(
    "scaler",
    ParameterRange::Word(&["none", "standard", "minmax"]),
)
.or("\"standard\"");
const C: HyperParameter = HyperParameter::new("C", ParameterRange::Real(1e-6, 1e6)).or("1");

/// Hyper-parameters of `lasso` only.
pub const LASSO: &[HyperParameter] = &[SCALER, C];
/// Hyper-parameters of `ridge` only.
pub const RIDGE: &[HyperParameter] = &[SCALER, C];
/// Hyper-parameters of `enet` only.
pub const ELASTIC_NET: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new("l1_ratio", ParameterRange::Real(0.0, 1.0)).or("0.5"),
];
/// Hyper-parameters of `svc` only.
pub const SUPPORT_VECTORS: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new("kernel", ParameterRange::Word(&["linear", "rbf"])).or("\"rbf\""),
    HyperParameter::new("gamma", ParameterRange::WordOr(&["scale"], 1e-9, 1e6))
        .or("\"scale\"")
        .only_with("kernel", "rbf"),
    HyperParameter::new("shrinking", ParameterRange::Flag).or("true"),
];
/// Hyper-parameters of `xgb` only.
pub const BOOSTED_TREES: &[HyperParameter] = &[
    HyperParameter::new("n_estimators", ParameterRange::Whole(1, 100_000)).or("100"),
    HyperParameter::new("max_depth", ParameterRange::Limit(0, 64)).or("6"),
    HyperParameter::new("learning_rate", ParameterRange::Real(1e-6, 1.0)).or("0.3"),
    HyperParameter::new("reg_lambda", ParameterRange::Real(0.0, 1e6)).or("1"),
    HyperParameter::new("reg_alpha", ParameterRange::Real(0.0, 1e6)).or("0"),
    HyperParameter::new("gamma", ParameterRange::Real(0.0, 1e6)).or("0"),
    HyperParameter::new("min_child_weight", ParameterRange::Real(0.0, 1e6)).or("1"),
    HyperParameter::new("subsample", ParameterRange::Real(0.01, 1.0)).or("1"),
    HyperParameter::new("colsample_bytree", ParameterRange::Real(0.01, 1.0)).or("1"),
];
/// Hyper-parameters of `rf` and `et` only.
pub const FOREST: &[HyperParameter] = &[
    HyperParameter::new("n_estimators", ParameterRange::Whole(1, 100_000)).or("100"),
    HyperParameter::new("max_depth", ParameterRange::Limit(1, 1000)).or("null"),
    HyperParameter::new("min_samples_leaf", ParameterRange::Whole(1, 1_000_000)).or("1"),
    HyperParameter::new("max_features", ParameterRange::CountOr(&["sqrt"], 100_000)).or("\"sqrt\""),
];
/// Hyper-parameters of `nn` only.
pub const PERCEPTRON: &[HyperParameter] = &[
    SCALER,
    HyperParameter::new("hidden_layer_sizes", ParameterRange::Sizes(1, 10_000)).or("[100]"),
    HyperParameter::new(
        "activation",
        ParameterRange::Word(&["relu", "tanh", "logistic"]),
    )
    .or("\"relu\""),
    HyperParameter::new("alpha", ParameterRange::Real(0.0, 1e6)).or("1e-4"),
    HyperParameter::new("solver", ParameterRange::Word(&["adam", "sgd"])).or("\"adam\""),
    HyperParameter::new(
        "learning_rate",
        ParameterRange::Word(&["constant", "invscaling", "adaptive"]),
    )
    .or("\"constant\""),
    HyperParameter::new("learning_rate_init", ParameterRange::Real(1e-7, 10.0)).or("1e-3"),
    HyperParameter::new("batch_size", ParameterRange::Whole(1, 1_000_000)).or("200"),
    HyperParameter::new("max_iter", ParameterRange::Whole(1, 100_000)).or("200"),
];
