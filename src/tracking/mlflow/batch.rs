//! Computes the batches of a run that an MLflow server lacks.
//!
//! The limits come from MLflow's REST interface: 1,000 metrics, parameters and tags per batch, 100
//! parameters per batch, names of 250 characters and texts of 6,000. A batch ends with an epoch,
//! and the server stores it whole or not at all. So the last step of a metric shows which of its
//! values the server has.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::runs::{TrackedEpoch, TrackedOutcome, TrackedRun};

/// Maximum number of metrics, parameters and tags in one batch.
const MAX_ENTRIES: usize = 1000;

/// Maximum number of parameters in one batch.
const MAX_PARAMS: usize = 100;

/// Maximum length of the name of a metric, a parameter or a tag, in characters.
const MAX_KEY_CHARS: usize = 250;

/// Delay from the last epoch to the results of a run, in seconds. Of two values at one step, MLflow
/// shows the later one.
const FINAL_DELAY_S: f64 = 0.001;

/// Maximum length of the text of a parameter or a tag, in characters.
const MAX_TEXT_CHARS: usize = 6000;

/// The server's data of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ServerRun {
    /// The server's id of the run.
    pub(super) server_id: String,
    /// The server's name for the run's status.
    pub(super) status: String,
    /// True if a user has deleted the run on the server.
    pub(super) is_deleted: bool,
    /// Names of its parameters, whose values never change.
    pub(super) params: BTreeSet<String>,
    /// Names of its tags.
    pub(super) tags: BTreeSet<String>,
    /// Location of the run's files, as a URI of the server.
    pub(super) artifact_uri: String,
    /// True if it has a dataset among its inputs.
    pub(super) has_dataset: bool,
    /// The last step by metric name.
    pub(super) last_steps: BTreeMap<String, i64>,
}

impl ServerRun {
    /// Records that the server has `batch`, too.
    pub(super) fn add(&mut self, batch: &LogBatch) {
        for param in &batch.params {
            self.params.insert(param.key.clone());
        }
        for tag in &batch.tags {
            self.tags.insert(tag.key.clone());
        }
        for metric in &batch.metrics {
            self.last_steps.insert(metric.key.clone(), metric.step);
        }
    }

    fn has_metric(&self, metric: &LoggedMetric) -> bool {
        let last = self.last_steps.get(&metric.key);
        last.is_some_and(|last| metric.step <= *last)
    }
}

/// The content of one request that adds to a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LogBatch {
    /// Epochs in the batch.
    pub(super) epochs: usize,
    pub(super) metrics: Vec<LoggedMetric>,
    pub(super) params: Vec<LoggedText>,
    pub(super) tags: Vec<LoggedText>,
}

/// A value at a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LoggedMetric {
    pub(super) key: String,
    /// A number, or a text for NaN and infinities.
    value: Value,
    /// Milliseconds since 1970, in UTC.
    timestamp: i64,
    pub(super) step: i64,
}

/// The name and text of a parameter or a tag.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LoggedText {
    pub(super) key: String,
    pub(super) value: String,
}

impl LogBatch {
    fn has_room_for(&self, more: usize) -> bool {
        self.metrics.len() + self.params.len() + self.tags.len() + more <= MAX_ENTRIES
    }

    fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.params.is_empty() && self.tags.is_empty()
    }
}

/// Returns the batches of `run` that the server lacks, in sending order.
pub(super) fn missing_batches(run: &TrackedRun, server: &ServerRun) -> Vec<LogBatch> {
    let mut batches = Vec::new();
    let mut batch = LogBatch::default();

    for param in flat_params(run) {
        if server.params.contains(&param.key) {
            continue;
        }
        if batch.params.len() == MAX_PARAMS {
            batches.push(std::mem::take(&mut batch));
        }
        batch.params.push(param);
    }

    for epoch in &run.epochs {
        let mut metrics = epoch_metrics(epoch);
        metrics.retain(|metric| !server.has_metric(metric));
        if !batch.has_room_for(metrics.len()) {
            batches.push(std::mem::take(&mut batch));
        }
        // An epoch is never split between batches, so its last step shows that all its values are
        // there.
        batch.epochs += usize::from(!metrics.is_empty());
        batch.metrics.extend(metrics);
    }

    if run.outcome != TrackedOutcome::Running {
        let mut metrics = result_metrics(run);
        metrics.retain(|metric| !server.has_metric(metric));
        let mut tags = result_tags(run);
        tags.retain(|tag| !server.tags.contains(&tag.key));
        // The server has all results or none, because they are in one batch.
        if !metrics.is_empty() || !tags.is_empty() {
            metrics.extend(final_metrics(run));
        }
        if !batch.has_room_for(metrics.len() + tags.len()) {
            batches.push(std::mem::take(&mut batch));
        }
        batch.metrics.extend(metrics);
        batch.tags.extend(tags);
    }

    batches.push(batch);
    batches.retain(|batch| !batch.is_empty());
    batches
}

