//! The hyper-parameters: of samples, of networks and of every pipeline, in one table each, with
//! their kinds, ranges and defaults; and what a trial has of the first two, as plain fields.
//!
//! Where one has an effect is where it is listed. Each default stands in one place. Those of samples
//! and of networks are in `config/default.yaml`, which is the first layer of every configuration and
//! names all of its keys; a pipeline's hyper-parameters are no keys there, so theirs stand here. The
//! names, meanings and defaults of pipelines are scikit-learn's and xgboost's.

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameter_range::{ParameterRange, check_as};
use super::range::check_range;
use super::sample_words::{ContextChoice, Vocabulary};
use super::states::StateEvents;

/// A choice without which a hyper-parameter has no effect.
#[derive(Debug, Clone, Copy)]
pub struct NeededChoice {
    /// The hyper-parameter that must be chosen.
    pub name: &'static str,
    /// What it must be.
    pub word: &'static str,
}

/// The flag of a verb that sets a hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterFlag {
    /// Its name, without the dashes before it.
    pub name: &'static str,
    /// What its value is called in the help.
    pub value_name: &'static str,
    /// What it does, as the help says it.
    pub about: &'static str,
}

/// One hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub struct HyperParameter {
    /// Its name in a configuration.
    pub name: &'static str,
    /// What it can be.
    pub range: ParameterRange,
    /// Its default, in JSON; `None` where that stands in `config/default.yaml`.
    pub default: Option<&'static str>,
    /// The choice without which it has no effect.
    pub needs: Option<NeededChoice>,
    /// The flag of `poolcast train` that sets it.
    pub flag: Option<ParameterFlag>,
}

impl HyperParameter {
    /// One whose default stands in `config/default.yaml`.
    const fn new(name: &'static str, range: ParameterRange) -> HyperParameter {
        HyperParameter {
            name,
            range,
            default: None,
            needs: None,
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

    /// `value` as a trial has it.
    ///
    /// # Errors
    /// Fails for a value out of range.
    pub(super) fn accept(&self, value: &Value) -> Result<Value> {
        if let Some(accepted) = self.range.accept(value) {
            return Ok(accepted);
        }

        let name = self.name;
        if let (Some(number), Some(bounds)) = (value.as_f64(), self.range.bounds()) {
            check_range(name, number, bounds)?;
            bail!("`{name}` must be a whole number, got {value}");
        }
        bail!(
            "`{name}` cannot be {value}: it is {}",
            self.range.describe()
        )
    }
}

/// Hyper-parameters of one trial: plain numbers and words, each in the field of its name.
pub trait TrialParameters: DeserializeOwned {
    /// Their kinds and ranges, in the order in which they are written.
    const TABLE: &'static [HyperParameter];

    /// Their names, in the same order.
    const NAMES: &'static [&'static str];
}

/// The most jobs of a sample, and the most frames.
pub const MOST_JOBS_OR_FRAMES: u32 = 10_000;

/// Seconds per time frame.
pub(super) const TIMEFRAME_LEN: &str = "timeframe_len";

/// The hyper-parameters of samples, in the section `preprocessing`.
const SAMPLES: &[HyperParameter] = &[
    HyperParameter::new("j", ParameterRange::Whole(1, MOST_JOBS_OR_FRAMES)),
    HyperParameter::new("m", ParameterRange::Whole(1, MOST_JOBS_OR_FRAMES)),
    HyperParameter::new(TIMEFRAME_LEN, ParameterRange::WholeOrAuto(1, 31_536_000)),
    HyperParameter::new("context", ParameterRange::Typed(check_as::<ContextChoice>)),
    HyperParameter::new("vocabulary", ParameterRange::Typed(check_as::<Vocabulary>)),
    HyperParameter::new("states", ParameterRange::Typed(check_as::<StateEvents>)),
];

/// What the samples of a trial are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleParameters {
    /// Jobs in a sample, the held one included.
    pub j: usize,
    /// Frames in a sample.
    pub m: usize,
    /// Seconds per frame.
    #[serde(rename = "timeframe_len")]
    pub timeframe_len_s: u32,
    /// Which other jobs stand beside the held one.
    pub context: ContextChoice,
    /// The states of a job.
    pub vocabulary: Vocabulary,
    /// The events that are states.
    pub states: StateEvents,
}

