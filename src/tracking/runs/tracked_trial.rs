//! Builds a [`TrackedRun`] from the files of a trial or a training, or from a trial's row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::tracked_run::{TrackedEpoch, TrackedOutcome, TrackedRun, run_id};
use poolcast_base::moment::parse_time_ms;
use poolcast_base::stats::Scores;
use poolcast_config::{Metric, MetricName};
use poolcast_holds::training::{
    Epoch, EpochTimes, TargetScores, TrainingMetrics, TrainingStatus, read_epoch_times,
    read_history,
};
use poolcast_sweep::config::Config;
use poolcast_sweep::{
    EndedTrial, NETWORK_KIND, ParameterNames, TrialAtWork, TrialEnd, hyper_parameters, plain_value,
    trial_kind,
};

/// Name prefix of metrics on the samples that were learned from.
pub(crate) const TRAIN: &str = "train_";

/// Name prefix of metrics on samples that were not learned from. The metrics that a sweep can
/// optimize have the same prefix.
pub(crate) const VALIDATION: &str = "validation_";

/// Name prefix of the scores by which trials are compared, as in [`MetricName::judged_name`].
pub(crate) const JUDGED: &str = "judged_";

/// The `status` of a run that a user ended on its page.
const ENDED_ON_REQUEST: &str = "ended on request";

/// The part of a sweep's configuration that the runs of its trials need.
#[derive(Debug, Clone)]
pub(super) struct TrackedSweep {
    name: String,
    metric: Metric,
    pipelines: BTreeSet<String>,
    parameter_names: ParameterNames,
}

impl TrackedSweep {
    pub(super) fn from_config(sweep: &Config) -> TrackedSweep {
        TrackedSweep {
            name: sweep.wandb.sweep.name.clone(),
            metric: sweep.wandb.sweep.metric.first().clone(),
            pipelines: sweep.pipelines.keys().cloned().collect(),
            parameter_names: ParameterNames::from_config(sweep),
        }
    }

    /// Builds the run of a trial that has ended. Its files are in `dir`, if they still exist.
    pub(super) fn run_of_ended(&self, trial: &EndedTrial, dir: &Path) -> TrackedRun {
        let config = self.ended_config(trial);
        // A trial with unusable parameters has no key.
        let key = trial.key.clone();
        let key = key.unwrap_or_else(|| Value::Object(config.clone()).to_string());
        let began_s = parse_time_ms(&trial.began).map_or(0.0, |moment_ms| moment_ms as f64 / 1e3);

        let mut epochs = trained_epochs(dir);
        if epochs.is_empty() {
            epochs = ended_epochs(trial, &self.metric, began_s);
        }
        let mut tags = vec![trial.pipeline.clone()];
        tags.extend(trial.split.clone());
        TrackedRun {
            run_id: run_id(&self.name, Some(trial.trial), &key),
            name: trial_name(trial.trial),
            group: Some(self.name.clone()),
            tags,
            config,
            began_s: run_start_s(dir, &epochs, began_s),
            summary: ended_summary(trial, &self.metric, &epochs),
            epochs,
            outcome: ended_outcome(trial),
        }
    }

    /// Builds the run of a trial that has not ended.
    pub(super) fn run_at_work(&self, at_work: &TrialAtWork) -> TrackedRun {
        let config = &at_work.config;
        let parameters = hyper_parameters(config);
        let tags = model_tag(&parameters);
        let named = self.parameter_names.renamed(trial_kind(config), parameters);
        let epochs = trained_epochs(&at_work.dir);
        TrackedRun {
            run_id: run_id(&self.name, Some(at_work.trial), &at_work.key),
            name: trial_name(at_work.trial),
            group: Some(self.name.clone()),
            tags,
            config: run_config(config, named, Some(at_work.trial)),
            began_s: run_start_s(&at_work.dir, &epochs, 0.0),
            summary: last_values(&epochs),
            epochs,
            outcome: TrackedOutcome::Running,
        }
    }

    /// Returns the settings of an ended trial like [`run_config`]. Its own configuration is not
    /// read, because in the rows of a long sweep the configurations are most of the bytes.
    fn ended_config(&self, trial: &EndedTrial) -> Map<String, Value> {
        // Otherwise it is the name of a network's model.
        let pipeline = self.pipelines.get(&trial.pipeline);
        let kind = pipeline.map_or(NETWORK_KIND, String::as_str);
        let named = self.parameter_names.renamed(kind, trial.parameters.clone());
        let mut all = settings(named, trial.seed, Some(trial.trial));
        all.extend(pipeline.map(|name| ("pipeline".to_owned(), json!(name))));
        let split = trial.split.as_ref();
        all.extend(split.map(|name| ("split".to_owned(), json!(name))));
        all
    }
}

