//! Exports runs as W&B's offline files, for `wandb sync` and `wandb leet`.
//!
//! Each run is one file in its own directory. Both have the names that the SDK gives them:
//! `offline-run-20261121_015543-ID/run-ID.wandb`. All times come from the run, so the file of a run
//! is byte-identical on every export.

use std::path::Path;

use anyhow::Result;
use jiff::tz::TimeZone;
use prost::Message as _;

use super::leveldb_log::LevelDbLog;
use crate::runs::{TrackedEpoch, TrackedRun};
use crate::wandb::{
    WandbValues, defined_metrics, goal_number, history_values, number_text, summary_values,
};
use poolcast_base::files;
use poolcast_config::Goal;
use poolcast_sweep::wandb_record::{
    ConfigRecord, HeaderRecord, HistoryRecord, HistoryStep, MetricOptions, MetricRecord,
    MetricSummary, Record, RecordItem, RecordKind, RunExitRecord, RunRecord, StatsRecord,
    SummaryRecord, Timestamp, VersionInfo,
};

/// The oldest SDK that can read the file, as the SDK itself writes it.
const MIN_CONSUMER: &str = "0.70.0";

/// Writes the file of `run` below `dir`, and replaces an existing one. If `entity` is empty, W&B
/// uses the entity of the key with which the file is sent.
pub(super) fn export_to_wandb(
    run: &TrackedRun,
    entity: &str,
    project: &str,
    dir: &Path,
) -> Result<()> {
    let run_dir = dir.join(directory_name(run)?);
    fs_err::create_dir_all(&run_dir)?;
    let file = run_dir.join(format!("run-{}.wandb", run.run_id));
    files::write_atomic(&file, &offline_file(run, entity, project))
}

/// Returns the SDK's name for the directory of a run.
fn directory_name(run: &TrackedRun) -> Result<String> {
    let began = jiff::Timestamp::from_second(run.began_s.floor() as i64)?;
    let stamp = began.to_zoned(TimeZone::UTC).strftime("%Y%m%d_%H%M%S");
    Ok(format!("offline-run-{stamp}-{}", run.run_id))
}

/// Returns the bytes of the file of `run`.
fn offline_file(run: &TrackedRun, entity: &str, project: &str) -> Vec<u8> {
    let mut kinds = vec![
        RecordKind::Header(header_record()),
        RecordKind::Run(run_record(run, entity, project)),
    ];
    let metrics = defined_metrics(run).into_iter();
    kinds.extend(metrics.map(|(name, goal)| RecordKind::Metric(metric_record(name, goal))));
    for epoch in &run.epochs {
        kinds.push(RecordKind::History(history_record(run, epoch)));
        if !epoch.system.is_empty() {
            kinds.push(RecordKind::Stats(stats_record(epoch)));
        }
    }
    kinds.push(RecordKind::Summary(summary_record(run)));
    if let Some(exit_code) = run.outcome.exit_code() {
        kinds.push(RecordKind::Exit(RunExitRecord {
            exit_code,
            runtime: (run.ended_s() - run.began_s).round() as i32,
        }));
    }

    let mut log = LevelDbLog::new();
    for (kind, num) in kinds.into_iter().zip(1..) {
        let record = Record {
            num,
            kind: Some(kind),
        };
        log.append(&record.encode_to_vec());
    }
    log.into_bytes()
}

fn header_record() -> HeaderRecord {
    HeaderRecord {
        version_info: Some(VersionInfo {
            producer: concat!("poolcast ", env!("CARGO_PKG_VERSION")).to_owned(),
            min_consumer: MIN_CONSUMER.to_owned(),
        }),
    }
}

fn run_record(run: &TrackedRun, entity: &str, project: &str) -> RunRecord {
    let mut update = Vec::new();
    for (key, value) in &run.config {
        update.push(item(key, value.to_string()));
    }

    RunRecord {
        run_id: run.run_id.clone(),
        entity: entity.to_owned(),
        project: project.to_owned(),
        config: Some(ConfigRecord { update }),
        run_group: run.group.clone().unwrap_or_default(),
        job_type: run.kind().unwrap_or_default().to_owned(),
        display_name: run.name.clone(),
        tags: run.tags.clone(),
        start_time: Some(timestamp(run.began_s)),
    }
}

