//! Configuration: layers of YAML and environment → one checked [`Config`], saved beside every artefact.

mod dag;
mod data;
mod distribution;
mod parameter;
mod pipelines;
mod schema;
mod states;
mod sweep;
mod threshold;
pub mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use figment::Figment;
use figment::error::Kind;
use figment::providers::{Env, Serialized};
use figment::value::{Dict, Value};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{HintedError, hinted};
pub use dag::{Command, Commands, Dag, SharedInputs, Submit};
pub use data::{Cv, Data, EVALUATE, Folds, WHOLE};
pub use distribution::Distribution;
use parameter::check_range;
pub use parameter::{Parameter, whole};
pub use pipelines::{MOST_TRIALS, PipelineSpace, PipelineSpaces, TrialOrder};
pub use states::{StateEvent, StateEvents};
pub use sweep::{Asha, EarlyTerminate, Hyperband, Method, Sweep};
pub use threshold::Threshold;

/// The defaults, commented; every key there is.
pub const DEFAULT: &str = include_str!("../config/default.yaml");

/// The search spaces of the pipelines, for those that a configuration only names.
const PIPELINES: &str = include_str!("../config/pipelines.yaml");

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
    pub earlystop_min_delta: f64,
    pub earlystop_metric: Metric,
    pub wandb: Wandb,
    pub preprocessing: Preprocessing,
    pub training: Training,
    pub data: Data,
    pub pipelines: BTreeMap<String, PipelineSpaces>,
    #[serde(default)]
    pub trial_order: TrialOrder,
    pub evaluation: Evaluation,
    pub advice: Advice,
    pub dag: Dag,
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
    #[serde(default, deserialize_with = "id")]
    pub sweep_id: Option<String>,
    #[serde(default, deserialize_with = "id")]
    pub run_id: Option<String>,
}

/// An id of W&B's, where `None` is Python's word for none.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|id| id != "None"))
}

/// A value that a training is watched by, or a trial chosen by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Metric {
    pub name: MetricName,
    pub goal: Goal,
}

/// The metrics of the validation split; other names that files have for them are read, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named as in config/default.yaml")]
pub enum MetricName {
    #[serde(
        alias = "validate_loss",
        alias = "val_loss",
        alias = "val/loss",
        alias = "validation/loss"
    )]
    ValidationLoss,
    #[serde(
        alias = "val_roc_auc",
        alias = "val_auc",
        alias = "roc_auc",
        alias = "auc"
    )]
    ValidationRocAuc,
    #[serde(alias = "val_average_precision", alias = "average_precision")]
    ValidationAveragePrecision,
    #[serde(
        alias = "f-measure",
        alias = "f_measure",
        alias = "val_f_measure",
        alias = "validation_f1"
    )]
    #[serde(
        alias = "val_f1",
        alias = "val/f1",
        alias = "val_f1_score",
        alias = "f1_score",
        alias = "f1"
    )]
    ValidationFMeasure,
    #[serde(
        alias = "val_accuracy",
        alias = "val_acc",
        alias = "val/accuracy",
        alias = "accuracy"
    )]
    ValidationAccuracy,
    #[serde(alias = "val_brier", alias = "brier")]
    ValidationBrier,
}

/// These words are shown as they are written.
macro_rules! shown_as_written {
    ($($name:ty),+) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.serialize(f)
            }
        }
    )+};
}
shown_as_written!(MetricName, Context, Vocabulary, Split);

/// Whether less or more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Goal {
    Minimize,
    Maximize,
}

impl Goal {
    /// A value as something of which less is better.
    pub fn loss(self, value: f64) -> f64 {
        match self {
            Goal::Minimize => value,
            Goal::Maximize => -value,
        }
    }

    /// The item with the best value, the first of equals.
    pub fn best<T>(self, items: impl Iterator<Item = T>, value: impl Fn(&T) -> f64) -> Option<T> {
        items.reduce(|best, next| {
            if self.is_better(value(&next), value(&best)) {
                next
            } else {
                best
            }
        })
    }

    /// The order of two trials by their values, the better one first; of equals the one with less validation loss.
    pub fn order(self, a: (f64, f64), b: (f64, f64)) -> std::cmp::Ordering {
        self.loss(a.0)
            .total_cmp(&self.loss(b.0))
            .then(a.1.total_cmp(&b.1))
    }

