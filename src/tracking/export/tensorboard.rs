//! Exports runs as TensorBoard's event files, one directory per run.
//!
//! All times come from the run, and neither file names nor contents have a machine's name. So the
//! file of a run is byte-identical on every export.

use std::path::Path;

use anyhow::Result;
use prost::Message as _;
use serde_json::Value;

use super::event_record::{
    Event, EventKind, FILE_VERSION, HyperParameterData, HyperParameterRecord, HyperParameterValue,
    PluginData, STRING_TYPE, SessionBegin, SessionEnd, SessionPart, SessionStatus, Summary,
    SummaryContent, SummaryMetadata, SummaryValue, TensorProto, TensorShape, append_event,
};
use crate::runs::{JUDGED, TRAIN, TrackedOutcome, TrackedRun, VALIDATION};
use poolcast_base::files;

/// Tag of the text with the hyper-parameters.
const CONFIG_TAG: &str = "config";

/// Tags of the plugin `hparams`, as in its `metadata.py`.
const SESSION_BEGIN_TAG: &str = "_hparams_/session_start_info";
const SESSION_END_TAG: &str = "_hparams_/session_end_info";

/// Prefixes of names of values that are groups on TensorBoard's pages.
const GROUPS: [&str; 3] = [TRAIN, VALIDATION, JUDGED];

/// Writes the event file of `run` into its directory below `dir`, and replaces an existing file.
pub(super) fn export_to_tensorboard(run: &TrackedRun, dir: &Path) -> Result<()> {
    let run_dir = dir.join(directory_name(run));
    fs_err::create_dir_all(&run_dir)?;
    let began_s = run.began_s.floor() as i64;
    let file = run_dir.join(format!("events.out.tfevents.{began_s}.poolcast"));
    files::write_atomic(&file, &event_file(run))
}

/// Makes the directory's name, which TensorBoard shows as the name of the run. A single run has its id in it, since
/// runs of several directories may be exported to one.
fn directory_name(run: &TrackedRun) -> String {
    let mut name = String::new();
    for c in run.name.chars().take(100) {
        let is_plain = c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        name.push(if is_plain { c } else { '-' });
    }
    match run.trial() {
        Some(_) => name,
        None => format!("{name}-{}", run.run_id),
    }
}

/// Returns the bytes of the event file of `run`.
fn event_file(run: &TrackedRun) -> Vec<u8> {
    let mut file = Vec::new();
    append_event(
        &mut file,
        &Event {
            wall_time: run.began_s,
            step: 0,
            kind: Some(EventKind::FileVersion(FILE_VERSION.to_owned())),
        },
    );
    append_event(&mut file, &config_event(run));
    append_event(
        &mut file,
        &session_event(
            SESSION_BEGIN_TAG,
            run.began_s,
            SessionPart::Begin(session_begin(run)),
        ),
    );

    for epoch in &run.epochs {
        let values = epoch.values.iter();
        append_event(
            &mut file,
            &scalar_event(
                epoch.step,
                epoch.ended_s,
                values.map(|(name, value)| (name, *value)),
            ),
        );
    }
    if run.outcome != TrackedOutcome::Running {
        append_event(&mut file, &result_event(run));
        append_event(
            &mut file,
            &session_event(
                SESSION_END_TAG,
                run.ended_s(),
                SessionPart::End(session_end(run)),
            ),
        );
    }
    file
}

/// Makes the event of the numbers at `step`, by name.
fn scalar_event<'a>(
    step: u64,
    wall_time: f64,
    values: impl Iterator<Item = (&'a String, f64)>,
) -> Event {
    let value = values.map(|(name, number)| SummaryValue {
        tag: grouped_tag(name),
        metadata: None,
        content: Some(SummaryContent::SimpleValue(number as f32)),
    });
    Event {
        wall_time,
        step: step as i64,
        kind: Some(EventKind::Summary(Summary {
            value: value.collect(),
        })),
    }
}

/// Makes the event of the results that no epoch has, at the last step.
fn result_event(run: &TrackedRun) -> Event {
    let step = run.epochs.last().map_or(0, |epoch| epoch.step);
    let judged = run
        .summary
        .iter()
        .filter(|(name, _)| name.starts_with(JUDGED));
    let values = judged.filter_map(|(name, value)| Some((name, value.as_f64()?)));
    scalar_event(step, run.ended_s(), values)
}

/// Returns the tag of a value. TensorBoard groups charts by what precedes the first slash.
fn grouped_tag(name: &str) -> String {
    for prefix in GROUPS {
        if let Some(rest) = name.strip_prefix(prefix) {
            let group = prefix.trim_end_matches('_');
            return format!("{group}/{rest}");
        }
    }
    name.to_owned()
}

