//! A run → the lines and the configuration that W&B takes of it.

use serde_json::{Map, Value, json};

use super::extended_json::number_text;
use super::tracked_run::{TrackedEpoch, TrackedRun};

/// The version of W&B's own client whose forms these are. W&B takes a run without one for a run that
/// was not started.
const CLIENT_VERSION: &str = "0.31.0";

/// The configuration of `run` as W&B keeps it: each value under the key `value`.
pub(super) fn config_text(run: &TrackedRun) -> String {
    let mut all = Map::new();
    for (name, value) in &run.config {
        all.insert(name.clone(), json!({"value": value}));
    }
    all.insert(
        "_wandb".to_owned(),
        json!({"value": {"t": {"12": CLIENT_VERSION}, "m": []}}),
    );
    Value::Object(all).to_string()
}

/// The line of `epoch` in `wandb-history.jsonl`.
pub(super) fn history_line(run: &TrackedRun, epoch: &TrackedEpoch) -> String {
    let mut line = WandbLine::default();
    for (name, value) in &epoch.values {
        line.number(name, *value);
    }
    line.value("_step", &json!(epoch.step));
    line.number("_runtime", runtime_s(run, epoch));
    line.number("_timestamp", epoch.ended_s);
    line.end()
}

/// The line of `epoch` in `wandb-events.jsonl`; `None` where nothing is known of its cost.
pub(super) fn system_line(run: &TrackedRun, epoch: &TrackedEpoch) -> Option<String> {
    if epoch.system.is_empty() {
        return None;
    }
    let mut line = WandbLine::default();
    line.value("_wandb", &json!(true));
    for (name, value) in &epoch.system {
        line.number(&format!("system.{name}"), *value);
    }
    line.number("_runtime", runtime_s(run, epoch));
    line.number("_timestamp", epoch.ended_s);
    Some(line.end())
}

/// The one line of `wandb-summary.json`.
pub(super) fn summary_line(run: &TrackedRun) -> String {
    let mut line = WandbLine::default();
    let last = run.epochs.last();
    for (name, value) in &run.summary {
        // What is no number in JSON is one here.
        let measured = last.and_then(|epoch| epoch.values.get(name));
        match measured.filter(|_| value.is_null()) {
            Some(measured) => line.number(name, *measured),
            None => line.value(name, value),
        }
    }
    let ran_s = last.map_or(0.0, |epoch| runtime_s(run, epoch));
    if let Some(last) = last {
        line.value("_step", &json!(last.step));
        line.number("_runtime", ran_s);
        line.number("_timestamp", last.ended_s);
    }
    line.value("_wandb", &json!({"runtime": ran_s as u64}));
    line.end()
}

fn runtime_s(run: &TrackedRun, epoch: &TrackedEpoch) -> f64 {
    (epoch.ended_s - run.began_s).max(0.0)
}

/// A line of JSON as W&B extends it: with the words `NaN`, `Infinity` and `-Infinity`.
#[derive(Default)]
struct WandbLine(String);

impl WandbLine {
    fn name(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&Value::from(name).to_string());
        self.0.push(':');
    }

    fn number(&mut self, name: &str, value: f64) {
        self.name(name);
        self.0.push_str(&number_text(value));
    }

    fn value(&mut self, name: &str, value: &Value) {
        self.name(name);
        self.0.push_str(&value.to_string());
    }

    fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tracking::RunOutcome;

    #[test]
    fn what_is_no_number_in_json_is_a_bare_word() {
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
            outcome: RunOutcome::Running,
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
