//! A file of a trace, whose form its content tells.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::accounting_json;
use super::accounting_text::{AccountingColumns, FieldDivider, refuse_unknown};
use super::local_time::TraceZone;
use super::row_collector::{RowCollector, UserHashes};
use super::row_fault::RejectedRows;
use super::text_lines::TextLines;
use super::trace_job::TraceJob;
use super::workload_format::{self, FIELDS};
use poolcast_base::files::{self, PlainStream};
use poolcast_base::manifest::{Checksum, ChecksummedReader};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceForm {
    /// The text of `sacct`, divided by bars.
    SacctText,
    /// The text of `sacct` in aligned columns, or divided by tabs below an aligned head.
    SacctTable,
    /// `sacct --json`.
    SacctJson,
    /// The Standard Workload Format.
    StandardWorkload,
}

impl SourceForm {
    /// What people call it.
    pub fn describe(self) -> &'static str {
        match self {
            SourceForm::SacctText => "sacct with bars",
            SourceForm::SacctTable => "a table of sacct",
            SourceForm::SacctJson => "sacct --json",
            SourceForm::StandardWorkload => "Standard Workload Format",
        }
    }
}

/// A file that went into a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSource {
    /// Its name, without the directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// XXH3 of the file.
    pub xxh3: String,
    /// What it is written in.
    pub form: SourceForm,
    /// Rows with a job, sound or not.
    pub rows: u64,
    /// Rows of steps of jobs, which are passed over.
    pub step_rows: u64,
    /// How many lines the file says that it has, which is more than there are.
    pub announced_lines: Option<u64>,
    /// Jobs whose time limit is not known, for which their run time stands.
    pub limits_from_runs: u64,
    /// The rows that were left out.
    pub rejected: Vec<RejectedRows>,
}

/// What a file comes to.
pub(super) struct SourceContent {
    pub(super) source: TraceSource,
    pub(super) jobs: Vec<TraceJob>,
    /// The zone that the file names.
    pub(super) zone: Option<TraceZone>,
}

/// Reads the file at `path`. `zone` is that of its stamps, where they are of local time.
///
/// # Errors
/// Fails when the file cannot be read, is empty, is of no form that is known, or has stamps of local
/// time without a zone.
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

/// Reads what `stream` has, as [`read_source`] does; `name` is what it is called.
pub(super) fn read_stream(
    name: &str,
    stream: impl Read + Send + 'static,
    zone: Option<&TraceZone>,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
) -> Result<SourceContent> {
    let checksum = Arc::new(Mutex::new(Checksum::default()));
    let file = ChecksummedReader::new(stream, |_| {}, checksum.clone());
    let found = files::decompress(file).map(|plain| match plain {
        Some(PlainStream { reader, .. }) => TextLines::new(reader),
        None => TextLines::new(Box::new(std::io::empty())),
    });

    let mut collector = RowCollector::default();
    let read = found.map_err(anyhow::Error::from).and_then(|mut lines| {
        read_lines(&mut lines, zone, procs_per_node, users, &mut collector)
    })?;

    let (bytes, xxh3) = checksum
        .lock()
        .expect("no thread panics with the lock")
        .finish();
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
            rejected: collector.faults.counted(),
        },
        jobs: collector.jobs,
        zone: read.zone,
    })
}

/// What a file says of itself.
struct ReadLines {
    form: SourceForm,
    announced_lines: Option<u64>,
    zone: Option<TraceZone>,
}

impl ReadLines {
    fn of(form: SourceForm) -> ReadLines {
        ReadLines {
            form,
            announced_lines: None,
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
) -> Result<ReadLines> {
    let first = lines.first_byte()?;
    ensure!(first.is_some(), "the file is empty");
    if first == Some(b'{') {
        accounting_json::read_jobs(lines.rest(), users, collector)?;
        return Ok(ReadLines::of(SourceForm::SacctJson));
    }

    let mut announced = None;
    loop {
        let Some(line) = lines.next()? else {
            return refuse_unknown("a number alone")
                .map(|()| ReadLines::of(SourceForm::SacctTable));
        };
        let text = line.text.unwrap_or_default().to_owned();
        // The published log begins with the number of lines that follow.
        if announced.is_none() && text.parse::<u64>().is_ok() {
            announced = text.parse().ok().map(|lines: u64| lines + line.number);
            continue;
        }
        if text.starts_with(';') || is_workload_row(&text) {
            let head = workload_format::read_rows(&text, lines, procs_per_node, users, collector)?;
            return Ok(ReadLines {
                zone: head.zone,
                ..ReadLines::of(SourceForm::StandardWorkload)
            });
        }

        let (divider, form) = if text.contains('|') {
            (FieldDivider::Bar, SourceForm::SacctText)
        } else {
            (FieldDivider::Blanks, SourceForm::SacctTable)
        };
        let Some(columns) = AccountingColumns::find(&text, divider)? else {
            return refuse_unknown(&text).map(|()| ReadLines::of(form));
        };
        columns.read_rows(lines, zone, users, collector)?;
        let announced_lines = announced.filter(|announced| *announced > lines.count());
        return Ok(ReadLines {
            announced_lines,
            ..ReadLines::of(form)
        });
    }
}

fn is_workload_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let are_numbers = words.clone().all(|word| word.parse::<f64>().is_ok());
    are_numbers && words.by_ref().count() == FIELDS
}
