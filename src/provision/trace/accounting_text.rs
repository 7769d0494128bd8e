//! Parser of `sacct` text with any columns in any order. `--parsable2` separates the columns with
//! bars; the published log separates them with tabs, below an aligned header.

use std::ops::Range;

use anyhow::{Result, bail};

use super::accounting_row::{AccountingRow, StatedState};
use super::array_elements::{NamedJobs, parse_job_id};
use super::duration::{TimeLimit, parse_duration_s, parse_time_limit};
use super::local_time::{StampReadings, TraceZone, parse_stamp};
use super::row_collector::{RowCollector, UserHashes};
use super::row_fault::RowFault;
use super::text_lines::TextLines;
use super::trace_job::TraceJob;
use poolcast_base::error::hinted;

/// The hint for an incomplete file: a command that exports all columns that this program uses.
pub(super) const EXPORT_HINT: &str = "export with `sacct -a -D -X -P -S 2023-01-01 -E now -o \
                           JobID,User,Submit,Eligible,Start,End,Elapsed,Timelimit,NNodes,State`";

/// The separator between the fields of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldDivider {
    /// A bar, a comma or a semicolon.
    Mark(char),
    /// A tab, or blanks in a line without a tab.
    Blanks,
}

impl FieldDivider {
    /// The separator in the header `line`.
    pub(super) fn of_header(line: &str) -> FieldDivider {
        let mark = ['|', ';', ',']
            .into_iter()
            .find(|mark| line.contains(*mark));
        mark.map_or(FieldDivider::Blanks, FieldDivider::Mark)
    }

    /// Splits `line` into `fields`.
    fn divide<'a>(self, line: &'a str, fields: &mut Vec<&'a str>) {
        fields.clear();
        match self {
            FieldDivider::Mark(mark) => {
                let bare = |field: &'a str| field.trim().trim_matches('"');
                fields.extend(line.split(mark).map(bare));
            }
            FieldDivider::Blanks if line.contains('\t') => {
                fields.extend(line.split('\t').map(str::trim));
            }
            FieldDivider::Blanks => fields.extend(line.split_ascii_whitespace()),
        }
    }
}

/// The index of each column.
#[derive(Debug)]
pub(super) struct AccountingColumns {
    divider: FieldDivider,
    /// Fields per row.
    count: usize,
    job_id: usize,
    user: Option<usize>,
    submit: usize,
    eligible: Option<usize>,
    start: usize,
    end: usize,
    /// The column of the run time, and whether it is in seconds.
    run_time: Option<(usize, bool)>,
    limit: usize,
    /// The columns of the number of nodes. A job that waits has 0 allocated ones.
    nodes: Vec<usize>,
    state: Option<usize>,
}

impl AccountingColumns {
    /// Finds the columns in the header `line`. Returns `None` if `line` is not a header.
    ///
    /// # Errors
    /// Fails if the header lacks a required column.
    pub(super) fn find(line: &str, divider: FieldDivider) -> Result<Option<AccountingColumns>> {
        let mut names = Vec::new();
        divider.divide(line, &mut names);
        let at = |wanted: &[&str]| {
            let places = wanted.iter().filter_map(|wanted| {
                names
                    .iter()
                    .position(|name| name.eq_ignore_ascii_case(wanted))
            });
            places.into_iter().next()
        };
        let Some(job_id) = at(&["JobID", "JobIDRaw"]) else {
            return Ok(None);
        };

        let need = |wanted: &[&str]| {
            at(wanted).ok_or_else(|| {
                let message = format!("the trace has no column {}", wanted.join(" or "));
                hinted(message, EXPORT_HINT)
            })
        };
        let node_columns = ["NNodes", "AllocNodes", "ReqNodes"];
        let run_time = at(&["ElapsedRaw"])
            .map(|place| (place, true))
            .or_else(|| Some((at(&["Elapsed"])?, false)));
        Ok(Some(AccountingColumns {
            divider,
            // With the older `--parsable` each line ends with a bar, so the last field is empty, in
            // the header too.
            count: names.len(),
            job_id,
            user: at(&["User", "UID"]),
            submit: need(&["Submit"])?,
            eligible: at(&["Eligible"]),
            start: need(&["Start"])?,
            end: need(&["End"])?,
            run_time,
            // Without bars, `sacct` truncates column names to ten characters.
            limit: need(&["Timelimit", "TimelimitRaw", "TimelimitR"])?,
            nodes: {
                need(&node_columns)?;
                node_columns
                    .iter()
                    .filter_map(|name| at(&[*name]))
                    .collect()
            },
            state: at(&["State"]),
        }))
    }

    /// Reads the rows that follow the header.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if it has local stamps and `zone` is `None`.
    pub(super) fn read_rows(
        &self,
        lines: &mut TextLines,
        zone: Option<&TraceZone>,
        users: &mut UserHashes,
        collector: &mut RowCollector,
    ) -> Result<()> {
        let mut spans = Vec::new();
        while let Some(line) = lines.next()? {
            let Some(text) = line.text else {
                collector.add(line.number, Err(RowFault::NotText));
                continue;
            };
            if text.bytes().all(|byte| matches!(byte, b'-' | b' ')) {
                spans = column_spans(text);
                continue;
            }
            let mut fields = Vec::with_capacity(self.count);
            self.divider.divide(text, &mut fields);
            let has_spans = spans.len() == self.count && !text.contains('\t');
            if fields.len() != self.count && has_spans {
                // A field is empty, or has a blank.
                fields = fields_at(text, &spans);
            }
            if line.is_cut && !(fields.len() == self.count && self.ends_with_state()) {
                collector.add(line.number, Err(RowFault::CutShort));
                continue;
            }
            match self.read_row(&fields, zone, users)? {
                RowContent::Step => collector.step_rows += 1,
                RowContent::Head => {}
                RowContent::Jobs(found) => collector.add(line.number, found),
            }
        }
        Ok(())
    }

