//! The JSON texts of a run in W&B's format: configuration, history, summary and system metrics.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::extended_json::number_text;
use crate::runs::{TRAIN, TrackedEpoch, TrackedRun, VALIDATION, metric_names};
use poolcast_config::Goal;

/// Version of the W&B client whose format this module writes. W&B treats a run without a version as
/// not started.
const CLIENT_VERSION: &str = "0.31.0";

/// Formats the configuration of `run` for W&B: each value under the key `value`.
pub(super) fn config_text(run: &TrackedRun) -> String {
    let mut all = Map::new();
    for (name, value) in &run.config {
        all.insert(name.clone(), json!({"value": value}));
    }
    all.insert(
        "_wandb".to_owned(),
        json!({"value": {"t": {"12": CLIENT_VERSION}, "m": metrics_text(run)}}),
    );
    Value::Object(all).to_string()
}

/// Returns the measured values with a goal, so that W&B shows the best one, in order of names. Before the first
/// epoch, these are all that a model may have.
pub(crate) fn defined_metrics(run: &TrackedRun) -> Vec<(String, Goal)> {
    let measured = run.epochs.iter().flat_map(|epoch| epoch.values.keys());
    let mut names: BTreeSet<String> = measured.cloned().collect();
    if run.epochs.is_empty() {
        names.extend(metric_names());
    }
    let with_goal = |name: String| goal_of(&name).map(|goal| (name, goal));
    names.into_iter().filter_map(with_goal).collect()
}

/// The goal of a value of this name; `None` if it is not a score of a model.
fn goal_of(name: &str) -> Option<Goal> {
    let prefixes = [TRAIN, VALIDATION];
    match prefixes
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?
    {
        "loss" | "brier" | "ece" | "mae" | "rmse" => Some(Goal::Minimize),
        _ => Some(Goal::Maximize),
    }
}

/// The definitions of the metrics with the field numbers of the SDK's `MetricRecord`: 1 is the name, 6 has the option
/// 3 (defined), 7 has the summary 1 (minimum) or 2 (maximum), and 8 is the goal, with the same numbers.
fn metrics_text(run: &TrackedRun) -> Vec<Value> {
    let definition = |(name, goal): (String, Goal)| {
        let goal = goal_number(goal);
        json!({"1": name, "6": [3], "7": [goal], "8": goal})
    };
    defined_metrics(run).into_iter().map(definition).collect()
}

/// The number of a goal in the SDK's `MetricGoal`.
pub(crate) fn goal_number(goal: Goal) -> i32 {
    match goal {
        Goal::Minimize => 1,
        Goal::Maximize => 2,
    }
}

/// Returns the history values of `epoch`.
pub(crate) fn history_values(run: &TrackedRun, epoch: &TrackedEpoch) -> WandbValues {
    let mut values = WandbValues::default();
    for (name, value) in &epoch.values {
        values.number(name, *value);
    }
    values.value("_step", &json!(epoch.step));
    values.number("_runtime", runtime_s(run, epoch));
    values.number("_timestamp", epoch.ended_s);
    values
}

/// Formats the line of `epoch` in `wandb-history.jsonl`.
pub(super) fn history_line(run: &TrackedRun, epoch: &TrackedEpoch) -> String {
    history_values(run, epoch).line()
}

/// Formats the line of `epoch` in `wandb-events.jsonl`; `None` if its resource usage is not known.
pub(super) fn system_line(run: &TrackedRun, epoch: &TrackedEpoch) -> Option<String> {
    if epoch.system.is_empty() {
        return None;
    }
    let mut values = WandbValues::default();
    values.value("_wandb", &json!(true));
    for (name, value) in &epoch.system {
        values.number(&format!("system.{name}"), *value);
    }
    values.number("_runtime", runtime_s(run, epoch));
    values.number("_timestamp", epoch.ended_s);
    Some(values.line())
}