/// Makes an event for the plugin that compares runs by their hyper-parameters.
fn session_event(tag: &str, wall_time: f64, part: SessionPart) -> Event {
    let content = HyperParameterData { part: Some(part) }.encode_to_vec();
    let plugin_data = PluginData {
        plugin_name: "hparams".to_owned(),
        content,
    };
    let value = SummaryValue {
        tag: tag.to_owned(),
        metadata: Some(SummaryMetadata {
            plugin_data: Some(plugin_data),
        }),
        content: None,
    };
    Event {
        wall_time,
        step: 0,
        kind: Some(EventKind::Summary(Summary { value: vec![value] })),
    }
}

fn session_begin(run: &TrackedRun) -> SessionBegin {
    let values = run
        .config
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), hyper_parameter(value)?)));
    SessionBegin {
        hparams: values.collect(),
        start_time_secs: run.began_s,
    }
}

/// Converts the value of a hyper-parameter; `None` for lists and objects, which the plugin does not show.
fn hyper_parameter(value: &Value) -> Option<HyperParameterRecord> {
    let value = match value {
        Value::Number(number) => HyperParameterValue::Number(number.as_f64()?),
        Value::String(text) => HyperParameterValue::Text(text.clone()),
        Value::Bool(flag) => HyperParameterValue::Flag(*flag),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(HyperParameterRecord { value: Some(value) })
}

fn session_end(run: &TrackedRun) -> SessionEnd {
    let status = match run.outcome.exit_code() {
        None => SessionStatus::Running,
        Some(0) => SessionStatus::Success,
        Some(_) => SessionStatus::Failure,
    };
    SessionEnd {
        status: status.into(),
        end_time_secs: run.ended_s(),
    }
}

/// Formats the hyper-parameters as a text, which TensorBoard shows as a table.
fn config_event(run: &TrackedRun) -> Event {
    let plugin_data = PluginData {
        plugin_name: "text".to_owned(),
        content: Vec::new(),
    };
    let text = SummaryValue {
        tag: CONFIG_TAG.to_owned(),
        metadata: Some(SummaryMetadata {
            plugin_data: Some(plugin_data),
        }),
        content: Some(SummaryContent::Tensor(TensorProto {
            dtype: STRING_TYPE,
            tensor_shape: Some(TensorShape {}),
            string_val: vec![config_table(run).into_bytes()],
        })),
    };
    Event {
        wall_time: run.began_s,
        step: 0,
        kind: Some(EventKind::Summary(Summary { value: vec![text] })),
    }
}

/// Formats the hyper-parameters as a Markdown table.
fn config_table(run: &TrackedRun) -> String {
    let mut table = String::from("| name | value |\n| --- | --- |\n");
    for (name, value) in &run.config {
        table.push_str(&format!("| {} | {} |\n", cell(name), cell(&shown(value))));
    }
    table
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Escapes `text` for a table cell: bars are escaped and line breaks become spaces.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::super::event_record::read_events;
    use super::*;
    use crate::runs::recorded_run;

    fn scalars(events: &[Event]) -> Vec<(i64, f64, String, f32)> {
        let mut scalars = Vec::new();
        for event in events {
            let Some(EventKind::Summary(summary)) = &event.kind else {
                continue;
            };
            for value in &summary.value {
                if let Some(SummaryContent::SimpleValue(number)) = value.content {
                    scalars.push((event.step, event.wall_time, value.tag.clone(), number));
                }
            }
        }
        scalars
    }

    #[test]
    fn file_has_every_value_of_every_epoch_with_its_time() {
        let run = recorded_run();
        let events = read_events(&event_file(&run));
        let mut expected = Vec::new();
        for epoch in &run.epochs {
            for (tag, number) in &epoch.values {
                let step = epoch.step as i64;
                expected.push((step, epoch.ended_s, tag.clone(), *number as f32));
            }
        }
        // Compare as texts, because NaN is not equal to itself.
        assert_eq!(format!("{:?}", scalars(&events)), format!("{expected:?}"));
        assert!(expected.iter().any(|(.., number)| number.is_nan()));
        assert_eq!(
            events[0].kind,
            Some(EventKind::FileVersion("brain.Event:2".to_owned()))
        );
    }

    #[test]
    fn repeated_export_is_byte_identical() {
        let run = recorded_run();
        let dir = tempfile::tempdir().expect("a directory");
        export_to_tensorboard(&run, dir.path()).expect("written");
        export_to_tensorboard(&run, dir.path()).expect("written");
        let run_dir = dir.path().join(directory_name(&run));
        let names: Vec<_> = fs_err::read_dir(&run_dir)
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["events.out.tfevents.1795226143.poolcast"]);
        let bytes = fs_err::read(run_dir.join(&names[0])).expect("read");
        assert_eq!(bytes, event_file(&run));
    }

    #[test]
    fn run_name_is_one_directory_and_value_is_one_cell() {
        let mut run = recorded_run();
        run.name = "../a/\u{202e}b".to_owned();
        assert_eq!(directory_name(&run), "---a--b-run0001");

        run.config.clear();
        run.config.insert("a|b".to_owned(), "c\n|d".into());
        let rows = config_table(&run);
        assert_eq!(rows.lines().last(), Some("| a\\|b | c \\|d |"));
    }
}
