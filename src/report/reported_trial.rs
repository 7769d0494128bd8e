//! A row of a sweep → what a report shows of the trial. Rows of many trials would not fit into memory.

use std::collections::BTreeMap;

use serde_json::Value;

use super::words;
use poolcast_config::MetricName;
use poolcast_sweep::{TrialEnd, TrialRow};
use poolcast_holds::training::TrainingStatus;

/// So many epochs of a trial are shown.
const MOST_EPOCHS: usize = 2000;

/// What a report shows of a trial.
#[derive(Debug, Clone)]
pub(super) struct ReportedTrial {
    /// Counted from 1.
    pub(super) trial: usize,
    /// What it fits: a pipeline, or the network's model.
    pub(super) model: String,
    /// The split of tables that it learns from.
    pub(super) split: Option<String>,
    /// How it ended, in words.
    pub(super) ended: String,
    /// The kind of its failure, if it failed.
    pub(super) failure: Option<TrialEnd>,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// The value that the sweep chooses by.
    pub(super) value: Option<f64>,
    /// That value after each epoch of a network.
    pub(super) values: Vec<Option<f64>>,
    /// The loss that it was judged by.
    pub(super) loss: Option<f64>,
    /// The ROC-AUC that it was judged by; of a model of numbers it has none.
    pub(super) roc_auc: Option<f64>,
    /// The most epochs that it was given.
    pub(super) budget: usize,
    /// The epochs of a network.
    pub(super) epochs: Option<usize>,
    /// The epoch whose weights it has.
    pub(super) kept_epoch: Option<usize>,
    /// Whether it ended as it no longer got better.
    pub(super) is_stopped: bool,
    /// Whether it ended as others did better.
    pub(super) is_terminated: bool,
    /// Its hyper-parameters.
    pub(super) parameters: BTreeMap<String, Value>,
}

impl ReportedTrial {
    pub(super) fn from_row(row: &TrialRow) -> ReportedTrial {
        let scores = row.scores();
        let metrics = row.metrics.as_ref();
        let status = metrics.map(|metrics| metrics.status);
        let mut values = row.values.clone();
        values.truncate(MOST_EPOCHS);
        ReportedTrial {
            trial: row.trial,
            model: words::shown(&row.pipeline),
            split: row.split.as_deref().map(words::shown),
            ended: match row.ended_on_request {
                true => "ended on request".to_owned(),
                false => end_words(row.ended, status),
            },
            failure: (row.ended != TrialEnd::Done).then_some(row.ended),
            error: row.error.as_deref().map(words::shown),
            value: row.value.filter(|value| value.is_finite()),
            values,
            loss: scores.and_then(|scores| scores.loss()),
            roc_auc: scores.and_then(|scores| scores.watched(MetricName::ValidationRocAuc)),
            budget: row.budget,
            epochs: metrics.map(|metrics| metrics.epochs),
            kept_epoch: metrics.and_then(|metrics| Some(metrics.of_model()?.epoch)),
            is_stopped: status == Some(TrainingStatus::StoppedEarly),
            is_terminated: status == Some(TrainingStatus::TerminatedEarly),
            parameters: row.parameters.clone(),
        }
    }
}

fn end_words(ended: TrialEnd, status: Option<TrainingStatus>) -> String {
    let words = match (ended, status) {
        (TrialEnd::Done, Some(TrainingStatus::StoppedEarly)) => "stopped early",
        (TrialEnd::Done, Some(TrainingStatus::TerminatedEarly)) => "terminated early",
        (TrialEnd::Done, _) => "finished",
        (TrialEnd::NonFinite, _) => "failed: its loss was no number",
        (TrialEnd::TimeLimit, _) => "failed: it took too long",
        (TrialEnd::Invalid, _) => "failed: its parameters cannot be used",
        (TrialEnd::Error, _) => "failed: error",
        (TrialEnd::Quarantined, _) => "failed: its job failed, or its workers died",
    };
    words.to_owned()
}