/// Returns the metrics of `epoch`. Its resource usage gets names below `system/`, which MLflow
/// shows separately.
fn epoch_metrics(epoch: &TrackedEpoch) -> Vec<LoggedMetric> {
    let mut metrics = Vec::new();
    for (name, value) in &epoch.values {
        metrics.push(logged_metric(
            allowed_key(name),
            *value,
            epoch.step,
            epoch.ended_s,
        ));
    }
    for (name, value) in &epoch.system {
        let key = format!("system/{}", allowed_key(name));
        metrics.push(logged_metric(key, *value, epoch.step, epoch.ended_s));
    }
    metrics
}

/// Names of results that are no measurements. They are tags.
const FACTS: [&str; 3] = ["best_epoch", "epochs", "seconds"];

/// Returns the results of a finished run that its epochs do not have, at its last epoch.
fn result_metrics(run: &TrackedRun) -> Vec<LoggedMetric> {
    let last = run.epochs.last();
    let step = last.map_or(0, |epoch| epoch.step);
    let mut metrics = Vec::new();
    for (name, value) in &run.summary {
        let is_measured = last.is_some_and(|epoch| epoch.values.contains_key(name));
        if let Some(number) = value.as_f64()
            && !is_measured
            && !FACTS.contains(&name.as_str())
        {
            metrics.push(logged_metric(
                allowed_key(name),
                number,
                step,
                run.ended_s(),
            ));
        }
    }
    metrics
}

/// Returns the results of a finished run that differ from the measurements of its last epoch.
/// MLflow shows the latest value of a metric, which must be the value of the model.
fn final_metrics(run: &TrackedRun) -> Vec<LoggedMetric> {
    let Some(last) = run.epochs.last() else {
        return Vec::new();
    };
    let mut metrics = Vec::new();
    for (name, value) in &run.summary {
        let measured = last.values.get(name).copied();
        if let (Some(number), Some(measured)) = (value.as_f64(), measured)
            && number != measured
        {
            let after_s = last.ended_s + FINAL_DELAY_S;
            metrics.push(logged_metric(allowed_key(name), number, last.step, after_s));
        }
    }
    metrics
}

/// Returns the texts in the summary of a finished run, and its facts.
fn result_tags(run: &TrackedRun) -> Vec<LoggedText> {
    let mut tags = Vec::new();
    for (name, value) in &run.summary {
        let text = match value {
            Value::String(text) => text.clone(),
            fact if FACTS.contains(&name.as_str()) => fact.to_string(),
            _ => continue,
        };
        tags.push(LoggedText {
            key: allowed_key(name),
            value: text.chars().take(MAX_TEXT_CHARS).collect(),
        });
    }
    tags
}

fn logged_metric(key: String, value: f64, step: u64, at_s: f64) -> LoggedMetric {
    LoggedMetric {
        key,
        value: metric_value(value),
        timestamp: milliseconds(at_s),
        step: step as i64,
    }
}

/// Formats a number as in MLflow's JSON, which is protobuf's.
fn metric_value(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value < 0.0 { "-Infinity" } else { "Infinity" })
    } else {
        json!(value)
    }
}

/// Converts `seconds` since 1970 to MLflow's milliseconds.
pub(super) fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Flattens the configuration: nested names are joined by dots.
fn flat_params(run: &TrackedRun) -> Vec<LoggedText> {
    let mut params = Vec::new();
    for (name, value) in &run.config {
        add_params(&mut params, name, value);
    }
    // Different names may become the same allowed name, which is sent once.
    let mut seen = BTreeSet::new();
    params.retain(|param: &LoggedText| seen.insert(param.key.clone()));
    params
}

