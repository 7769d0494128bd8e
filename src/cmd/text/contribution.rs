//! The text of a contribution to the prior: what it has, in counts.

use std::path::Path;

use poolcast_base::{escape, output};
use poolcast_holds::answers::{ContributionSummary, HoldQuestion, MIN_OWNERS, SharedGroup};

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 2;

/// Returns what the contribution has, for people, and the `file` that it is written to.
pub(in crate::cmd) fn page(summary: &ContributionSummary, file: Option<&Path>) -> String {
    let sum = |count: fn(&SharedGroup) -> usize| summary.groups.iter().map(count).sum::<usize>();
    let rows = sum(|group| group.rows);
    let mut lines = vec![
        format!(
            "{} of {}: columns of numbers and an outcome, without names and times",
            output::counted(rows, "row"),
            output::counted(summary.groups.len(), "group")
        ),
        format!(
            "{} in version {}: the hold, its job, its last run, and earlier outcomes; --json lists them",
            output::counted(summary.columns.len(), "column"),
            summary.columns_version
        ),
        format!(
            "at least {MIN_OWNERS} owners are behind each of {} of numbers: {} of the rows have means of several",
            output::counted(sum(|group| group.combinations), "combination"),
            output::with_commas(sum(|group| group.coarse_rows) as u64)
        ),
        String::new(),
        format!(
            "{:<16} {:>7} {:>7} {:>13} {:>10}  {}",
            "released", "owners", "rows", "combinations", "succeeded", "because"
        ),
    ];
    lines.extend(summary.groups.iter().map(group_line));
    lines.push(String::new());
    if summary.groups_left_out > 0 {
        lines.push(format!(
            "left out: {} with fewer than {MIN_OWNERS} owners, {}",
            output::counted(summary.groups_left_out, "group"),
            output::counted(summary.rows_left_out, "row")
        ));
    }
    lines.push(match file {
        Some(file) => format!("to be written to {}", escape::path(file)),
        None => "nothing is written yet: -o FILE writes it".to_owned(),
    });
    lines.push(String::new());
    lines.join("\n")
}

fn group_line(group: &SharedGroup) -> String {
    let question = match group.question {
        HoldQuestion::Now => "at that second",
        HoldQuestion::Later => "later",
    };
    format!(
        "{question:<16} {:>7} {:>7} {:>13} {:>9.0}%  {}",
        group.owners,
        output::with_commas(group.rows as u64),
        output::with_commas(group.combinations as u64),
        100.0 * group.successes as f64 / group.rows.max(1) as f64,
        group.stated
    )
}
