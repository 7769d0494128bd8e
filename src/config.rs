//! Configuration: layers of YAML and environment → one checked [`Config`], saved beside every artefact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use figment::Figment;
use figment::error::Kind;
use figment::providers::{Env, Format as _, Serialized, Yaml};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::hinted;

/// The defaults, commented; every key there is.
pub const DEFAULT: &str = include_str!("../config/default.yaml");

/// The file name of the resolved configuration beside an artefact.
pub const FILE: &str = "config.yaml";

/// The whole configuration. `config/default.yaml` explains every key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Config {
    pub logs: Vec<PathBuf>,
    pub out: PathBuf,
    pub seed: u64,
    pub parse: Parse,
    pub runs: usize,
    pub epochs: usize,
    pub earlystop_threshold: usize,
    pub wandb: Wandb,
    pub preprocessing: Preprocessing,
    pub training: Training,
    pub evaluation: Evaluation,
    pub advice: Advice,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Parse {
    pub ap: Option<String>,
    pub year: Option<i16>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Wandb {
    pub enable: bool,
    pub entity: Option<String>,
    pub project: Option<String>,
    pub sweep: Sweep,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Sweep {
    pub name: String,
    pub method: Method,
    pub metric: Metric,
}

/// How a sweep draws its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Each trial independently, from the seed.
    Random,
}

/// A value that a trial is watched and chosen by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Metric {
    pub name: MetricName,
    pub goal: Goal,
}

/// The metrics of the validation split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named as in config/default.yaml")]
pub enum MetricName {
    ValidationLoss,
    ValidationRocAuc,
    ValidationAveragePrecision,
    ValidationFMeasure,
    ValidationAccuracy,
    ValidationBrier,
}

impl std::fmt::Display for MetricName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Whether less or more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Goal {
    Minimize,
    Maximize,
}

impl Goal {
    /// Whether `a` is better than `b`.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Goal::Minimize => a < b,
            Goal::Maximize => a > b,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Preprocessing {
    pub parameters: TensorParameters,
    pub window: Window,
    pub label: Label,
    pub cycles: Cycles,
    pub split: Split,
    pub fractions: [f64; 3],
    pub ignore_events: Vec<u16>,
    pub exclude_hold_codes: Vec<i32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct TensorParameters {
    pub j: Parameter,
    pub m: Parameter,
    pub timeframe_len: Parameter,
}

/// Where a sample's frames stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// They end at the hold.
    Hold,
    /// They begin at the submission.
    Life,
}

/// What a sample is labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// Whether the job succeeds next after this hold's release.
    Next,
    /// Whether the job terminated normally in the end, as published.
    Final,
}

/// Which holds of a job become samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Cycles {
    All,
    First,
}

/// How samples are divided into train, validate and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// By time of hold, no cluster on two sides.
    Time,
    /// By cluster, at random.
    Cluster,
    /// By sample, at random, as published.
    Random,
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Split::Time => "time",
            Split::Cluster => "cluster",
            Split::Random => "random",
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Training {
    pub parameters: ModelParameters,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct ModelParameters {
    pub lstm_layers: Parameter,
    pub hidden_size: Parameter,
    pub learning_rate: Parameter,
    pub batch_size: Parameter,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Evaluation {
    pub resamples: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Advice {
    pub release_from: f64,
    pub fix_below: f64,
    pub remove_from_holds: usize,
    pub min_like_cases: usize,
}

/// A hyper-parameter: a number, or what a sweep draws it from, in W&B's words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// One number for every trial.
    Constant(f64),
    /// What to draw from.
    Drawn(Distribution),
}

/// By hand, because what serde derives for untagged enums does not say what is wrong.
impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if let Some(number) = value.as_f64() {
            return Ok(Parameter::Constant(number));
        }
        if !value.is_object() {
            let message = format!("expected a number or a distribution such as `{{values: [1, 2]}}`, got {value}");
            return Err(D::Error::custom(message));
        }
        Distribution::deserialize(value).map(Parameter::Drawn).map_err(D::Error::custom)
    }
}