/// Builds the run of the training in `dir`, whose digest is `key`.
pub(super) fn run_from_training(config: &Config, key: &str, dir: &Path) -> TrackedRun {
    let parameters = hyper_parameters(config);
    let epochs = trained_epochs(dir);
    let mut summary = last_values(&epochs);
    let metrics = TrainingMetrics::read(dir).ok();
    if let Some(metrics) = &metrics {
        add_training(&mut summary, metrics);
    }
    let model = model_tag(&parameters);
    TrackedRun {
        run_id: run_id(&config.wandb.sweep.name, None, key),
        name: model.join(" "),
        group: None,
        tags: model,
        config: run_config(config, parameters, None),
        began_s: run_start_s(dir, &epochs, 0.0),
        epochs,
        summary,
        outcome: metrics.map_or(TrackedOutcome::Running, |metrics| {
            training_outcome(&metrics)
        }),
    }
}

/// Returns the name of the run of `trial`.
pub(super) fn trial_name(trial: usize) -> String {
    format!("trial-{trial:04}")
}

fn model_tag(parameters: &BTreeMap<String, Value>) -> Vec<String> {
    parameters
        .get("model")
        .map(plain_value)
        .into_iter()
        .collect()
}

/// Returns the settings that determine the result of a run. Files and sites in the configuration
/// are not among them.
fn run_config(
    config: &Config,
    parameters: BTreeMap<String, Value>,
    trial: Option<usize>,
) -> Map<String, Value> {
    let mut all = settings(parameters, config.seed, trial);
    if let Some(pipeline) = config.pipelines.keys().next() {
        all.insert("pipeline".to_owned(), json!(pipeline));
    }
    if config.data.is_given() {
        let split = config.data.split_names.first();
        all.extend(split.map(|split| ("split".to_owned(), json!(split))));
    }
    all
}

fn settings(
    parameters: BTreeMap<String, Value>,
    seed: u64,
    trial: Option<usize>,
) -> Map<String, Value> {
    let mut all: Map<String, Value> = parameters.into_iter().collect();
    all.insert("seed".to_owned(), json!(seed));
    all.extend(trial.map(|trial| ("trial".to_owned(), json!(trial))));
    all
}

/// Reads the epochs of the training in `dir`; empty without a training, or before its first
/// complete line.
fn trained_epochs(dir: &Path) -> Vec<TrackedEpoch> {
    let history = read_history(dir).unwrap_or_default();
    let times = read_epoch_times(dir);
    let mut tracked: Vec<TrackedEpoch> = Vec::with_capacity(history.len());
    for epoch in &history {
        let of_epoch = times.iter().find(|times| times.epoch == epoch.epoch);
        // Runs of versions before `times.jsonl` get the epoch's number in place of a time. Any
        // value will do if it is the same each time.
        let before = tracked.last().map_or(0.0, |epoch| epoch.ended_s);
        tracked.push(TrackedEpoch {
            step: epoch.epoch as u64,
            ended_s: of_epoch.map_or(before + 1.0, |times| times.ended_s),
            values: epoch_values(epoch),
            system: of_epoch.map(system_values).unwrap_or_default(),
        });
    }
    tracked
}

fn epoch_values(epoch: &Epoch) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::from([(format!("{TRAIN}loss"), epoch.train_loss)]);
    values.extend(named_scores(VALIDATION, &epoch_scores(epoch)));
    values
}

fn epoch_scores(epoch: &Epoch) -> TargetScores {
    TargetScores::of_classes(epoch.validation_loss, epoch.validation)
}

/// Returns the scores that are defined, with names that begin with `prefix`.
fn named_scores(prefix: &str, scores: &TargetScores) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    values.extend(scores.loss().map(|loss| (format!("{prefix}loss"), loss)));
    for (name, value) in scores.named() {
        values.extend(value.map(|value| (format!("{prefix}{name}"), value)));
    }
    values
}

/// The names of the metrics that a network has after each epoch.
pub(crate) fn metric_names() -> Vec<String> {
    let mut names = vec![format!("{TRAIN}loss"), format!("{VALIDATION}loss")];
    names.extend(Scores::NAMES.map(|name| format!("{VALIDATION}{name}")));
    names
}

fn system_values(times: &EpochTimes) -> BTreeMap<String, f64> {
    BTreeMap::from([
        ("cpu_seconds".to_owned(), times.cpu_s),
        (
            "peak_memory_bytes".to_owned(),
            times.peak_memory_bytes as f64,
        ),
        ("samples_per_second".to_owned(), times.samples_per_s),
    ])
}

/// Returns the epochs that a row alone provides, for a trial whose files are gone, or of a program. A
/// network's epochs have the value of the sweep's metric, and the epoch of a fit has its scores.
fn ended_epochs(row: &EndedTrial, metric: &Metric, began_s: f64) -> Vec<TrackedEpoch> {
    // A fit has no values per epoch, but its scores are one step.
    let steps = row.values.len().max(1);
    let name = metric.reported.clone();
    let name = name.unwrap_or_else(|| metric.name.to_string());
    let mut epochs = Vec::new();
    for step in 1..=steps {
        let mut values = BTreeMap::new();
        match row.values.get(step - 1) {
            Some(value) => values.extend(value.map(|value| (name.clone(), value))),
            None => {
                if let Some(scores) = row.scores() {
                    values.extend(named_scores(VALIDATION, &scores));
                }
            }
        }
        if !values.is_empty() {
            epochs.push(TrackedEpoch {
                step: step as u64,
                ended_s: began_s + row.seconds * step as f64 / steps as f64,
                values,
                system: BTreeMap::new(),
            });
        }
    }
    epochs
}