fn metric_record(name: String, goal: Goal) -> MetricRecord {
    MetricRecord {
        name,
        options: Some(MetricOptions { defined: true }),
        summary: Some(MetricSummary {
            min: goal == Goal::Minimize,
            max: goal == Goal::Maximize,
        }),
        goal: goal_number(goal),
    }
}

/// Makes the history record of one epoch.
fn history_record(run: &TrackedRun, epoch: &TrackedEpoch) -> HistoryRecord {
    HistoryRecord {
        item: items(history_values(run, epoch)),
        step: Some(HistoryStep {
            num: epoch.step as i64,
        }),
    }
}

/// Makes the record of the resource usage of one epoch.
fn stats_record(epoch: &TrackedEpoch) -> StatsRecord {
    let mut items = Vec::new();
    for (key, value) in &epoch.system {
        items.push(item(key, number_text(*value)));
    }
    StatsRecord {
        timestamp: Some(timestamp(epoch.ended_s)),
        item: items,
    }
}

/// Converts `moment_s` since 1970 to seconds and nanoseconds.
fn timestamp(moment_s: f64) -> Timestamp {
    let seconds = moment_s.floor();
    Timestamp {
        seconds: seconds as i64,
        nanos: ((moment_s - seconds) * 1e9) as i32,
    }
}

/// Makes the summary record of the run. `wandb sync` does not derive it from the history.
fn summary_record(run: &TrackedRun) -> SummaryRecord {
    SummaryRecord {
        update: items(summary_values(run)),
    }
}

fn items(values: WandbValues) -> Vec<RecordItem> {
    let pairs = values.into_pairs().into_iter();
    pairs.map(|(key, text)| item(&key, text)).collect()
}