/// What a sweep draws a parameter from; the names are W&B's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawDistribution", into = "RawDistribution")]
#[expect(missing_docs, reason = "the fields are W&B's")]
pub enum Distribution {
    /// One of some values, each as likely.
    Values { values: Vec<f64> },
    /// A whole number, both ends included.
    IntUniform { min: f64, max: f64 },
    /// A real number.
    Uniform { min: f64, max: f64 },
    /// A real number whose logarithm is uniform.
    LogUniformValues { min: f64, max: f64 },
    /// The same, rounded to a multiple of `q`.
    QLogUniformValues { min: f64, max: f64, q: f64 },
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDistribution {
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<f64>,
}

const DISTRIBUTIONS: [&str; 6] =
    ["constant", "categorical", "int_uniform", "uniform", "log_uniform_values", "q_log_uniform_values"];

impl TryFrom<RawDistribution> for Distribution {
    type Error = String;

    fn try_from(raw: RawDistribution) -> Result<Distribution, String> {
        let guessed = match (&raw.value, &raw.values, raw.min) {
            (Some(_), ..) => "constant",
            (_, Some(_), _) => "categorical",
            (.., Some(min)) if min.fract() == 0.0 && raw.max.is_some_and(|max| max.fract() == 0.0) => "int_uniform",
            _ => "uniform",
        };
        let name = raw.distribution.as_deref().unwrap_or(guessed);
        let range = || match (raw.min, raw.max) {
            (Some(min), Some(max)) if min <= max => Ok((min, max)),
            (Some(min), Some(max)) => Err(format!("`{name}` needs min <= max, got {min} and {max}")),
            _ => Err(format!("`{name}` needs min and max")),
        };
        let positive = |(min, max): (f64, f64)| match min > 0.0 {
            true => Ok((min, max)),
            false => Err(format!("`{name}` needs min > 0, got {min}")),
        };
        match name {
            "constant" => {
                let value = raw.value.ok_or("`constant` needs a value")?;
                Ok(Distribution::Values { values: vec![value] })
            }
            "categorical" => {
                let values = raw.values.filter(|values| !values.is_empty());
                Ok(Distribution::Values { values: values.ok_or("`categorical` needs values")? })
            }
            "int_uniform" => range().map(|(min, max)| Distribution::IntUniform { min, max }),
            "uniform" => range().map(|(min, max)| Distribution::Uniform { min, max }),
            "log_uniform_values" => {
                range().and_then(positive).map(|(min, max)| Distribution::LogUniformValues { min, max })
            }
            "q_log_uniform_values" => {
                let q = raw.q.unwrap_or(1.0);
                range().and_then(positive).map(|(min, max)| Distribution::QLogUniformValues { min, max, q })
            }
            other => Err(format!("unknown distribution `{other}`; known are {}", DISTRIBUTIONS.join(", "))),
        }
    }
}

impl From<Distribution> for RawDistribution {
    fn from(distribution: Distribution) -> RawDistribution {
        let named = |name: &str, min, max| RawDistribution {
            distribution: Some(name.to_owned()),
            min: Some(min),
            max: Some(max),
            ..RawDistribution::default()
        };
        match distribution {
            Distribution::Values { values } => RawDistribution { values: Some(values), ..RawDistribution::default() },
            Distribution::IntUniform { min, max } => named("int_uniform", min, max),
            Distribution::Uniform { min, max } => named("uniform", min, max),
            Distribution::LogUniformValues { min, max } => named("log_uniform_values", min, max),
            Distribution::QLogUniformValues { min, max, q } => {
                RawDistribution { q: Some(q), ..named("q_log_uniform_values", min, max) }
            }
        }
    }
}

impl Parameter {
    /// The one number this parameter stands for.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep can draw from, and for a number outside `range`; `name` is the key.
    pub fn constant(&self, name: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
        let value = match self {
            Parameter::Constant(value) => *value,
            Parameter::Drawn(_) => {
                let flag = format!("give one number with `--{}`", name.replace('_', "-"));
                return Err(hinted(format!("`{name}` is a distribution, which only a sweep draws from"), flag).into());
            }
        };
        check_range(name, value, range)?;
        Ok(value)
    }