/// The hyper-parameters of networks, in the section `training`.
const NETWORK: &[HyperParameter] = &[
    // Which models there are is known further down the line, where they are.
    HyperParameter::new("model", ParameterRange::Typed(check_as::<String>)),
    HyperParameter::new("lstm_layers", ParameterRange::Whole(1, 16)).flag(
        "lstm-layers",
        "N",
        "The number of layers, whatever the architecture",
    ),
    HyperParameter::new("hidden_size", ParameterRange::Whole(1, 4096)).flag(
        "hidden-size",
        "N",
        "The width of each layer",
    ),
    HyperParameter::new("learning_rate", ParameterRange::Real(0.0, 10.0)).flag(
        "learning-rate",
        "RATE",
        "The learning rate of Adam",
    ),
    HyperParameter::new("weight_decay", ParameterRange::Real(0.0, 1000.0)).flag(
        "weight-decay",
        "SHARE",
        "The share of the learning rate by which every weight shrinks at each step, as in AdamW",
    ),
    HyperParameter::new("clip_grad_norm", ParameterRange::Real(0.0, 1e9)).flag(
        "clip-grad-norm",
        "NORM",
        "The largest norm of a gradient; 0 is no limit",
    ),
    HyperParameter::new("batch_size", ParameterRange::Whole(1, 1_000_000)).flag(
        "batch-size",
        "N",
        "The number of samples in a batch",
    ),
    HyperParameter::new("pos_weight", ParameterRange::Real(1e-6, 1e6)).flag(
        "pos-weight",
        "WEIGHT",
        "The weight of a success in the loss; a failure has the weight 1",
    ),
];

/// The network of a trial, and how it learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkParameters {
    /// The name of the architecture that is trained.
    pub model: String,
    /// Layers.
    pub lstm_layers: usize,
    /// Width of each layer.
    pub hidden_size: usize,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// The share of the learning rate by which every weight shrinks at each step.
    pub weight_decay: f64,
    /// The largest norm of a gradient; 0 is no limit.
    pub clip_grad_norm: f64,
    /// Samples a step.
    pub batch_size: usize,
    /// What a success counts in the loss, where a failure counts 1.
    pub pos_weight: f64,
}

impl TrialParameters for SampleParameters {
    const TABLE: &'static [HyperParameter] = SAMPLES;
    const NAMES: &'static [&'static str] = &parameter_names::<{ SAMPLES.len() }>(SAMPLES);
}

impl TrialParameters for NetworkParameters {
    const TABLE: &'static [HyperParameter] = NETWORK;
    const NAMES: &'static [&'static str] = &parameter_names::<{ NETWORK.len() }>(NETWORK);
}

const fn parameter_names<const N: usize>(table: &[HyperParameter]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut place = 0;
    while place < N {
        names[place] = table[place].name;
        place += 1;
    }
    names
}

/// The hyper-parameters of the feature selection, which every pipeline has.
pub const SELECTION: &[HyperParameter] = &[
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

/// Every pipeline has a scaler but those of trees, which ask only for the order of values.
const SCALER: HyperParameter = HyperParameter::new(
    "scaler",
    ParameterRange::Word(&["none", "standard", "minmax"]),
)
.or("\"standard\"");
const C: HyperParameter = HyperParameter::new("C", ParameterRange::Real(1e-6, 1e6)).or("1");

/// The hyper-parameters of `lasso` alone.
pub const LASSO: &[HyperParameter] = &[SCALER, C];
/// The hyper-parameters of `ridge` alone.
pub const RIDGE: &[HyperParameter] = &[SCALER, C];
/// The hyper-parameters of `enet` alone.
pub const ELASTIC_NET: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new("l1_ratio", ParameterRange::Real(0.0, 1.0)).or("0.5"),
];
/// The hyper-parameters of `svc` alone.
pub const SUPPORT_VECTORS: &[HyperParameter] = &[
    SCALER,
    C,
    HyperParameter::new("kernel", ParameterRange::Word(&["linear", "rbf"])).or("\"rbf\""),
    HyperParameter::new("gamma", ParameterRange::WordOr(&["scale"], 1e-9, 1e6))
        .or("\"scale\"")
        .only_with("kernel", "rbf"),
    HyperParameter::new("shrinking", ParameterRange::Flag).or("true"),
];
/// The hyper-parameters of `xgb` alone.
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
/// The hyper-parameters of `rf` and `et` alone.
pub const FOREST: &[HyperParameter] = &[
    HyperParameter::new("n_estimators", ParameterRange::Whole(1, 100_000)).or("100"),
    HyperParameter::new("max_depth", ParameterRange::Limit(1, 1000)).or("null"),
    HyperParameter::new("min_samples_leaf", ParameterRange::Whole(1, 1_000_000)).or("1"),
    HyperParameter::new(
        "max_features",
        ParameterRange::WordOr(&["sqrt"], 0.001, 1.0),
    )
    .or("\"sqrt\""),
];
/// The hyper-parameters of `nn` alone.
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
