//! The row of an ended trial: its parameters, its result, its worker and its times. With the
//! configuration of the sweep, the row is enough to make the trial again.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reported_values::ReportedValues;
use super::trial_config::TrialConfig;
use crate::config::{CommandParameter, Config, TrialSource};
use crate::search::SearchSpace;
use poolcast_config::{Metric, MetricName, Parameter};
use poolcast_holds::rehearsal::AnswerScores;
use poolcast_holds::training::{Epoch, FitScores, TargetScores, TrainingMetrics};
use poolcast_provision::wait_model::WaitModelScores;
use poolcast_queue::{ChunkEntry, WorkItem};

/// The way in which a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialEnd {
    /// The trial has a model.
    Done,
    /// Its loss became NaN or infinite.
    NonFinite,
    /// It exceeded the time limit.
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
///
/// It is stored as an [`EndedTrial`]; a reader adds the configuration by a `RowCompleter`.
#[derive(Debug, Clone, Serialize)]
pub struct TrialRow {
    /// Everything but the configuration.
    #[serde(flatten)]
    pub result: EndedTrial,
    /// The whole configuration.
    #[serde(skip)]
    pub config: Config,
}

impl Deref for TrialRow {
    type Target = EndedTrial;

    fn deref(&self) -> &EndedTrial {
        &self.result
    }
}

impl DerefMut for TrialRow {
    fn deref_mut(&mut self) -> &mut EndedTrial {
        &mut self.result
    }
}

/// An ended trial: its parameters, its result, its worker and its times.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndedTrial {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The maximum number of epochs that it was given.
    pub budget: usize,
    /// The way in which it ended.
    pub ended: TrialEnd,
    /// True if it ended early because a user requested that on its tracker page, as with Stop on
    /// W&B's. It still has a model.
    #[serde(default)]
    pub ended_on_request: bool,
    /// The reason for its failure.
    pub error: Option<String>,
    /// The value of the metric by which the sweep chooses; of several metrics, of the first.
    pub value: Option<f64>,
    /// The values of the further metrics of the sweep, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_values: Vec<Option<f64>>,
    /// The value by which the sweep chooses after each epoch, where it was defined.
    pub values: Vec<Option<f64>>,
    /// The attempt that counts, from 1.
    pub attempt: u32,
    /// The worker that made it.
    pub worker: String,
    /// The start time, by the worker's clock, such as `2026-11-21T02:26:06.000Z`.
    pub began: String,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The root seed.
    pub seed: u64,
    /// The pipeline that it fits, the network's architecture, the kind of wait model, or the
    /// program that it runs.
    pub pipeline: String,
    /// The split that it learns from; only for tables.
    pub split: Option<String>,
    /// Every hyper-parameter that the trial has, without those whose `when` does not hold.
    pub parameters: BTreeMap<String, Value>,
    /// The earlier trials that had not ended when this one was drawn. It learns from all other earlier
    /// trials, so the draw can be made again from their rows. `None` if trials do not learn from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Vec<usize>>,
    /// The metrics of its training.
    pub metrics: Option<TrainingMetrics>,
    /// The scores of a pipeline, for each fold and for the held-out rows.
    pub fit: Option<FitScores>,
    /// The scores of its model as the only member of the answers, if the sweep chooses by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerScores>,
    /// The scores of a wait model on the windows that were held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitModelScores>,
    /// The report of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedValues>,
    /// Duration of each fit, in seconds: the folds, then the model.
    pub fit_seconds: Vec<f64>,
    /// The digest of everything that it was made from.
    pub key: Option<String>,
    /// The digest of its tensors, of its rows of the joined tables, or of its samples of waits.
    pub tensors_key: Option<String>,
}

impl EndedTrial {
    /// The scores of the trial: on the samples after time cuts, on the held-out rows, or the means
    /// over folds.
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