fn item(key: &str, value_json: String) -> RecordItem {
    RecordItem {
        key: key.to_owned(),
        nested_key: Vec::new(),
        value_json,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::leveldb_log::read_records;
    use super::*;
    use crate::runs::{TrackedOutcome, recorded_run};

    fn records_of(run: &TrackedRun) -> Vec<Record> {
        let mut records = Vec::new();
        for bytes in read_records(&offline_file(run, "", "htc-demo")) {
            records.push(Record::decode(&*bytes).expect("a record"));
        }
        records
    }

    /// The records that the SDK wrote for the same run: `tests/data/wandb/README.md`.
    fn recorded() -> Vec<serde_json::Value> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/data/wandb/offline_records.jsonl"
        );
        let mut records = Vec::new();
        for line in fs_err::read_to_string(path).expect("read").lines() {
            records.push(serde_json::from_str(line).expect("JSON"));
        }
        records
    }

    /// Collects the names and values of items. Nested names are joined by dots. Items with `_` are
    /// the SDK's own and are skipped.
    fn recorded_items(record: &serde_json::Value, list: &str) -> BTreeMap<String, String> {
        let mut items = BTreeMap::new();
        for item in record[list].as_array().expect("items") {
            let name = match item["key"].as_str() {
                Some(key) => key.to_owned(),
                None => {
                    let parts = item["nested_key"].as_array().expect("a nested name");
                    let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_str()).collect();
                    parts.join(".")
                }
            };
            if !name.starts_with('_') {
                items.insert(
                    name,
                    json_in_our_format(item["value_json"].as_str().expect("a text")),
                );
            }
        }
        items
    }

    /// Rewrites `text` with our formats of numbers and objects: the SDK writes `1` for `1.0`.
    fn json_in_our_format(text: &str) -> String {
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(serde_json::Value::Number(number)) => {
                number_text(number.as_f64().expect("a number"))
            }
            Ok(other) => other.to_string(),
            Err(_) => text.to_owned(),
        }
    }

    fn items_of(items: &[RecordItem]) -> BTreeMap<String, String> {
        let named = items.iter().filter(|item| !item.key.starts_with('_'));
        named
            .map(|item| (item.key.clone(), json_in_our_format(&item.value_json)))
            .collect()
    }

    #[test]
    fn records_equal_those_of_the_sdk() {
        let ours = records_of(&recorded_run());
        let theirs = recorded();
        let named = |name: &str| -> Vec<&serde_json::Value> {
            let all = theirs.iter().filter_map(|record| record.get(name));
            all.collect()
        };

        let mut histories = named("history").into_iter();
        for (record, num) in ours.iter().zip(1..) {
            assert_eq!(record.num, num);
            match record.kind.as_ref().expect("a kind") {
                RecordKind::Header(header) => {
                    let expected = &named("header")[0]["version_info"]["min_consumer"];
                    let version = header.version_info.as_ref().expect("a version");
                    assert_eq!(expected, &version.min_consumer);
                }
                RecordKind::Run(run) => check_run(run, named("run")[0]),
                RecordKind::History(history) => {
                    let expected = histories.next().expect("a line");
                    let step = history.step.expect("a step").num.to_string();
                    assert_eq!(items_of(&history.item), recorded_items(expected, "item"));
                    assert_eq!(step, expected["step"]["num"].as_str().unwrap_or("0"));
                }
                RecordKind::Summary(summary) => {
                    let expected = named("summary")
                        .into_iter()
                        .flat_map(|record| recorded_items(record, "update"));
                    assert_eq!(items_of(&summary.update), expected.collect());
                }
                RecordKind::Metric(_) => panic!("the values of the SDK's run have no known goal"),
                RecordKind::Stats(_) => panic!("the SDK has recorded nothing of the system"),
                RecordKind::Exit(exit) => {
                    assert_eq!(named("exit")[0], &serde_json::json!({}));
                    assert_eq!(exit.exit_code, 0);
                }
            }
        }
        assert_eq!(histories.next(), None);
        assert!(matches!(ours[0].kind, Some(RecordKind::Header(_))));
        assert!(matches!(ours[1].kind, Some(RecordKind::Run(_))));
        assert!(matches!(
            ours[ours.len() - 1].kind,
            Some(RecordKind::Exit(_))
        ));
    }

    fn check_run(run: &RunRecord, expected: &serde_json::Value) {
        let config = run.config.as_ref().expect("a configuration");
        assert_eq!(
            items_of(&config.update),
            recorded_items(&expected["config"], "update")
        );
        for (name, ours) in [
            ("run_id", &run.run_id),
            ("project", &run.project),
            ("run_group", &run.run_group),
            ("display_name", &run.display_name),
        ] {
            assert_eq!(&expected[name], ours, "{name}");
        }
        assert_eq!(expected["tags"], serde_json::json!(run.tags));

        let start = run.start_time.expect("a moment");
        let expected: jiff::Timestamp = expected["start_time"]
            .as_str()
            .expect("a text")
            .parse()
            .expect("a moment");
        assert_eq!(start.seconds, expected.as_second());
        assert!((start.nanos - expected.subsec_nanosecond()).abs() < 1000);
    }

    #[test]
    fn export_has_the_sdk_names_and_is_byte_identical() {
        let run = recorded_run();
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir
            .path()
            .join("offline-run-20261121_015543-run0001/run-run0001.wandb");
        for _ in 0..2 {
            export_to_wandb(&run, "", "htc-demo", dir.path()).expect("written");
            let bytes = fs_err::read(&file).expect("read");
            assert_eq!(bytes, offline_file(&run, "", "htc-demo"));
        }
    }

    #[test]
    fn resource_usage_follows_the_values_of_its_epoch() {
        let mut run = recorded_run();
        run.epochs[1].system.insert("cpu_seconds".to_owned(), 1.5);
        let kinds: Vec<_> = records_of(&run)
            .into_iter()
            .map(|record| record.kind)
            .collect();
        let Some(RecordKind::Stats(stats)) = &kinds[4] else {
            panic!("{kinds:?}");
        };
        assert_eq!(stats.item, [item("cpu_seconds", "1.5".to_owned())]);
        assert_eq!(stats.timestamp.expect("a moment").seconds, 1_795_226_144);
    }

    #[test]
    fn running_run_has_no_exit_record_and_failed_run_has_one() {
        let mut run = recorded_run();
        run.outcome = TrackedOutcome::Running;
        let last = records_of(&run).pop().expect("records");
        assert!(matches!(last.kind, Some(RecordKind::Summary(_))));

        run.outcome = TrackedOutcome::Failed;
        let last = records_of(&run).pop().expect("records");
        let Some(RecordKind::Exit(exit)) = last.kind else {
            panic!("no end");
        };
        assert_ne!(exit.exit_code, 0);
    }
}
