//! How a trial ended → one row: what it was, what came of it, who did it and when; enough to make
//! the trial again.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::trial_config::TrialConfig;
use poolcast_config::{Config, MetricName, Parameter, TrialSource, whole};
use poolcast_provision::wait_model::WaitModelScores;
use poolcast_queue::{ChunkEntry, WorkItem};
use poolcast_holds::training::{Epoch, FitScores, TargetScores, TrainingMetrics, TrainingStatus};

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialEnd {
    /// With a model.
    Done,
    /// Its loss was no longer a number.
    NonFinite,
    /// It took too long.
    TimeLimit,
    /// Its parameters cannot be used.
    Invalid,
    /// It failed, and would fail again.
    Error,
    /// Too many workers died of it.
    Quarantined,
}

impl std::fmt::Display for TrialEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// One row of a sweep's results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialRow {
    /// Counted from 1.
    pub trial: usize,
    /// The most epochs it was given.
    pub budget: usize,
    /// How it ended.
    pub ended: TrialEnd,
    /// Whether it ended early because somebody asked for that on its page of a tracker. It has a
    /// model all the same.
    #[serde(default)]
    pub ended_on_request: bool,
    /// Why it failed.
    pub error: Option<String>,
    /// The value that the sweep chooses by.
    pub value: Option<f64>,
    /// That value after each epoch, where it was defined.
    pub values: Vec<Option<f64>>,
    /// The attempt that counts, from 1.
    pub attempt: u32,
    /// Who made it.
    pub worker: String,
    /// When it began, by the worker's clock.
    pub began: String,
    /// How long it took.
    pub seconds: f64,
    /// The root seed.
    pub seed: u64,
    /// What it fits: a pipeline, or the network's model.
    pub pipeline: String,
    /// The split of tables that it learns from.
    pub split: Option<String>,
    /// Every hyper-parameter.
    pub parameters: BTreeMap<String, Value>,
    /// How its training went.
    pub metrics: Option<TrainingMetrics>,
    /// The scores of a pipeline, of each fold and of the rows held out.
    pub fit: Option<FitScores>,
    /// What a model of waits came to on the windows that were held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitModelScores>,
    /// How long each fit took: the folds, then the model.
    pub fit_seconds: Vec<f64>,
    /// The digest of everything it was made from.
    pub key: Option<String>,
    /// The digest of its tensors, of its rows of the joined tables, or of its samples of waits.
    pub tensors_key: Option<String>,
    /// The whole configuration: `poolcast train` with it makes the trial again, `poolcast provision train`
    /// one over samples of waits, and `poolcast sweep` a pipeline's.
    pub config: Config,
}

impl TrialRow {
    /// The row of an attempt that `worker` begins.
    pub(super) fn begin(entry: &ChunkEntry, worker: &str, config: &Config) -> TrialRow {
        let parameters = hyper_parameters(config);
        let pipeline = match config.pipelines.first_key_value() {
            Some((name, _)) => name.clone(),
            None => parameters
                .get(model_parameter(config))
                .map(plain_value)
                .unwrap_or_default(),
        };
        TrialRow {
            trial: entry.next_item().trial,
            budget: entry.next_item().budget,
            ended: TrialEnd::Error,
            ended_on_request: false,
            error: None,
            value: None,
            values: Vec::new(),
            attempt: entry.attempt,
            worker: worker.to_owned(),
            began: jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
                .to_string(),
            seconds: 0.0,
            seed: config.seed,
            pipeline,
            split: config
                .data
                .split_names
                .first()
                .cloned()
                .filter(|_| config.data.is_given()),
            parameters,
            metrics: None,
            fit: None,
            waits: None,
            fit_seconds: Vec::new(),
            key: None,
            tensors_key: None,
            config: config.clone(),
        }
    }

    /// What the trial is.
    ///
    /// # Errors
    /// Fails for a trial that could not be.
    pub fn trial_config(&self) -> Result<TrialConfig> {
        TrialConfig::new(self.config.clone())
    }

    /// The scores that it was judged by: on the samples after time cuts, on the rows held out, or
    /// the means over folds.
    pub fn scores(&self) -> Option<TargetScores> {
        let of_fit = self.fit.as_ref().and_then(|fit| fit.judged().copied());
        let of_network = || {
            let epoch = self.metrics.as_ref()?.of_model()?;
            Some(TargetScores::of_classes(
                epoch.validation_loss,
                epoch.validation,
            ))
        };
        of_fit.or_else(of_network)
    }

    /// Its hyper-parameters, without those that do not count for its kind of model of waits.
    pub fn counted_parameters(&self) -> BTreeMap<String, Value> {
        match self.waits {
            Some(_) => hyper_parameters(&self.config),
            None => self.parameters.clone(),
        }
    }