    /// The number of epochs that a network was trained for, or of reports of a program.
    pub fn trained_epochs(&self) -> Option<usize> {
        if let Some(reported) = &self.reported {
            return Some(reported.reports);
        }
        match &self.waits {
            Some(waits) => Some(waits.epochs).filter(|epochs| *epochs > 0),
            None => Some(self.metrics.as_ref()?.epochs),
        }
    }

    /// The work item of this trial.
    pub(crate) fn item(&self) -> WorkItem {
        WorkItem {
            trial: self.trial,
            budget: self.budget,
        }
    }
}

impl TrialRow {
    /// Begins the row of an attempt by `worker`.
    pub(crate) fn begin(entry: &ChunkEntry, worker: &str, config: &Config) -> TrialRow {
        let parameters = hyper_parameters(config);
        let pipeline = match (config.pipelines.first_key_value(), &config.command) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(command)) => command.title().to_owned(),
            (None, None) => parameters
                .get(model_parameter(config))
                .map(plain_value)
                .unwrap_or_default(),
        };
        let result = EndedTrial {
            trial: entry.next_item().trial,
            budget: entry.next_item().budget,
            ended: TrialEnd::Error,
            ended_on_request: false,
            error: None,
            value: None,
            more_values: Vec::new(),
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
            unseen: None,
            metrics: None,
            fit: None,
            answers: None,
            waits: None,
            reported: None,
            fit_seconds: Vec::new(),
            key: None,
            tensors_key: None,
        };
        TrialRow {
            result,
            config: config.clone(),
        }
    }

    /// Removes the parameters that the trial does not have, because their condition in the sweep of
    /// `config` does not hold. The configuration of the trial has their defaults.
    pub(crate) fn without_missing(mut self, config: &Config) -> TrialRow {
        if self.config.pipelines.is_empty() {
            let space = SearchSpace::from_config(config);
            self.result.parameters = space.without_missing(self.result.parameters);
        }
        self
    }

    /// The checked configuration of the trial.
    ///
    /// # Errors
    /// Fails for a trial with parameters that cannot be used.
    pub fn trial_config(&self) -> Result<TrialConfig> {
        TrialConfig::new(self.config.clone())
    }

    /// Its hyper-parameters, without those that have no effect on its kind of wait model.
    pub fn counted_parameters(&self) -> BTreeMap<String, Value> {
        if self.waits.is_none() {
            return self.parameters.clone();
        }
        let mut counted = hyper_parameters(&self.config);
        counted.retain(|name, _| self.parameters.contains_key(name));
        counted
    }

    /// The keys by which trials are compared, if the trial has a value: the value, and the
    /// tie-breaker between equal values.
    pub(crate) fn rank(&self) -> Option<(f64, f64)> {
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

    /// The value of the metric `name` in the scores of the answers, or else in those of its `model`.
    pub(crate) fn value_of(
        &self,
        name: MetricName,
        model: impl Fn(MetricName) -> Option<f64>,
    ) -> Option<f64> {
        let answers = |scores: &AnswerScores| scores.value(name);
        self.answers
            .as_ref()
            .and_then(answers)
            .or_else(|| model(name))
    }

    /// The values of the further metrics of the sweep.
    fn further(&self, value: impl Fn(&Metric) -> Option<f64>) -> Vec<Option<f64>> {
        let others = self.config.wandb.sweep.metric.others();
        others.iter().map(value).collect()
    }

    /// Records the result of a training.
    pub(crate) fn set_training(&mut self, metrics: TrainingMetrics, history: &[Epoch]) {
        let name = self.config.wandb.sweep.metric.name;
        self.values = history.iter().map(|epoch| epoch.watched(name)).collect();
        let value = |name| self.value_of(name, |name| metrics.value(name));
        let further = self.further(|metric| value(metric.name));
        (self.value, self.more_values) = (value(name), further);
        self.metrics = Some(metrics);
    }

    /// Records the result of a fit: its scores, and the duration of each of its fits in seconds.
    pub(crate) fn set_fit(&mut self, scores: FitScores, seconds: Vec<f64>) {
        let value = |name| self.value_of(name, |name| scores.watched(name));
        let further = self.further(|metric| value(metric.name));
        (self.value, self.more_values) = (value(self.config.wandb.sweep.metric.name), further);
        self.fit = Some(scores);
        self.fit_seconds = seconds;
    }

    /// Records the result of a wait model.
    pub(crate) fn set_waits(&mut self, scores: WaitModelScores) {
        self.value = scores.watched(self.config.wandb.sweep.metric.name);
        self.more_values = self.further(|metric| scores.watched(metric.name));
        self.values = vec![self.value];
        self.waits = Some(scores);
    }

    /// Records the report of a program: its metric at the end, the metric at each report, and the
    /// rest.
    pub(crate) fn set_report(
        &mut self,
        value: Option<f64>,
        values: Vec<Option<f64>>,
        reported: ReportedValues,
    ) {
        self.value = value;
        let is_judged = value.is_some();
        self.more_values = self.further(|metric| {
            let last = reported.last.get(metric.reported.as_deref()?).copied();
            last.filter(|_| is_judged)
        });
        self.values = values;
        self.reported = Some(reported);
    }

    /// The row of an item that was given up because too many workers died of it.
    pub(crate) fn quarantined(item: WorkItem, tries: u32, config: &Config) -> TrialRow {
        let error = format!(
            "{} in a row died on this trial or lost it",
            poolcast_base::output::counted(tries as usize, "worker")
        );
        let entry = ChunkEntry {
            attempt: tries,
            ..ChunkEntry::new(item)
        };
        TrialRow::never_run(&entry, error, config)
    }

    /// The row of `entry`, a trial that no worker has ended.
    pub(crate) fn never_run(entry: &ChunkEntry, error: String, config: &Config) -> TrialRow {
        let mut row = TrialRow::begin(entry, "", config);
        row.ended = TrialEnd::Quarantined;
        row.error = Some(error);
        row.began = String::new();
        row
    }
}

