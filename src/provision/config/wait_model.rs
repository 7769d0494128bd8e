//! The section `provision.model`: the parameters of wait models, as constants or distributions, and
//! the values of one training.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use poolcast_base::error::hinted;
use poolcast_config::{
    DEFAULT, Distribution, Metric, MetricName, Parameter, check_range, nearest, whole, yaml,
};

/// Name prefix of a pipeline's hyper-parameters among the parameters of a search.
const PARAMETERS: &str = "parameters";

/// The model that `provision train` and the trials of a sweep over wait samples train. Each key is
/// a constant, or a distribution for a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct WaitModelConfig {
    pub name: Parameter,
    pub size: Parameter,
    pub target: Parameter,
    pub learning_rate: Parameter,
    pub batch_size: Parameter,
    /// Missing in configurations that were written before this key existed.
    #[serde(default = "none")]
    pub epochs: Parameter,
    pub parameters: BTreeMap<String, Parameter>,
}

fn none() -> Parameter {
    Parameter::Constant(Value::Null)
}

/// The parameters of one training: plain values, all in range.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// The kinds of wait models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum WaitModelName {
    /// Gradient boosted trees on the features
    Xgb,
    /// A random forest on the features
    Rf,
    /// A multilayer perceptron on the features
    Nn,
    /// A transformer on the snapshots
    Transformer,
    /// A mixture of transformers on the snapshots
    Moe,
    /// Convolutions over the snapshots
    Convolution,
    /// An LSTM over the snapshots
    Lstm,
    /// A head on a given model, trained by policy gradient
    PolicyGradient,
    /// The values of submitting now and of continuing, on the features, by Q-learning
    Dqn,
}

impl fmt::Display for WaitModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitModelName::Xgb => "xgb",
            WaitModelName::Rf => "rf",
            WaitModelName::Nn => "nn",
            WaitModelName::Transformer => "transformer",
            WaitModelName::Moe => "moe",
            WaitModelName::Convolution => "convolution",
            WaitModelName::Lstm => "lstm",
            WaitModelName::PolicyGradient => "policy_gradient",
            WaitModelName::Dqn => "dqn",
        })
    }
}

/// The size of the network of a wait model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WaitModelSize {
    /// For CPUs
    Small,
    /// The size that the project Mirage published
    Published,
}

/// The quantity that a wait model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WaitModelTarget {
    /// Quantiles of the wait
    Wait,
    /// Time from the predecessor's end to the successor's start, as published
    Reward,
}

impl Default for WaitModelConfig {
    /// The defaults in config/default.yaml, for configurations that were written before these keys
    /// existed.
    fn default() -> WaitModelConfig {
        #[derive(Deserialize)]
        struct Defaults {
            provision: ModelKeys,
        }
        #[derive(Deserialize)]
        struct ModelKeys {
            model: WaitModelConfig,
        }
        let default: Result<Defaults> = yaml::read(DEFAULT);
        default.expect("the defaults are sound").provision.model
    }
}

impl Default for WaitModelParameters {
    /// The defaults in config/default.yaml.
    fn default() -> WaitModelParameters {
        let plain = WaitModelConfig::default().trial();
        plain.expect("the defaults are plain and sound")
    }
}

impl From<&WaitModelParameters> for WaitModelConfig {
    fn from(plain: &WaitModelParameters) -> WaitModelConfig {
        let mut parameters = BTreeMap::new();
        for (name, value) in &plain.parameters {
            parameters.insert(name.clone(), Parameter::Constant(value.clone()));
        }
        WaitModelConfig {
            name: Parameter::Constant(json!(plain.name)),
            size: Parameter::Constant(json!(plain.size)),
            target: Parameter::Constant(json!(plain.target)),
            learning_rate: Parameter::Constant(json!(plain.learning_rate)),
            batch_size: Parameter::Constant(json!(plain.batch_size)),
            epochs: Parameter::Constant(json!(plain.epochs)),
            parameters,
        }
    }
}