    /// [`Parameter::constant`] for a whole number.
    pub fn whole(&self, name: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
        let value = self.constant(name, *range.start() as f64..=*range.end() as f64)?;
        ensure!(value.fract() == 0.0, "`{name}` must be a whole number, got {value}");
        Ok(value as usize)
    }
}

fn check_range(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<()> {
    let (low, high) = (range.start(), range.end());
    ensure!(
        range.contains(&value),
        hinted(
            format!("`{name}` must be between {low} and {high}, got {value}"),
            "`poolcast config` explains every key"
        )
    );
    Ok(())
}

impl Config {
    /// Defaults, then `file`, then the environment, then `flags` (paths of keys and their values).
    ///
    /// # Errors
    /// An unknown key is an error that names the nearest known one; so are a value of the wrong type or out of range,
    /// and a key that would hold a secret.
    pub fn load(file: Option<&Path>, flags: &BTreeMap<&str, serde_json::Value>) -> Result<Config> {
        let mut figment = Figment::from(Yaml::string(DEFAULT));
        if let Some(file) = file {
            let text = fs_err::read_to_string(file).context(hinted(
                format!("cannot read the configuration `{}`", file.display()),
                "`poolcast config > FILE` writes one to start from",
            ))?;
            refuse_secrets(&text).with_context(|| format!("cannot use `{}`", file.display()))?;
            figment = figment.merge(Yaml::string(&text));
        }
        // POOLCAST_LOG is the filter of diagnostics, and not a key.
        figment = figment.merge(Env::prefixed("POOLCAST_").ignore(&["log", "owner_salt"]).split("__"));
        for (key, value) in flags {
            figment = figment.merge(Serialized::default(key, value));
        }
        let place = file.map_or("the configuration".to_owned(), |file| format!("`{}`", file.display()));
        let config: Config = figment.extract().map_err(|error| explain(&error, &place))?;
        config.check().with_context(|| format!("cannot use {place}"))?;
        Ok(config)
    }

    /// Reads the resolved configuration beside an artefact.
    pub fn read(dir: &Path) -> Result<Config> {
        let path = dir.join(FILE);
        let text = fs_err::read_to_string(&path)?;
        serde_yaml_ng::from_str(&text).with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// Writes the configuration beside an artefact.
    pub fn write(&self, dir: &Path) -> Result<()> {
        crate::files::write_atomic(&dir.join(FILE), serde_yaml_ng::to_string(self)?.as_bytes())
    }

    fn check(&self) -> Result<()> {
        check_range("runs", self.runs as f64, 1.0..=100_000.0)?;
        check_range("epochs", self.epochs as f64, 1.0..=1_000_000.0)?;
        check_range("earlystop_threshold", self.earlystop_threshold as f64, 1.0..=1_000_000.0)?;
        check_range("evaluation.resamples", self.evaluation.resamples as f64, 10.0..=1_000_000.0)?;
        for fraction in self.preprocessing.fractions {
            check_range("preprocessing.fractions", fraction, 0.0..=1.0)?;
        }
        let sum: f64 = self.preprocessing.fractions.iter().sum();
        ensure!((sum - 1.0).abs() < 1e-9, "`preprocessing.fractions` must sum to 1, got {sum}");
        let Advice { release_from, fix_below, .. } = self.advice;
        check_range("advice.release_from", release_from, 0.0..=1.0)?;
        check_range("advice.fix_below", fix_below, 0.0..=release_from)?;
        Ok(())
    }
}

/// Keys that hold a secret are refused wherever they stand: configurations travel with jobs.
fn refuse_secrets(text: &str) -> Result<()> {
    let is_secret = |line: &&str| {
        let key = line.trim_start().trim_start_matches(['{', '"', '\'']).split([':', '"', '\'']).next().unwrap_or("");
        matches!(key, "api_key" | "apikey" | "password" | "token" | "secret") || line.contains("api_key:")
    };
    let found = text.lines().position(|line| is_secret(&line.split('#').next().unwrap_or("")));
    match found {
        None => Ok(()),
        Some(line) => Err(hinted(
            format!(
                "line {} holds a secret; configurations are copied beside artefacts and travel with jobs",
                line + 1
            ),
            "remove it, and set the environment variable `WANDB_API_KEY` or use netrc",
        )
        .into()),
    }
}

fn explain(error: &figment::Error, place: &str) -> anyhow::Error {
    let key = error.path.join(".");
    match &error.kind {
        Kind::UnknownField(found, known) => {
            let nearest = known.iter().max_by(|a, b| {
                let likeness = |name: &str| strsim::jaro_winkler(name, found);
                likeness(a).total_cmp(&likeness(b))
            });
            let full = key.rsplit_once('.').map_or(found.clone(), |(above, _)| format!("{above}.{found}"));
            let hint = match nearest {
                Some(name) => format!("did you mean `{name}`? `poolcast config` prints every key"),
                None => "`poolcast config` prints every key".to_owned(),
            };
            hinted(format!("{place} has an unknown key `{full}`"), hint).into()
        }
        Kind::UnknownVariant(found, known) => {
            let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            hinted(
                format!("{place}: `{key}` must be {}, got `{found}`", known.join(" or ")),
                "`poolcast config` explains every key",
            )
            .into()
        }
        _ if key.is_empty() => hinted(format!("{place}: {}", error.kind), "`poolcast config` prints every key").into(),
        _ => hinted(format!("{place}: `{key}`: {}", error.kind), "`poolcast config` explains every key").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("c.yaml");
        fs_err::write(&path, text)?;
        Config::load(Some(&path), &BTreeMap::new())
    }

    fn refusal(text: &str) -> String {
        crate::error::render(&load(text).expect_err("must be refused"))
    }

    #[test]
    fn the_published_sweep_file_loads() {
        let text = "runs: 100\nepochs: 20\nearlystop_threshold: 5\nwandb:\n  enable: true\n  entity: someone\n  project: p\n  sweep:\n    name: s\n    method: random\n    metric: {name: validation_loss, goal: minimize}\npreprocessing:\n  parameters:\n    j: {distribution: int_uniform, min: 10, max: 100}\n    m: {distribution: int_uniform, min: 10, max: 60}\n    timeframe_len: {distribution: int_uniform, min: 60, max: 660}\ntraining:\n  parameters:\n    lstm_layers: {values: [1, 2, 3, 4]}\n    hidden_size: {values: [32, 64, 128]}\n    learning_rate: {distribution: uniform, min: 0, max: 0.1}\n    batch_size: {distribution: q_log_uniform_values, q: 8, min: 1, max: 256}\n";
        let config = load(text).expect("loads");
        let wanted = Distribution::QLogUniformValues { min: 1.0, max: 256.0, q: 8.0 };
        assert_eq!(config.training.parameters.batch_size, Parameter::Drawn(wanted));
        let dir = tempfile::tempdir().expect("a directory");
        config.write(dir.path()).expect("written");
        let again = Config::read(dir.path()).expect("read");
        assert_eq!(serde_json::to_string(&again).expect("json"), serde_json::to_string(&config).expect("json"));
        assert!(refusal(&format!("{text}# \n").replace("enable: true", "api_key: abc")).contains("WANDB_API_KEY"));
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let text = refusal("preprocessing:\n  parameters:\n    timeframe_length: 5\n");
        assert!(text.contains("preprocessing.parameters.timeframe_length"), "{text}");
        assert!(text.contains("did you mean `timeframe_len`?"), "{text}");
    }

    #[test]
    fn values_out_of_range_repeat_what_was_given() {
        assert!(refusal("epochs: 0").contains("between 1 and 1000000, got 0"));
        assert!(refusal("epochs: many").contains("epochs"));
        assert!(refusal("preprocessing: {fractions: [0.5, 0.1, 0.1]}").contains("sum to 1"));
        assert!(refusal("training: {parameters: {batch_size: {distribution: zipf, min: 1}}}").contains("batch_size"));
        let config = load("training: {parameters: {hidden_size: 2.5, batch_size: {values: [1, 2]}}}").expect("loads");
        let ModelParameters { hidden_size, batch_size, .. } = config.training.parameters;
        assert!(hidden_size.whole("hidden_size", 1..=4096).expect_err("not whole").to_string().contains("2.5"));
        assert!(
            batch_size.whole("batch_size", 1..=9).expect_err("a distribution").to_string().contains("distribution")
        );
    }

    #[test]
    fn flags_win() {
        let flags =
            BTreeMap::from([("preprocessing.parameters.j", serde_json::json!(7)), ("seed", serde_json::json!(9))]);
        let config = Config::load(None, &flags).expect("loads");
        assert_eq!((config.preprocessing.parameters.j, config.seed), (Parameter::Constant(7.0), 9));
    }
}
