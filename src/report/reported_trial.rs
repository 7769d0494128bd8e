//! The data of one trial in a report. It is smaller than the trial's row, so that many trials fit
//! in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words;
use poolcast_config::MetricName;
use poolcast_holds::training::TrainingStatus;
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{ParameterNames, TrialEnd, TrialRow, trial_kind};

/// Maximum number of epochs of a trial that are shown.
const MAX_EPOCHS: usize = 2000;

/// The data of one trial in a report.
#[derive(Debug, Clone)]
pub(super) struct ReportedTrial {
    /// Number of the trial, counted from 1.
    pub(super) trial: usize,
    /// The pipeline, the network's model, or the program.
    pub(super) model: String,
    /// The kind of the trial: its pipeline, its kind of wait model, its program, or `network`.
    pub(super) kind: String,
    /// The split of tables that the trial learns from.
    pub(super) split: Option<String>,
    /// Outcome of the trial, in words.
    pub(super) ended: String,
    /// Kind of the failure; `None` if the trial succeeded.
    pub(super) failure: Option<TrialEnd>,
    /// Error message of a failure.
    pub(super) error: Option<String>,
    /// Last lines of the output of a program that failed.
    pub(super) log_tail: Vec<String>,
    /// Value by which the sweep compares trials.
    pub(super) value: Option<f64>,
    /// Values of the further metrics of the sweep.
    pub(super) more_values: Vec<Option<f64>>,
    /// Value of the sweep's metric in the epoch that a network has, or of a fit.
    pub(super) kept_value: Option<f64>,
    /// Values of this metric after each epoch of a network.
    pub(super) values: Vec<Option<f64>>,
    /// Validation loss of the model.
    pub(super) loss: Option<f64>,
    /// ROC-AUC of the model; `None` for a model that predicts numbers.
    pub(super) roc_auc: Option<f64>,
    /// Maximum number of epochs that the trial was given.
    pub(super) budget: usize,
    /// Number of epochs of a network.
    pub(super) epochs: Option<usize>,
    /// The epoch whose weights the model has.
    pub(super) kept_epoch: Option<usize>,
    /// True if early stopping ended the trial, because it no longer improved.
    pub(super) is_stopped: bool,
    /// True if the trial was terminated early, because others were better.
    pub(super) is_terminated: bool,
    /// Hyper-parameters by their names in the sweep.
    pub(super) parameters: BTreeMap<String, Value>,
}

impl ReportedTrial {
    pub(super) fn from_row(row: &TrialRow, names: &ParameterNames) -> ReportedTrial {
        let scores = row.scores();
        let metric = row.config.wandb.sweep.metric.name;
        let kind = match row.config.trial_source() {
            TrialSource::WaitSamples | TrialSource::Command => &row.pipeline,
            TrialSource::Logs | TrialSource::Tables => trial_kind(&row.config),
        };
        let metrics = row.metrics.as_ref();
        let status = metrics.map(|metrics| metrics.status);
        let of_program = row.reported.as_ref();
        let is_terminated = status == Some(TrainingStatus::TerminatedEarly)
            || of_program.is_some_and(|reported| reported.is_terminated);
        let mut values = row.values.clone();
        values.truncate(MAX_EPOCHS);
        ReportedTrial {
            trial: row.trial,
            model: words::shown(&row.pipeline),
            kind: words::shown(kind),
            split: row.split.as_deref().map(words::shown),
            ended: match row.ended_on_request {
                true => "ended on request".to_owned(),
                false if is_terminated => "terminated early".to_owned(),
                false => end_words(row.ended, status),
            },
            failure: (row.ended != TrialEnd::Done).then_some(row.ended),
            error: row.error.as_deref().map(words::shown),
            log_tail: of_program.map_or(Vec::new(), |reported| reported.log_tail.clone()),
            value: row.value.filter(|value| value.is_finite()),
            more_values: row.more_values.clone(),
            kept_value: scores.and_then(|scores| scores.watched(metric)),
            values,
            loss: scores.and_then(|scores| scores.loss()),
            roc_auc: scores.and_then(|scores| scores.watched(MetricName::ValidationRocAuc)),
            budget: row.budget,
            epochs: metrics.map(|metrics| metrics.epochs),
            kept_epoch: metrics.and_then(|metrics| Some(metrics.of_model()?.epoch)),
            is_stopped: status == Some(TrainingStatus::StoppedEarly),
            is_terminated,
            parameters: names.renamed(kind, row.parameters.clone()),
        }
    }
}

fn end_words(ended: TrialEnd, status: Option<TrainingStatus>) -> String {
    let words = match (ended, status) {
        (TrialEnd::Done, Some(TrainingStatus::StoppedEarly)) => "stopped early",
        (TrialEnd::Done, _) => "finished",
        (TrialEnd::NonFinite, _) => "failed: its loss is not a number",
        (TrialEnd::TimeLimit, _) => "failed: it took too long",
        (TrialEnd::Invalid, _) => "failed: its parameters are invalid",
        (TrialEnd::Error, _) => "failed: error",
        (TrialEnd::Quarantined, _) => "failed: its job failed, or its workers died",
    };
    words.to_owned()
}