impl WaitModelConfig {
    /// Returns all parameters with their names. The name of a pipeline's hyper-parameter is dotted,
    /// as in `parameters.max_depth`.
    pub fn all(&self) -> Vec<(String, &Parameter)> {
        let keys = [
            ("name", &self.name),
            ("size", &self.size),
            ("target", &self.target),
            ("learning_rate", &self.learning_rate),
            ("batch_size", &self.batch_size),
            ("epochs", &self.epochs),
        ];
        let keys = keys.map(|(name, parameter)| (name.to_owned(), parameter));
        let parameters = self.parameters.iter();
        let dotted = parameters.map(|(name, parameter)| (dotted_name(name), parameter));
        keys.into_iter().chain(dotted).collect()
    }

    /// Returns the parameters that a sweep draws, with their names.
    pub fn drawn(&self) -> Vec<(String, &Distribution)> {
        let mut drawn = Vec::new();
        for (name, parameter) in self.all() {
            if let Parameter::Drawn(distribution) = parameter {
                drawn.push((name, distribution));
            }
        }
        drawn
    }

    /// Returns a copy in which the values of `point` replace distributions.
    pub fn with_point(&self, point: &BTreeMap<String, Value>) -> WaitModelConfig {
        let mut chosen = self.clone();
        let keys = [
            ("name", &mut chosen.name),
            ("size", &mut chosen.size),
            ("target", &mut chosen.target),
            ("learning_rate", &mut chosen.learning_rate),
            ("batch_size", &mut chosen.batch_size),
            ("epochs", &mut chosen.epochs),
        ];
        for (name, parameter) in keys {
            choose_value(parameter, point.get(name));
        }
        for (name, parameter) in &mut chosen.parameters {
            choose_value(parameter, point.get(&dotted_name(name)));
        }
        chosen
    }

    /// Returns the kinds of models to try, in the order in which they are written.
    ///
    /// # Errors
    /// Fails for an unknown kind.
    pub fn kinds(&self) -> Result<Vec<WaitModelName>> {
        let names = written_values(&self.name);
        names.iter().map(|name| word("name", name)).collect()
    }

    /// Returns the parameters of one training. There must be nothing left to draw.
    ///
    /// # Errors
    /// Fails for a distribution, because only a sweep draws from it, and for a value out of range.
    pub fn trial(&self) -> Result<WaitModelParameters> {
        let mut parameters = BTreeMap::new();
        for (name, parameter) in &self.parameters {
            let value = constant(&dotted_name(name), parameter)?;
            parameters.insert(name.clone(), whole(value.clone()));
        }
        Ok(WaitModelParameters {
            name: word("name", constant("name", &self.name)?)?,
            size: word("size", constant("size", &self.size)?)?,
            target: word("target", constant("target", &self.target)?)?,
            learning_rate: learning_rate(constant("learning_rate", &self.learning_rate)?)?,
            batch_size: count("batch_size", constant("batch_size", &self.batch_size)?)?,
            epochs: epochs(constant("epochs", &self.epochs)?)?,
            parameters,
        })
    }

    /// Rejects values of the wrong type or out of range, also among the examples of distributions.
    pub fn check(&self) -> Result<()> {
        self.kinds()?;
        for size in written_values(&self.size) {
            word::<WaitModelSize>("size", &size)?;
        }
        for target in written_values(&self.target) {
            word::<WaitModelTarget>("target", &target)?;
        }
        for value in written_values(&self.learning_rate) {
            learning_rate(&value)?;
        }
        for value in written_values(&self.batch_size) {
            count("batch_size", &value)?;
        }
        for value in written_values(&self.epochs) {
            epochs(&value)?;
        }
        Ok(())
    }