    /// Returns true if the last column is the state, which shows that no character is missing.
    fn ends_with_state(&self) -> bool {
        self.state.is_some_and(|place| place + 1 == self.count)
    }

    fn read_row(
        &self,
        fields: &[&str],
        zone: Option<&TraceZone>,
        users: &mut UserHashes,
    ) -> Result<RowContent> {
        if fields.len() != self.count {
            return Ok(RowContent::Jobs(Err(RowFault::FieldCount)));
        }
        // Concatenated exports contain several headers.
        if fields[self.submit].eq_ignore_ascii_case("Submit") {
            return Ok(RowContent::Head);
        }
        let ids = match parse_job_id(fields[self.job_id]) {
            Ok(NamedJobs::Step) => return Ok(RowContent::Step),
            Ok(NamedJobs::One(id)) => vec![id],
            Ok(NamedJobs::Several(ids)) => ids,
            Err(fault) => return Ok(RowContent::Jobs(Err(fault))),
        };

        let row = self.parse_fields(fields, zone, users)?;
        let jobs = row.and_then(|row| ids.into_iter().map(|id| row.job(id)).collect());
        Ok(RowContent::Jobs(jobs))
    }

    fn parse_fields(
        &self,
        fields: &[&str],
        zone: Option<&TraceZone>,
        users: &mut UserHashes,
    ) -> Result<Result<AccountingRow, RowFault>> {
        let stamp = |place: Option<usize>, fault| {
            let Some(place) = place else {
                return Ok(Ok(None));
            };
            parse_stamp(fields[place], zone).map(|found| found.ok_or(fault))
        };
        let submit = stamp(Some(self.submit), RowFault::Submit)?;
        let eligible = stamp(self.eligible, RowFault::Eligible)?;
        let start = stamp(Some(self.start), RowFault::Start)?;
        let end = stamp(Some(self.end), RowFault::End)?;
        let user = self.user.map_or(0, |place| users.hash(fields[place]));
        Ok(self.join(fields, user, [submit, eligible, start, end]))
    }

    /// Combines the stamps (submit, eligible, start and end) with the other fields of the row.
    fn join(
        &self,
        fields: &[&str],
        user: u64,
        stamps: [Result<Option<StampReadings>, RowFault>; 4],
    ) -> Result<AccountingRow, RowFault> {
        let [submit, eligible, start, end] = stamps;
        let limit = parse_time_limit(fields[self.limit]).ok_or(RowFault::TimeLimit)?;
        let nodes = self
            .nodes
            .iter()
            .find_map(|place| node_count(fields[*place]));
        Ok(AccountingRow {
            user,
            submit: submit?.ok_or(RowFault::Submit)?,
            eligible: eligible?,
            start: start?,
            end: end?,
            run_s: self.run_s(fields)?,
            limit_s: match limit {
                TimeLimit::Seconds(limit_s) => Some(limit_s),
                TimeLimit::None => None,
            },
            nodes: nodes.ok_or(RowFault::Nodes)?,
            state: self.state.map_or(StatedState::Unknown, |place| {
                StatedState::parse(fields[place])
            }),
        })
    }

    fn run_s(&self, fields: &[&str]) -> Result<Option<i64>, RowFault> {
        let Some((place, is_seconds)) = self.run_time else {
            return Ok(None);
        };
        let text = fields[place];
        if matches!(text, "" | "INVALID" | "Unknown" | "-") {
            return Ok(None);
        }
        let run_s = if is_seconds {
            text.parse().ok()
        } else {
            parse_duration_s(text)
        };
        run_s.map(Some).ok_or(RowFault::RunTime)
    }
}

/// The columns below the `dashes` of a table. Each ends with its dashes, and begins after the
/// previous column.
fn column_spans(dashes: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut begin = 0;
    for (place, _) in dashes.match_indices('-') {
        if dashes.as_bytes().get(place + 1) != Some(&b'-') {
            spans.push(begin..place + 1);
            begin = place + 1;
        }
    }
    spans
}

/// Splits the row `text` of a table into the fields at `spans`.
fn fields_at<'a>(text: &'a str, spans: &[Range<usize>]) -> Vec<&'a str> {
    let field = |span: &Range<usize>| text.get(span.start..span.end.min(text.len()));
    let fields = spans.iter().map(field);
    fields
        .map(|field| field.unwrap_or_default().trim())
        .collect()
}

/// Parses a number of nodes above 0, such as `12`, `2K` or `1.50K`. A K is 1,024.
fn node_count(text: &str) -> Option<u32> {
    let count = match text.strip_suffix('K') {
        Some(thousands) => (thousands.parse::<f64>().ok()? * 1024.0).round() as u32,
        None => text.parse().ok()?,
    };
    Some(count).filter(|count| *count > 0)
}

/// The content of a row.
enum RowContent {
    Step,
    Head,
    Jobs(Result<Vec<TraceJob>, RowFault>),
}

/// Rejects a file by its first `line`, which fits no known format.
pub(super) fn reject_unknown(line: &str) -> Result<()> {
    let shown: String = line.chars().take(60).collect();
    bail!(hinted(
        format!(
            "line 1 is `{shown}`, expected the header of a `sacct` export, JSON of `sacct`, or the \
             Standard Workload Format"
        ),
        EXPORT_HINT
    ))
}
