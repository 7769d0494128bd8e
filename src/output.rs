//! What people see: data on stdout; notes, progress and diagnostics on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tracing::level_filters::LevelFilter;

/// Writes `text` to stdout. A closed pipe comes back as an error that [`crate::error::is_broken_pipe`] knows.
pub fn data(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Writes `value` to stdout as one JSON document.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    data(&text)
}

/// Whether stdout is a terminal, where text can be shown in place of what was there.
pub fn is_live() -> bool {
    std::io::stdout().is_terminal()
}

/// Shows `text` on a terminal in place of all that was there.
pub fn screen(text: &str) -> Result<()> {
    data(&format!("\x1b[H\x1b[2J{text}"))
}

/// Writes one line to stderr, unless only errors are wanted there.
pub fn note(text: &str) {
    if !is_quiet() {
        error(text);
    }
}

/// Writes an error to stderr, whatever is wanted there. A closed stderr is no reason to stop.
pub fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether warnings are not shown either: with `-q`, or where `POOLCAST_LOG` says so.
fn is_quiet() -> bool {
    LevelFilter::current() < LevelFilter::WARN
}

/// A bar over `total` bytes, drawn on stderr when that is a terminal, notes are wanted and the work outlasts a moment;
/// without a total, as of a pipe, a count.
pub fn byte_bar(total: u64, what: &str) -> ProgressBar {
    if total == 0 {
        return bar(total, what, "{msg} {bytes} {bytes_per_sec}");
    }
    bar(total, what, "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}")
}

/// A bar over `total` items, like [`byte_bar`].
pub fn item_bar(total: u64, what: &str) -> ProgressBar {
    bar(total, what, "{msg} [{bar:30}] {pos}/{len} {eta}")
}

/// A bar over steps whose number is not yet known: what its message and prefix say, and the time that remains.
pub fn fraction_bar() -> ProgressBar {
    bar(1, "", "{msg}  {prefix} [{bar:30}] {eta}")
}

fn bar(total: u64, what: &str, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    let target = if is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style.progress_chars("=> "));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Lays rows out in columns: the first column left-aligned, the others right-aligned, two blanks between.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: Vec<String> =
            cells.map(|(c, (cell, &w))| if c == 0 { format!("{cell:<w$}") } else { format!("{cell:>w$}") }).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in epoch milliseconds as `2026-11-21 02:26:06 UTC`.
pub fn utc(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{ms} ms"),
    }
}

/// A span in milliseconds in its two largest units: `2 d 3 h`, `4 min 10 s`.
pub fn span(ms: i64) -> String {
    let s = ms.max(0) / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(utc(1_795_225_787_000), "2026-11-21 01:49:47 UTC");
        assert_eq!(span(59_999), "59 s");
        assert_eq!(span(250_000), "4 min 10 s");
        assert_eq!(span(183_600_000), "2 d 3 h");
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".into(), "10".into()], vec!["long".into(), "5".into()]];
        assert_eq!(table(&rows), "a     10\nlong   5\n");
    }
}