    /// Rejects a `metric` that cannot compare all of the models to try.
    pub fn check_metric(&self, metric: &Metric) -> Result<()> {
        metric.check_wait_metric("wandb.sweep.metric")?;
        let mut predicts_waits = true;
        for target in written_values(&self.target) {
            predicts_waits &= word::<WaitModelTarget>("target", &target)? == WaitModelTarget::Wait;
        }
        predicts_waits &= !self.kinds()?.contains(&WaitModelName::Dqn);
        if predicts_waits || metric.name != MetricName::HeldBackPinball {
            return Ok(());
        }
        Err(hinted(
            format!(
                "`wandb.sweep.metric.name` is {}, which models that predict no wait do not have",
                metric.name
            ),
            "write `wandb.sweep.metric: {name: held_back_cost, goal: minimize}`, which all models have; or try only `target: wait`, without `dqn`",
        )
        .into())
    }
}

fn dotted_name(parameter: &str) -> String {
    format!("{PARAMETERS}.{parameter}")
}

fn choose_value(parameter: &mut Parameter, value: Option<&Value>) {
    if let (Parameter::Drawn(_), Some(value)) = (&*parameter, value) {
        *parameter = Parameter::Constant(value.clone());
    }
}

/// Returns the constant value, or at least one example of each type of value that can be drawn.
fn written_values(parameter: &Parameter) -> Vec<Value> {
    match parameter {
        Parameter::Constant(value) => vec![value.clone()],
        Parameter::Drawn(distribution) => distribution.examples(),
    }
}

fn key_of(name: &str) -> String {
    format!("provision.model.{name}")
}

fn constant<'a>(name: &str, parameter: &'a Parameter) -> Result<&'a Value> {
    match parameter {
        Parameter::Constant(value) => Ok(value),
        Parameter::Drawn(_) => Err(hinted(
            format!(
                "`{}` is a distribution, which only a sweep draws from",
                key_of(name)
            ),
            "write one value; or try several with `poolcast sweep init CONFIG -o DIR`, where `provision.samples` names the samples",
        )
        .into()),
    }
}

/// Reads the word `value` of the key `name`.
fn word<T: DeserializeOwned + clap::ValueEnum>(name: &str, value: &Value) -> Result<T> {
    let read: Result<T, _> = serde_json::from_value(value.clone());
    read.ok().with_context(|| {
        let known: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|word| Some(format!("`{}`", word.to_possible_value()?.get_name())))
            .collect();
        let near = value.as_str().and_then(|found| {
            let near = nearest(found, known.iter().map(|word| word.trim_matches('`')))?;
            Some(format!("did you mean `{near}`? "))
        });
        hinted(
            format!(
                "`{}` must be {}, got {value}",
                key_of(name),
                known.join(" or ")
            ),
            format!(
                "{}`poolcast config` explains every key",
                near.unwrap_or_default()
            ),
        )
    })
}

fn number(name: &str, value: &Value, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
    let number = value.as_f64().with_context(|| {
        hinted(
            format!("`{}` must be a number, got {value}", key_of(name)),
            "`poolcast config` explains every key",
        )
    })?;
    check_range(&key_of(name), number, range)?;
    Ok(number)
}

fn count(name: &str, value: &Value) -> Result<usize> {
    let number = number(name, value, 1.0..=1e6)?;
    if number.fract() != 0.0 {
        return Err(hinted(
            format!("`{}` must be a whole number, got {value}", key_of(name)),
            "draw whole numbers, such as `{values: [32, 64]}` or `{min: 16, max: 128}`",
        )
        .into());
    }
    Ok(number as usize)
}

fn learning_rate(value: &Value) -> Result<Option<f64>> {
    match value {
        Value::Null => Ok(None),
        value => number("learning_rate", value, 1e-9..=10.0).map(Some),
    }
}

fn epochs(value: &Value) -> Result<Option<usize>> {
    match value {
        Value::Null => Ok(None),
        value => count("epochs", value).map(Some),
    }
}
