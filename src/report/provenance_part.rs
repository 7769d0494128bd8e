//! The part on reproducibility: versions, digests, the seed, the configuration, and the commands.

use std::collections::BTreeMap;

use anyhow::Result;

use super::document::{ReportBlock, ReportCell, ReportPart, ReportTable};
use super::inputs::{ReportInputs, ReportedKind};
use super::words;
use poolcast_base::{manifest, output, program};
use poolcast_config::yaml;
use poolcast_events::{EVENTS_FORMAT, StoreSummary};
use poolcast_sweep as sweep;

/// Makes the part.
///
/// # Errors
/// Fails if a file is damaged, or if the configuration cannot be written as YAML.
pub(super) fn provenance_part(inputs: &ReportInputs) -> Result<ReportPart> {
    let mut blocks = vec![ReportBlock::Table(fact_table(inputs)?)];
    let events = manifest::read::<StoreSummary>(&sweep::events_dir(&inputs.dir), EVENTS_FORMAT);
    if let Some(events) = inputs.if_available(events)? {
        blocks.push(ReportBlock::Table(log_table(inputs, &events.body)));
    }
    if !inputs.runs_program() {
        blocks.push(ReportBlock::paragraph(
            "The same configuration, logs and program give a byte-identical model, with any number of threads.",
        ));
    }
    blocks.push(ReportBlock::Lines {
        title: "The commands that reproduce it".to_owned(),
        text: commands(inputs),
    });
    blocks.push(ReportBlock::Lines {
        title: "The whole configuration".to_owned(),
        text: configuration(inputs)?,
    });
    Ok(ReportPart {
        id: "provenance",
        title: "Provenance",
        blocks,
    })
}

fn fact_table(inputs: &ReportInputs) -> Result<ReportTable> {
    let mut table = ReportTable::new("Made with", &[("what", 0), ("value", 0)]);
    let mut add = |what: &str, value: String| {
        table
            .rows
            .push(vec![ReportCell::from(what), ReportCell::Words(value)]);
    };
    add(
        "program",
        format!(
            "poolcast {}, commit {}",
            env!("CARGO_PKG_VERSION"),
            program::commit()
        ),
    );
    add("seed", inputs.config.seed.to_string());
    let document = manifest::read_json::<serde_json::Value>(&inputs.dir.join(manifest::FILE));
    if let Ok(document) = document {
        for (name, key) in [
            ("digest of the inputs", "key"),
            ("digest of the events", "source_key"),
        ] {
            if let Some(digest) = document[key].as_str() {
                add(name, words::shown(digest));
            }
        }
    }
    let model = match &inputs.run {
        Some(run) => inputs.open_model(run)?,
        None => None,
    };
    if let Some(model) = model {
        add("model", words::shown(&model.name));
        add("SHA-256 of the model that was scored", model.sha256);
        add("digest of the tensors", model.tensors_key);
    }
    Ok(table)
}

/// Lists the logs with their digests.
fn log_table(inputs: &ReportInputs, events: &StoreSummary) -> ReportTable {
    let columns = [
        ("log", 0),
        ("bytes", 0),
        ("from", 0),
        ("to", 0),
        ("XXH3", 0),
    ];
    let mut table = ReportTable::new("The logs", &columns);
    for (at, log) in events.sources.iter().enumerate() {
        let name = if inputs.is_anonymous {
            format!("log {}", at + 1)
        } else {
            words::shown(&log.name)
        };
        table.push([
            name.into(),
            (log.bytes as usize).into(),
            log.begin_ms.map(output::utc_time).into(),
            log.end_ms.map(output::utc_time).into(),
            words::shown(&log.xxh3).into(),
        ]);
    }
    table
}

fn commands(inputs: &ReportInputs) -> String {
    let dir = inputs.dir_argument();
    match inputs.kind {
        ReportedKind::Run => {
            "poolcast train TENSORS -o RUN --config config.yaml\npoolcast evaluate RUN TENSORS\n"
                .to_owned()
        }
        ReportedKind::Dag => format!(
            "poolcast dag config.yaml -o {dir}\ncd {dir} && condor_submit_dag pipeline.dag\n"
        ),
        ReportedKind::Sweep if inputs.dir.join("report.json").is_file() => {
            "poolcast run config.yaml\n".to_owned()
        }
        ReportedKind::Sweep if inputs.is_over_waits() || inputs.runs_program() => {
            format!("poolcast sweep init config.yaml -o {dir}\npoolcast sweep run {dir}\n")
        }
        ReportedKind::Sweep => format!(
            "poolcast sweep init config.yaml -o {dir}\npoolcast sweep run {dir}\npoolcast sweep evaluate {dir}\n"
        ),
    }
}

/// Formats the configuration as YAML. An anonymous report has only the sections without names and
/// paths.
fn configuration(inputs: &ReportInputs) -> Result<String> {
    const WITHOUT_NAMES: [&str; 9] = [
        "seed",
        "runs",
        "epochs",
        "earlystop_threshold",
        "earlystop_min_delta",
        "earlystop_metric",
        "preprocessing",
        "training",
        "pipelines",
    ];
    if !inputs.is_anonymous {
        return Ok(words::shown_lines(&yaml::write(&inputs.config)?));
    }
    let all = serde_json::to_value(&inputs.config)?;
    let mut shown = BTreeMap::new();
    for name in WITHOUT_NAMES {
        shown.insert(name, &all[name]);
    }
    Ok(words::shown_lines(&yaml::write(&shown)?))
}
