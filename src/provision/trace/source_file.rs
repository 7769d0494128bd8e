//! Reads one source file of a trace, and detects its format from its content.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::accounting_json;
use super::accounting_text::{AccountingColumns, FieldDivider, reject_unknown};
use super::local_time::TraceZone;
use super::row_collector::{RowCollector, UserHashes};
use super::row_fault::RejectedRows;
use super::text_lines::TextLines;
use super::trace_job::TraceJob;
use super::workload_format::{self, FIELDS_PER_ROW};
use htcondor_eventlog::{PlainStream, decompress};
use poolcast_base::error::hinted;
use poolcast_base::manifest::SharedChecksum;

/// The format of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceForm {
    /// Text of `sacct`, separated by bars.
    SacctText,
    /// Text of `sacct` in aligned columns, or separated by tabs, commas or semicolons.
    SacctTable,
    /// Output of `sacct --json`.
    SacctJson,
    /// The Standard Workload Format.
    StandardWorkload,
}

impl SourceForm {
    /// Returns the name for display.
    pub fn describe(self) -> &'static str {
        match self {
            SourceForm::SacctText => "sacct with bars",
            SourceForm::SacctTable => "a table of sacct",
            SourceForm::SacctJson => "sacct --json",
            SourceForm::StandardWorkload => "Standard Workload Format",
        }
    }
}

/// A source file of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSource {
    /// The file name, without the directory.
    pub name: String,
    /// The file size, in bytes.
    pub bytes: u64,
    /// The XXH3 digest of the file.
    pub xxh3: String,
    /// The format of the file.
    pub form: SourceForm,
    /// Rows about a job, valid or not.
    pub rows: u64,
    /// Skipped rows of job steps and of bursts.
    pub step_rows: u64,
    /// The line count that the file announces, the announcing line included; `None` unless the file
    /// has fewer lines.
    pub announced_lines: Option<u64>,
    /// Jobs without a time limit in the file, for which the run time is used as the limit.
    pub limits_from_runs: u64,
    /// The number of nodes of the cluster, if the file states it.
    #[serde(default)]
    pub cluster_nodes: Option<u32>,
    /// The rejected rows.
    pub rejected: Vec<RejectedRows>,
}

/// A source file and the jobs that it contains.
pub(super) struct SourceContent {
    pub(super) source: TraceSource,
    pub(super) jobs: Vec<TraceJob>,
    /// The time zone that the file names.
    pub(super) zone: Option<TraceZone>,
}

/// Reads the file at `path`. `zone` is the time zone of its local stamps.
///
/// # Errors
/// Fails if the file cannot be read, is empty, or has an unknown format. Also fails if it has local
/// stamps and `zone` is `None`.
pub(super) fn read_source(
    path: &Path,
    zone: Option<&TraceZone>,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
) -> Result<SourceContent> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = fs_err::File::open(path)?;
    read_stream(&name, file, zone, procs_per_node, users)
        .with_context(|| format!("cannot read the trace `{}`", path.display()))
}

/// Reads `stream` like [`read_source`]. `name` is the name of the source.
pub(super) fn read_stream(
    name: &str,
    stream: impl Read + Send + 'static,
    zone: Option<&TraceZone>,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
) -> Result<SourceContent> {
    let checksum = SharedChecksum::default();
    let read = checksum.clone();
    let plain = decompress(stream, move |bytes| read.update(bytes));
    let found = plain.map(|plain| match plain {
        Some(PlainStream { reader, .. }) => TextLines::new(reader),
        None => TextLines::new(Box::new(std::io::empty())),
    });

    let mut collector = RowCollector::default();
    let read = found.map_err(anyhow::Error::from).and_then(|mut lines| {
        read_lines(&mut lines, zone, procs_per_node, users, &mut collector)
    })?;

    let (bytes, xxh3) = checksum.finish();
    Ok(SourceContent {
        source: TraceSource {
            name: name.to_owned(),
            bytes,
            xxh3,
            form: read.form,
            rows: collector.rows,
            step_rows: collector.step_rows,
            announced_lines: read.announced_lines,
            limits_from_runs: collector.limits_from_runs,
            cluster_nodes: read.cluster_nodes,
            rejected: collector.faults.counted(),
        },
        jobs: collector.jobs,
        zone: read.zone,
    })
}

/// Facts about a file that do not depend on its jobs.
struct SourceFacts {
    form: SourceForm,
    announced_lines: Option<u64>,
    cluster_nodes: Option<u32>,
    zone: Option<TraceZone>,
}

impl SourceFacts {
    fn of(form: SourceForm) -> SourceFacts {
        SourceFacts {
            form,
            announced_lines: None,
            cluster_nodes: None,
            zone: None,
        }
    }
}

fn read_lines(
    lines: &mut TextLines,
    zone: Option<&TraceZone>,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
    collector: &mut RowCollector,
) -> Result<SourceFacts> {
    let first = lines.first_byte()?;
    ensure!(first.is_some(), "the file is empty");
    ensure!(
        !matches!(first, Some(0xfe | 0xff)),
        hinted("the file is UTF-16", "save it as UTF-8")
    );
    if first == Some(b'{') {
        accounting_json::read_jobs(lines.rest(), users, collector)?;
        return Ok(SourceFacts::of(SourceForm::SacctJson));
    }

    let mut announced = None;
    loop {
        let Some(line) = lines.next()? else {
            return reject_unknown("a number alone")
                .map(|()| SourceFacts::of(SourceForm::SacctTable));
        };
        let text = line.text.unwrap_or_default().to_owned();
        // The first line of the published log is the number of lines that follow.
        if announced.is_none() && text.parse::<u64>().is_ok() {
            announced = text.parse().ok().map(|lines: u64| lines + line.number);
            continue;
        }
        // Text of a terminal may begin with the command, or with a message of `sacct`.
        if text.starts_with("$ ") || text.starts_with("sacct: ") {
            continue;
        }
        if text.starts_with(';') || is_workload_row(&text) {
            let head = workload_format::read_rows(&text, lines, procs_per_node, users, collector)?;
            return Ok(SourceFacts {
                cluster_nodes: head.cluster_nodes(procs_per_node),
                zone: head.zone,
                ..SourceFacts::of(SourceForm::StandardWorkload)
            });
        }

        let divider = FieldDivider::of_header(&text);
        let form = match divider {
            FieldDivider::Mark('|') => SourceForm::SacctText,
            FieldDivider::Mark(_) | FieldDivider::Blanks => SourceForm::SacctTable,
        };
        let Some(columns) = AccountingColumns::find(&text, divider)? else {
            return reject_unknown(&text).map(|()| SourceFacts::of(form));
        };
        columns.read_rows(lines, zone, users, collector)?;
        let announced_lines = announced.filter(|announced| *announced > lines.count());
        return Ok(SourceFacts {
            announced_lines,
            ..SourceFacts::of(form)
        });
    }
}

fn is_workload_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let are_numbers = words.clone().all(|word| word.parse::<f64>().is_ok());
    are_numbers && words.by_ref().count() == FIELDS_PER_ROW
}