/// The full epoch budget of the trial `config`; 1 for the fit of a pipeline.
pub(crate) fn whole_budget(config: &Config) -> usize {
    if config.pipelines.is_empty() {
        config.epochs
    } else {
        1
    }
}

/// The name of the parameter that selects the model of a trial without pipelines.
fn model_parameter(config: &Config) -> &'static str {
    match config.trial_source() {
        TrialSource::WaitSamples => "name",
        TrialSource::Logs | TrialSource::Tables | TrialSource::Command => "model",
    }
}

/// Every hyper-parameter in `config` by its name. For wait models only the parameters that have a
/// value.
pub fn hyper_parameters(config: &Config) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut add = |name: &str, parameter: &Parameter| {
        let value = match parameter {
            Parameter::Constant(value) => value.clone(),
            Parameter::Drawn(distribution) => json!(distribution),
        };
        all.insert(name.to_owned(), value);
    };

    if let Some(command) = &config.command {
        let value = |parameter: &CommandParameter| match parameter {
            CommandParameter::Constant(value) => value.clone(),
            CommandParameter::Drawn(_) | CommandParameter::Nested(_) => json!(parameter),
        };
        let parameters = command.all().into_iter();
        return parameters
            .map(|(name, of_program)| (name, value(of_program)))
            .collect();
    }
    if config.trial_source() == TrialSource::WaitSamples {
        for (name, parameter) in config.provision.model.all() {
            add(&name, parameter);
        }
        // Parameters without a value have the default of the model's kind.
        all.retain(|_, value| !value.is_null());
        return all;
    }
    if !config.data.is_given() {
        for (name, parameter) in config.preprocessing.parameters.all() {
            add(&name, parameter);
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
                add(&name, parameter);
            }
        }
    }
    all
}

/// A string without its quotes; any other value as JSON.
pub fn plain_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