/// Returns the values of the summary.
pub(crate) fn summary_values(run: &TrackedRun) -> WandbValues {
    let mut values = WandbValues::default();
    let last = run.epochs.last();
    for (name, value) in &run.summary {
        // JSON has null for NaN and infinities; W&B's format has tokens for them.
        let measured = last.and_then(|epoch| epoch.values.get(name));
        match measured.filter(|_| value.is_null()) {
            Some(measured) => values.number(name, *measured),
            None => values.value(name, value),
        }
    }
    let ran_s = last.map_or(0.0, |epoch| runtime_s(run, epoch));
    if let Some(last) = last {
        values.value("_step", &json!(last.step));
        values.number("_runtime", ran_s);
        values.number("_timestamp", last.ended_s);
    }
    values.value("_wandb", &json!({"runtime": ran_s as u64}));
    values
}

/// Formats the only line of `wandb-summary.json`.
pub(super) fn summary_line(run: &TrackedRun) -> String {
    summary_values(run).line()
}

fn runtime_s(run: &TrackedRun, epoch: &TrackedEpoch) -> f64 {
    (epoch.ended_s - run.began_s).max(0.0)
}

/// Names and values in W&B's extended JSON, which has the tokens `NaN`, `Infinity` and `-Infinity`.
#[derive(Default)]
pub(crate) struct WandbValues(Vec<(String, String)>);

impl WandbValues {
    fn number(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), number_text(value)));
    }

    fn value(&mut self, name: &str, value: &Value) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    /// Each name with the text of its value.
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// All values as one JSON object.
    fn line(&self) -> String {
        let mut line = String::from("{");
        for (name, text) in &self.0 {
            if line.len() > 1 {
                line.push(',');
            }
            line.push_str(&Value::from(name.as_str()).to_string());
            line.push(':');
            line.push_str(text);
        }
        line.push('}');
        line
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::TrackedOutcome;

    /// The definitions that `wandb sync` of 0.31.0 sends for `define_metric("...", summary="min")` and `"max"`, and goals.
    #[test]
    fn metrics_are_defined_as_by_the_sdk() {
        let mut run = crate::runs::recorded_run();
        run.epochs[0].values = ["validation_roc_auc", "train_loss", "reward"]
            .map(|name| (name.to_owned(), 1.0))
            .into();
        run.epochs.truncate(1);
        let config: Value = serde_json::from_str(&config_text(&run)).expect("JSON");
        assert_eq!(
            config["_wandb"]["value"]["m"],
            json!([
                {"1": "train_loss", "6": [3], "7": [1], "8": 1},
                {"1": "validation_roc_auc", "6": [3], "7": [2], "8": 2},
            ])
        );
        run.epochs.clear();
        assert!(defined_metrics(&run).len() > 5);
    }

    #[test]
    fn nan_and_infinities_are_bare_words() {
        let values = [
            ("a\"b", f64::NAN),
            ("b", f64::INFINITY),
            ("c", f64::NEG_INFINITY),
            ("d", 0.1),
            ("e", 3.0),
            ("f", 1e300),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        let epoch = TrackedEpoch {
            step: 2,
            ended_s: 1_795_226_537.25,
            values: BTreeMap::from(values),
            system: BTreeMap::new(),
        };
        let run = TrackedRun {
            run_id: "0123456789abcdef".to_owned(),
            name: "trial-0001".to_owned(),
            group: None,
            tags: Vec::new(),
            config: Map::new(),
            began_s: 1_795_226_530.0,
            epochs: vec![epoch.clone()],
            summary: [("b".to_owned(), Value::Null)].into_iter().collect(),
            outcome: TrackedOutcome::Running,
        };
        assert_eq!(
            history_line(&run, &epoch),
            r#"{"a\"b":NaN,"b":Infinity,"c":-Infinity,"d":0.1,"e":3.0,"f":1e+300,"_step":2,"_runtime":7.25,"_timestamp":1795226537.25}"#
        );
        assert_eq!(system_line(&run, &epoch), None);
        assert_eq!(
            summary_line(&run),
            r#"{"b":Infinity,"_step":2,"_runtime":7.25,"_timestamp":1795226537.25,"_wandb":{"runtime":7}}"#
        );
    }
}