fn add_params(params: &mut Vec<LoggedText>, name: &str, value: &Value) {
    if let Value::Object(inner) = value
        && !inner.is_empty()
    {
        for (key, value) in inner {
            add_params(params, &format!("{name}.{key}"), value);
        }
        return;
    }

    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    params.push(LoggedText {
        key: allowed_key(name),
        value: text.chars().take(MAX_TEXT_CHARS).collect(),
    });
}

/// Replaces the characters of `name` that MLflow rejects. MLflow also treats names as paths.
fn allowed_key(name: &str) -> String {
    let mut key = String::new();
    if name.is_empty() || name.starts_with('.') {
        key.push('_');
    }
    for c in name.chars().take(MAX_KEY_CHARS - 1) {
        let is_allowed = c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | ':');
        key.push(if is_allowed { c } else { '_' });
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::recorded_run;

    fn long_run(epochs: u64, values: usize) -> TrackedRun {
        let mut run = recorded_run();
        let template = run.epochs[0].clone();
        run.epochs.clear();
        for step in 0..epochs {
            let mut epoch = template.clone();
            epoch.step = step;
            epoch.values = (0..values).map(|at| (format!("v{at}"), 0.5)).collect();
            run.epochs.push(epoch);
        }
        run
    }

    #[test]
    fn batches_keep_the_limits_and_end_with_an_epoch() {
        let mut run = long_run(300, 9);
        for at in 0..250 {
            run.config.insert(format!("p{at:03}"), at.into());
        }
        let batches = missing_batches(&run, &ServerRun::default());
        let mut last_step = -1;
        for batch in &batches {
            assert!(batch.metrics.len() + batch.params.len() + batch.tags.len() <= MAX_ENTRIES);
            assert!(batch.params.len() <= MAX_PARAMS);
            for nine in batch.metrics.chunks(9).filter(|nine| nine[0].key == "v0") {
                assert!(nine.iter().all(|metric| metric.step == nine[0].step));
                assert_eq!(nine[0].step, last_step + 1);
                last_step = nine[0].step;
            }
        }
        assert_eq!(last_step, 299);
        let params: usize = batches.iter().map(|batch| batch.params.len()).sum();
        assert_eq!(params, 250 + 6);
    }

    #[test]
    fn nothing_is_missing_after_all_batches() {
        let run = long_run(300, 9);
        let mut server = ServerRun::default();
        let batches = missing_batches(&run, &server);
        server.add(&batches[0]);
        assert_eq!(missing_batches(&run, &server), batches[1..]);
        for batch in &batches[1..] {
            server.add(batch);
        }
        assert_eq!(missing_batches(&run, &server), []);
    }

    #[test]
    fn latest_values_of_an_ended_run_are_its_results() {
        let mut run = recorded_run();
        let last = run.epochs.last().expect("epochs").clone();
        run.summary.insert("loss".to_owned(), json!(0.125));
        run.summary
            .insert("acc".to_owned(), json!(last.values["acc"]));
        let latest = |run: &TrackedRun| {
            let batches = missing_batches(run, &ServerRun::default());
            let metrics = batches.into_iter().flat_map(|batch| batch.metrics);
            let mut of_loss: Vec<LoggedMetric> = metrics.filter(|one| one.key == "loss").collect();
            of_loss.sort_by_key(|metric| (metric.step, metric.timestamp));
            of_loss.pop().map(|metric| (metric.step, metric.value))
        };
        assert_eq!(latest(&run), Some((last.step as i64, json!(0.125))));

        run.outcome = TrackedOutcome::Running;
        let measured = json!(last.values["loss"]);
        assert_eq!(latest(&run), Some((last.step as i64, measured)));
    }

    #[test]
    fn names_and_texts_are_valid_for_mlflow() {
        let mut run = recorded_run();
        run.config.clear();
        for (name, value) in [
            ("../a\u{202e}\n", json!("x".repeat(10_000))),
            ("a/b", json!({ "": {}, "c": [1, null] })),
            ("a;b", json!(true)),
        ] {
            run.config.insert(name.to_owned(), value);
        }
        let params = flat_params(&run);
        let keys: Vec<&str> = params.iter().map(|param| param.key.as_str()).collect();
        assert_eq!(keys, ["_.._a__", "a_b.", "a_b.c", "a_b"]);
        assert_eq!(params[0].value.len(), MAX_TEXT_CHARS);
        assert_eq!(params[2].value, "[1,null]");
    }
}