/// Returns the start time of the run in `dir`; without recorded times `known_s`, or else the end of
/// its first epoch. In seconds since 1970 in UTC; 0 if unknown.
fn run_start_s(dir: &Path, epochs: &[TrackedEpoch], known_s: f64) -> f64 {
    let timed = read_epoch_times(dir).first().map(|times| times.began_s);
    let known = (known_s > 0.0).then_some(known_s);
    let first = epochs.first().map(|epoch| epoch.ended_s);
    timed.or(known).or(first).unwrap_or(0.0)
}

fn last_values(epochs: &[TrackedEpoch]) -> Map<String, Value> {
    let last = epochs.last().map(|epoch| &epoch.values);
    let named = last.into_iter().flatten();
    named
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

fn ended_summary(row: &EndedTrial, metric: &Metric, epochs: &[TrackedEpoch]) -> Map<String, Value> {
    let mut summary = last_values(epochs);
    if let Some(metrics) = &row.metrics {
        add_training(&mut summary, metrics);
    }
    if let Some(reported) = &row.reported {
        let last = reported.last.iter();
        summary.extend(last.map(|(name, value)| (name.clone(), json!(value))));
    }
    if let Some(waits) = &row.waits {
        for name in [MetricName::HeldBackPinball, MetricName::HeldBackCost] {
            let value = waits.watched(name);
            summary.extend(value.map(|value| (name.to_string(), json!(value))));
        }
    }
    if let Some(scores) = row.fit.as_ref().and_then(|_| row.scores()) {
        summary.extend(fit_summary(&scores));
    }
    // Trackers rank the runs of a sweep by this value, as the sweep does.
    let judged = metric.title();
    summary.extend(row.value.map(|value| (judged, json!(value))));
    summary.insert("ended".to_owned(), json!(row.ended));
    if row.ended_on_request {
        summary.insert("status".to_owned(), json!(ENDED_ON_REQUEST));
    }
    summary.insert("seconds".to_owned(), json!(row.seconds));
    summary
}

/// Adds the results of a training: the scores of its model's epoch in place of the last epoch's,
/// and those by which a sweep compares it.
fn add_training(summary: &mut Map<String, Value>, metrics: &TrainingMetrics) {
    if let Some(kept) = metrics.of_model() {
        // A score may be undefined in this epoch alone.
        summary.retain(|name, _| !name.starts_with(VALIDATION));
        summary.extend(score_summary(VALIDATION, &epoch_scores(kept)));
    }
    if let Some(judged) = &metrics.judged {
        let scores = TargetScores::of_classes(judged.loss, judged.scores);
        summary.extend(score_summary(JUDGED, &scores));
    }
    summary.insert("epochs".to_owned(), json!(metrics.epochs));
    summary.insert("status".to_owned(), json!(metrics.status));
    if let Some(best) = metrics.of_model() {
        summary.insert("best_epoch".to_owned(), json!(best.epoch));
    }
}

/// Returns the scores of a fit. It has no epochs, so it is compared by the same scores.
pub(super) fn fit_summary(scores: &TargetScores) -> Map<String, Value> {
    let mut summary = score_summary(VALIDATION, scores);
    summary.extend(score_summary(JUDGED, scores));
    summary
}

fn score_summary(prefix: &str, scores: &TargetScores) -> Map<String, Value> {
    let named = named_scores(prefix, scores).into_iter();
    named.map(|(name, value)| (name, json!(value))).collect()
}

fn ended_outcome(row: &EndedTrial) -> TrackedOutcome {
    if row.ended_on_request {
        return TrackedOutcome::EndedOnRequest;
    }
    match (row.ended, &row.metrics) {
        (TrialEnd::Done, Some(metrics)) => training_outcome(metrics),
        (TrialEnd::Done, None) => TrackedOutcome::Finished,
        (TrialEnd::Quarantined, _) => TrackedOutcome::Quarantined,
        (TrialEnd::NonFinite | TrialEnd::TimeLimit | TrialEnd::Invalid | TrialEnd::Error, _) => {
            TrackedOutcome::Failed
        }
    }
}

fn training_outcome(metrics: &TrainingMetrics) -> TrackedOutcome {
    match metrics.status {
        TrainingStatus::Finished => TrackedOutcome::Finished,
        TrainingStatus::StoppedEarly => TrackedOutcome::StoppedEarly,
        TrainingStatus::TerminatedEarly => TrackedOutcome::TerminatedEarly,
        TrainingStatus::NonFinite => TrackedOutcome::Failed,
    }
}