    /// The epochs that a network has gone through.
    pub fn trained_epochs(&self) -> Option<usize> {
        match &self.waits {
            Some(waits) => Some(waits.epochs).filter(|epochs| *epochs > 0),
            None => Some(self.metrics.as_ref()?.epochs),
        }
    }

    /// What trials are compared by, where they have it: their value, and what decides between
    /// equals.
    pub(super) fn rank(&self) -> Option<(f64, f64)> {
        if let Some(waits) = &self.waits {
            let metric = self.config.wandb.sweep.metric.name;
            return Some((self.value?, waits.tie_breaker(metric)));
        }
        let scored = |name| match &self.fit {
            Some(fit) => fit.watched(name),
            None => self.metrics.as_ref()?.value(name),
        };
        let loss = scored(MetricName::ValidationLoss);
        let roc_auc = scored(MetricName::ValidationRocAuc);
        let metric = self.config.wandb.sweep.metric.name;
        Some((self.value?, metric.tie_breaker(loss, roc_auc)))
    }

    /// What it is the row of.
    pub(super) fn item(&self) -> WorkItem {
        WorkItem {
            trial: self.trial,
            budget: self.budget,
        }
    }

    /// Takes over what a training came to.
    pub(super) fn set_training(&mut self, metrics: TrainingMetrics, history: &[Epoch]) {
        let name = self.config.wandb.sweep.metric.name;
        self.values = history.iter().map(|epoch| epoch.watched(name)).collect();
        self.value = metrics.value(name);
        if metrics.status == TrainingStatus::TerminatedEarly {
            // With so many epochs it is made again.
            self.config.epochs = metrics.epochs;
        }
        self.metrics = Some(metrics);
    }

    /// Takes over what a fit came to: its scores, and how long each of its fits took.
    pub(super) fn set_fit(&mut self, scores: FitScores, seconds: Vec<f64>) {
        self.value = scores.watched(self.config.wandb.sweep.metric.name);
        self.fit = Some(scores);
        self.fit_seconds = seconds;
    }

    /// Takes over what a model of waits came to.
    pub(super) fn set_waits(&mut self, scores: WaitModelScores) {
        self.value = scores.watched(self.config.wandb.sweep.metric.name);
        self.values = vec![self.value];
        self.waits = Some(scores);
    }

    /// The row of an item that no worker survived.
    pub(super) fn quarantined(item: WorkItem, tries: u32, config: &Config) -> TrialRow {
        let error = format!(
            "{} died of it or lost it, one after the other",
            poolcast_base::output::counted(tries as usize, "worker")
        );
        let row = TrialRow::begin(
            &ChunkEntry {
                attempt: tries,
                ..ChunkEntry::new(item)
            },
            "",
            config,
        );
        TrialRow {
            ended: TrialEnd::Quarantined,
            error: Some(error),
            began: String::new(),
            ..row
        }
    }
}

/// The epochs of the trial `config` that is given all of them; a fit is one.
pub(super) fn whole_budget(config: &Config) -> usize {
    if config.pipelines.is_empty() {
        config.epochs
    } else {
        1
    }
}

/// The name of the parameter that says which model a trial without pipelines of its own trains.
fn model_parameter(config: &Config) -> &'static str {
    match config.trial_source() {
        TrialSource::WaitSamples => "name",
        TrialSource::Logs | TrialSource::Tables => "model",
    }
}

/// Every hyper-parameter in `config` by its name; of models of waits those that have a value.
pub fn hyper_parameters(config: &Config) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut add = |name: &str, parameter: &Parameter| {
        let value = match parameter {
            Parameter::Constant(value) => whole(value.clone()),
            Parameter::Drawn(distribution) => json!(distribution),
        };
        all.insert(name.to_owned(), value);
    };

    if config.trial_source() == TrialSource::WaitSamples {
        for (name, parameter) in config.provision.model.all() {
            add(&name, parameter);
        }
        // What nothing was written for is as usual for the kind of model.
        all.retain(|_, value| !value.is_null());
        return all;
    }
    if !config.data.is_given() {
        for (name, parameter) in config.preprocessing.parameters.all() {
            add(name, parameter);
        }
    }
    match config.pipelines.values().next() {
        Some(spaces) => {
            for space in spaces.all() {
                for (name, parameter) in &space.parameters {
                    add(name, parameter);
                }
            }
        }
        None => {
            for (name, parameter) in config.training.parameters.all() {
                add(name, parameter);
            }
        }
    }
    all
}

/// A word without its quotes; anything else as JSON.
pub fn plain_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