    /// Whether `a` is better than `b`.
    fn is_better(self, a: f64, b: f64) -> bool {
        self.is_gain(a, b, 0.0)
    }

    /// Whether `a` is better than `b` by more than `min_delta`.
    pub fn is_gain(self, a: f64, b: f64, min_delta: f64) -> bool {
        self.loss(a) < self.loss(b) - min_delta
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
    pub context: Parameter<Context>,
    pub vocabulary: Parameter<Vocabulary>,
    pub states: Parameter<StateEvents>,
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

/// Which other jobs a sample shows, of those that exist in its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Context {
    /// Drawn, each as likely.
    Uniform,
    /// Those whose last events are the latest.
    Recent,
    /// Drawn among the owner's jobs, then among the others.
    SameOwnerFirst,
}

/// The states of a job that a sample tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Vocabulary {
    /// One for each event number.
    Events,
    /// The same, and one for each hold code in place of event 012.
    HoldCodes,
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

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Training {
    pub checkpoint_minutes: f64,
    pub threshold: Threshold,
    pub parameters: ModelParameters,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct ModelParameters {
    pub model: Parameter<String>,
    pub lstm_layers: Parameter,
    pub hidden_size: Parameter,
    pub learning_rate: Parameter,
    pub weight_decay: Parameter,
    pub clip_grad_norm: Parameter,
    pub batch_size: Parameter,
    pub pos_weight: Parameter,
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

impl Config {
    /// Defaults, then `file`, then the environment, then `flags` (paths of keys and their values).
    ///
    /// # Errors
    /// An unknown key is an error that names the nearest known one; so are a value of the wrong type or out of range,
    /// and a key that would hold a secret.
    pub fn load(file: Option<&Path>, flags: &BTreeMap<&str, serde_json::Value>) -> Result<Config> {
        let mut figment = Figment::from(Serialized::defaults(yaml::read::<Dict>(DEFAULT)?));
        if let Some(file) = file {
            let dict = read_dict(&read_file(file)?)
                .with_context(|| format!("cannot use `{}`", file.display()))?;
            figment = figment.merge(Serialized::defaults(dict));
        }
        refuse_secrets_of_environment()?;
        // POOLCAST_LOG is the filter of diagnostics, and not a key.
        let others = ["log", "owner_salt", "owner_salt_file", "file_mode"];
        figment = figment.merge(Env::prefixed(PREFIX).ignore(&others).split("__"));
        for (key, value) in flags {
            figment = figment.merge(Serialized::default(key, value));
        }
        let place = file.map_or("the configuration".to_owned(), |file| {
            format!("`{}`", file.display())
        });
        let config: Config = figment.extract().map_err(|error| explain(&error, &place))?;
        config
            .check()
            .with_context(|| format!("cannot use {place}"))?;
        Ok(config)
    }

    /// Keeps of the pipelines those called `names`; what has no search space in the configuration gets that of
    /// `config/pipelines.yaml`.
    ///
    /// # Errors
    /// Fails for a name that is no pipeline, and names the nearest.
    pub fn choose_pipelines(&mut self, names: &[String]) -> Result<()> {
        #[derive(Deserialize)]
        struct Spaces {
            pipelines: BTreeMap<String, PipelineSpaces>,
        }
        let spaces = yaml::read::<Spaces>(PIPELINES)?.pipelines;
        let known = std::mem::take(&mut self.pipelines);
        for name in names {
            let Some(pipeline) = known.get(name).or_else(|| spaces.get(name)) else {
                let nearest = nearest(name, spaces.keys().map(String::as_str));
                let nearest = nearest.map_or(String::new(), |nearest| {
                    format!("did you mean `{nearest}`? ")
                });
                let all: Vec<String> = spaces.keys().map(|name| format!("`{name}`")).collect();
                let hint = format!(
                    "{nearest}`config/pipelines.yaml` has a search space for {}",
                    all.join(", ")
                );
                return Err(hinted(format!("there is no pipeline `{name}`"), hint).into());
            };
            self.pipelines.insert(name.clone(), pipeline.clone());
        }
        Ok(())
    }

    /// Reads the resolved configuration beside an artefact.
    pub fn read(dir: &Path) -> Result<Config> {
        let path = dir.join(FILE);
        let text = crate::files::read_regular(&path, yaml::MOST_BYTES)?;
        let config = std::str::from_utf8(&text)
            .map_err(Into::into)
            .and_then(yaml::read);
        config.with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// Writes the configuration beside an artefact.
    pub fn write(&self, dir: &Path) -> Result<()> {
        crate::files::write_atomic(&dir.join(FILE), yaml::write(self)?.as_bytes())
    }

    fn check(&self) -> Result<()> {
        let least = if self.pipelines.is_empty() { 1.0 } else { 0.0 };
        check_range("runs", self.runs as f64, least..=MOST_TRIALS as f64)?;
        check_range("epochs", self.epochs as f64, 1.0..=1_000_000.0)?;
        check_range(
            "earlystop_threshold",
            self.earlystop_threshold as f64,
            1.0..=1_000_000.0,
        )?;
        check_range("earlystop_min_delta", self.earlystop_min_delta, 0.0..=1e6)?;
        check_range(
            "evaluation.resamples",
            self.evaluation.resamples as f64,
            10.0..=1_000_000.0,
        )?;
        check_range(
            "training.checkpoint_minutes",
            self.training.checkpoint_minutes,
            0.0..=1e6,
        )?;
        if let Some(year) = self.parse.year {
            check_range("parse.year", f64::from(year), 1970.0..=2100.0)?;
        }
        ensure!(
            !self.wandb.enable,
            hinted(
                "`wandb.enable` is true, and this version of poolcast sends nothing to W&B",
                "write `enable: false`, or leave the file as it is and set POOLCAST_WANDB__ENABLE=false; all that is measured \
                 is kept in files: docs/sweeps.md"
            )
        );
        self.training.threshold.check()?;
        self.wandb.sweep.check(self.epochs)?;
        self.data.check()?;
        ensure!(
            !self.data.is_given() || self.wandb.sweep.early_terminate.is_none(),
            "`wandb.sweep.early_terminate` is for trials of the network, and pipelines over `data` have none"
        );
        self.pipelines
            .iter()
            .try_for_each(|(name, pipeline)| pipeline.check(name))?;
        for fraction in self.preprocessing.fractions {
            check_range("preprocessing.fractions", fraction, 0.0..=1.0)?;
        }
        let sum: f64 = self.preprocessing.fractions.iter().sum();
        ensure!(
            (sum - 1.0).abs() < 1e-9,
            "`preprocessing.fractions` must sum to 1, got {sum}"
        );
        let Advice {
            release_from,
            fix_below,
            ..
        } = self.advice;
        check_range("advice.release_from", release_from, 0.0..=1.0)?;
        check_range("advice.fix_below", fix_below, 0.0..=release_from)?;
        check_range("dag.max_jobs", self.dag.max_jobs as f64, 1.0..=100_000.0)?;
        let trials_per_job = self.dag.trials_per_job.unwrap_or(1);
        check_range(
            "dag.trials_per_job",
            trials_per_job as f64,
            1.0..=1_000_000.0,
        )?;
        Ok(())
    }
}

/// The beginning of the names of environment variables that are keys.
const PREFIX: &str = "POOLCAST_";

/// The text of a configuration, as far as one is read.
fn read_file(file: &Path) -> Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    // A pipe is taken, too.
    let opened = fs_err::File::open(file);
    opened
        .and_then(|opened| opened.take(yaml::MOST_BYTES + 1).read_to_string(&mut text))
        .context(hinted(
            format!("cannot read the configuration `{}`", file.display()),
            "`poolcast config > FILE` writes one to start from",
        ))?;
    Ok(text)
}

/// What a configuration says; an empty one says nothing.
fn read_dict(text: &str) -> Result<Dict> {
    let dict = yaml::read::<Option<Dict>>(text)?.unwrap_or_default();
    if let Some(key) = secret(&dict, "") {
        return Err(refused_secret(&format!("`{key}`"), "remove it").into());
    }
    refuse_older_form(&dict)?;
    Ok(dict)
}

/// The path of a key that holds a secret. Configurations travel with jobs.
fn secret(dict: &Dict, above: &str) -> Option<String> {
    dict.iter().find_map(|(key, value)| {
        let path = format!("{above}{key}");
        // The names below are the user's own.
        if path == "data.splits" {
            return None;
        }
        let below = || {
            value
                .as_dict()
                .and_then(|dict| secret(dict, &format!("{path}.")))
        };
        if is_secret(key) {
            Some(path.clone())
        } else {
            below()
        }
    })
}

fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    let words = [
        "api_key",
        "apikey",
        "access_key",
        "private_key",
        "password",
        "passwd",
        "token",
        "secret",
        "credentials",
    ];
    words.iter().any(|word| {
        key.strip_suffix(word)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

fn refused_secret(what: &str, remedy: &str) -> HintedError {
    hinted(
        format!(
            "{what} holds a secret; configurations are copied beside artefacts and travel with jobs"
        ),
        format!("{remedy}, and set the environment variable `WANDB_API_KEY` or use netrc"),
    )
}

fn refuse_secrets_of_environment() -> Result<()> {
    for (name, _) in std::env::vars_os() {
        let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if key.split("__").any(is_secret) {
            return Err(refused_secret(
                &format!("the environment variable `{PREFIX}{key}`"),
                "unset it",
            )
            .into());
        }
    }
    Ok(())
}

/// The first published files had values beside the search space, for when W&B is off.
fn refuse_older_form(dict: &Dict) -> Result<()> {
    const OLDER: &str = "parameters_default";
    let sections = ["preprocessing", "training"];
    let found = |section: &&str| {
        dict.get(*section)
            .and_then(Value::as_dict)
            .and_then(|dict| dict.get(OLDER))
    };
    let Some(section) = sections
        .into_iter()
        .find(|section| found(section).is_some())
    else {
        return Ok(());
    };
    bail!(hinted(
        format!("`{section}.{OLDER}` is of an older form of the published file"),
        format!(
            "to try the search space, remove `{OLDER}`, and write `runs: 50` and `epochs: 25` at the top; for one training \
             with these values, write them as `{section}: {{parameters: {{...}}}}` in place of the distributions"
        )
    ))
}

/// Keys of other forms of the file, and what to write.
const OTHER_KEYS: [(&str, &str); 4] = [
    (
        "wandb.sweep_preprocessing_runs",
        "write how many trials a sweep makes as `runs: 50`, at the top",
    ),
    (
        "wandb.sweep_training_runs",
        "write how many trials a sweep makes as `runs: 50`, at the top",
    ),
    (
        "training.parameters.epochs",
        "write the most epochs as `epochs: 25`, at the top",
    ),
    (
        "io",
        "leave it out: `out: DIR` says where everything is left, and models are called model.safetensors",
    ),
];

/// The one of `known` that `name` is likely to mean: but for a few letters, or their case, the same word.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name);
    let (distance, known) = known
        .map(|known| (distance(known), known))
        .min_by_key(|(distance, _)| *distance)?;
    (3 * distance <= name.chars().count().min(known.chars().count())).then_some(known)
}

fn explain(error: &figment::Error, place: &str) -> anyhow::Error {
    let key = error.path.join(".");
    match &error.kind {
        Kind::UnknownField(found, known) => {
            let nearest = nearest(found, known.iter().copied());
            let above =
                &error.path[..error.path.len() - usize::from(error.path.last() == Some(found))];
            let full = above
                .iter()
                .chain([found])
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(".");
            let other = OTHER_KEYS.iter().find(|(key, _)| *key == full);
            let hint = match nearest {
                _ if other.is_some() => other.map_or("", |(_, hint)| hint).to_owned(),
                Some(name) => format!("did you mean `{name}`? `poolcast config` prints every key"),
                None => "`poolcast config` prints every key".to_owned(),
            };
            hinted(format!("{place} has an unknown key `{full}`"), hint).into()
        }
        Kind::UnknownVariant(found, known) => {
            let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            hinted(
                format!(
                    "{place}: `{key}` must be {}, got `{found}`",
                    known.join(" or ")
                ),
                "`poolcast config` explains every key",
            )
            .into()
        }
        _ if key.is_empty() => hinted(
            format!("{place}: {}", error.kind),
            "`poolcast config` prints every key",
        )
        .into(),
        _ => hinted(
            format!("{place}: `{key}`: {}", error.kind),
            "`poolcast config` explains every key",
        )
        .into(),
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
        let text = include_str!("../config/sweep.yaml");
        let config = load(text).expect("loads");
        let Parameter::Drawn(batch_size) = &config.training.parameters.batch_size else {
            panic!("it is drawn")
        };
        assert_eq!(batch_size.draw(0.99), serde_json::json!(248));
        let dir = tempfile::tempdir().expect("a directory");
        config.write(dir.path()).expect("written");
        let again = Config::read(dir.path()).expect("read");
        assert_eq!(
            serde_json::to_string(&again).expect("json"),
            serde_json::to_string(&config).expect("json")
        );
        assert!(refusal(&text.replace("enable: false", "api_key: abc")).contains("WANDB_API_KEY"));
    }

    /// Each is refused where W&B's schema refuses it, and taken where that takes it. Nested parameters are those of a space,
    /// a configuration always has parameters, and the method `custom` asks for a program of W&B's.
    #[test]
    fn verdicts_are_those_of_the_schema() {
        use serde_json::{Value, json};
        let vectors: Value =
            serde_json::from_str(include_str!("../tests/data/wandb/sweeps_vectors.json"))
                .expect("JSON");
        let files = [
            (
                "min_ge_max",
                json!({"parameters": {"a": {"min": 2, "max": 1}}}),
            ),
            (
                "mixed_int_float",
                json!({"parameters": {"a": {"min": 1, "max": 2.5}}}),
            ),
            (
                "grid_uniform",
                json!({"method": "grid", "parameters": {"a": {"min": 0.0, "max": 1.0}}}),
            ),
            (
                "bayes_no_metric",
                json!({"method": "bayes", "parameters": {"a": {"min": 0.0, "max": 1.0}}}),
            ),
            (
                "cat_with_prob_named",
                json!({"parameters": {"a": {"distribution": "categorical", "values": [1, 2], "probabilities": [0.5, 0.5]}}}),
            ),
            (
                "prob_not_1",
                json!({"parameters": {"a": {"values": [1, 2], "probabilities": [0.5, 0.4]}}}),
            ),
            (
                "log_uniform_dep",
                json!({"parameters": {"a": {"distribution": "log_uniform", "min": -3, "max": 0}}}),
            ),
            (
                "unknown_key",
                json!({"foo": 1, "parameters": {"a": {"value": 1}}}),
            ),
            (
                "unknown_param_key",
                json!({"parameters": {"a": {"min": 1, "max": 2, "step": 1}}}),
            ),
            (
                "hyper_no_iter",
                json!({"early_terminate": {"type": "hyperband", "eta": 2}}),
            ),
            ("run_cap0", json!({"run_cap": 0})),
            (
                "str_number_1e-3",
                json!({"parameters": {"a": {"min": "1e-3", "max": 1.0}}}),
            ),
        ];
        for (name, mut file) in files {
            let is_refused = !vectors["schema"][name]
                .as_array()
                .expect("messages")
                .is_empty();
            let parameter = file
                .as_object_mut()
                .and_then(|file| file.remove("parameters"));
            let a = parameter.map_or(json!(1), |parameters| parameters["a"].clone());
            let text =
                json!({"wandb": {"sweep": file}, "training": {"parameters": {"pos_weight": a}}})
                    .to_string();
            assert_eq!(load(&text).is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let text = refusal("preprocessing:\n  parameters:\n    timeframe_length: 5\n");
        assert!(
            text.contains("preprocessing.parameters.timeframe_length"),
            "{text}"
        );
        assert!(text.contains("did you mean `timeframe_len`?"), "{text}");
    }

    #[test]
    fn values_out_of_range_repeat_what_was_given() {
        assert!(refusal("epochs: 0").contains("between 1 and 1000000, got 0"));
        assert!(refusal("epochs: many").contains("epochs"));
        assert!(refusal("preprocessing: {fractions: [0.5, 0.1, 0.1]}").contains("sum to 1"));
        assert!(
            refusal("training: {parameters: {batch_size: {distribution: zipf, min: 1}}}")
                .contains("batch_size")
        );
        let config =
            load("training: {parameters: {hidden_size: 2.5, batch_size: {values: [1, 2]}}}")
                .expect("loads");
        let ModelParameters {
            hidden_size,
            batch_size,
            ..
        } = config.training.parameters;
        assert!(
            hidden_size
                .whole("hidden_size", 1..=4096)
                .expect_err("not whole")
                .to_string()
                .contains("2.5")
        );
        assert!(
            batch_size
                .whole("batch_size", 1..=9)
                .expect_err("a distribution")
                .to_string()
                .contains("distribution")
        );
    }

    #[test]
    fn flags_win() {
        let flags = BTreeMap::from([
            ("preprocessing.parameters.j", serde_json::json!(7)),
            ("seed", serde_json::json!(9)),
        ]);
        let config = Config::load(None, &flags).expect("loads");
        assert_eq!(
            (config.preprocessing.parameters.j, config.seed),
            (Parameter::Constant(7.0), 9)
        );
    }
}
