//! What people see: data on stdout; notes, progress and diagnostics on stderr. All that leaves the
//! program leaves here, and what a terminal would take for a command is shown instead
//! ([`crate::escape`]).

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::escape;
use tracing::level_filters::LevelFilter;

/// Writes `text`, several lines for people, to stdout; on a terminal long lines are folded at its
/// width, in a pipe never. A closed pipe comes back as an error that
/// [`crate::error::is_broken_pipe`] knows.
pub fn print(text: &str) -> Result<()> {
    write(&shown_text(text))
}

/// What [`print()`] writes.
pub fn shown_text(text: &str) -> String {
    let folded = width().map(|width| fold(text, width));
    escape::lines(folded.as_deref().unwrap_or(text)).into_owned()
}

/// Writes the text of a file to stdout, its lines as they are.
pub fn print_file(text: &str) -> Result<()> {
    write(&shown_file(text))
}

/// What [`print_file`] writes.
pub fn shown_file(text: &str) -> Cow<'_, str> {
    escape::lines(text)
}

/// Writes to stdout what is as a terminal may have it.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// What a line of a page is about: its colour on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineColour {
    /// As other text.
    Plain,
    /// What may go on.
    Green,
    /// What has to wait.
    Yellow,
    /// What is wrong.
    Red,
    /// What is said beside.
    Dim,
}

/// A line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLine {
    /// Its text, which may come from outside.
    pub text: String,
    /// Its colour.
    pub colour: LineColour,
}

impl PageLine {
    /// A line without colour.
    pub fn plain(text: impl Into<String>) -> PageLine {
        PageLine::of(LineColour::Plain, text)
    }

    /// A line in `colour`.
    pub fn of(colour: LineColour, text: impl Into<String>) -> PageLine {
        PageLine {
            text: text.into(),
            colour,
        }
    }
}

/// Writes lines to stdout as they are, in colours where [`has_colours`] says so.
pub fn print_page(lines: &[PageLine]) -> Result<()> {
    write(&shown_page(lines))
}

/// What [`print_page`] writes.
pub fn shown_page(lines: &[PageLine]) -> String {
    page_text(lines, has_colours())
}

/// The lines of a page as a file has them, without colours.
pub fn plain_page(lines: &[PageLine]) -> String {
    page_text(lines, false)
}

fn page_text(lines: &[PageLine], has_colours: bool) -> String {
    let mut text = String::new();
    for line in lines {
        let shown = escape::value(&line.text);
        text.push_str(&coloured(&shown, line.colour, has_colours));
        text.push('\n');
    }
    text
}

/// `text`, which is as a terminal may have it, in `colour` where there are colours.
pub fn coloured(text: &str, colour: LineColour, has_colours: bool) -> String {
    let style = if has_colours {
        colour.style()
    } else {
        anstyle::Style::new()
    };
    format!("{style}{text}{style:#}")
}

impl LineColour {
    /// The basic colours, which terminals with a light and with a dark ground show well.
    fn style(self) -> anstyle::Style {
        use anstyle::AnsiColor;
        match self {
            LineColour::Plain => anstyle::Style::new(),
            LineColour::Green => AnsiColor::Green.on_default().bold(),
            LineColour::Yellow => AnsiColor::Yellow.on_default().bold(),
            LineColour::Red => AnsiColor::Red.on_default().bold(),
            LineColour::Dim => anstyle::Style::new().dimmed(),
        }
    }
}

/// Whether text has colours: on a terminal that has them, and everywhere with `CLICOLOR_FORCE`, but
/// never with `NO_COLOR` (<https://bixense.com/clicolors>).
pub fn has_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is = |name, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    if is_set("NO_COLOR") {
        return false;
    }
    if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
        return true;
    }
    is_live() && !is("CLICOLOR", "0") && !is("TERM", "dumb")
}

/// How wide a page is where nothing says it.
const PAGE_WIDTH: usize = 80;

/// How many characters a line of a page has: `COLUMNS` says so, else the terminal, else 80.
pub fn page_width() -> usize {
    let said = said_columns();
    said.or_else(width).unwrap_or(PAGE_WIDTH).clamp(60, 400)
}

/// What `COLUMNS` says.
fn said_columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// The beginning of `text` that `most` characters can show, as a terminal may have it; dots stand for
/// the rest.
pub fn cut(text: &str, most: usize) -> String {
    let text = escape::value(text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    let begin: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{begin}...")
}

/// What programs read, with the version of its keys: docs/json.md.
#[derive(Debug, Serialize)]
pub struct JsonDocument<T> {
    /// Raised when a key changes its meaning or goes away.
    pub schema_version: u32,
    /// The other keys.
    #[serde(flatten)]
    pub body: T,
}

/// Writes `body` to stdout as one JSON document, whose keys are those of `schema_version`.
pub fn print_json(schema_version: u32, body: &impl Serialize) -> Result<()> {
    let document = JsonDocument {
        schema_version,
        body,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    write(&escape::json(&text))
}

/// Whether stdout is a terminal.
pub fn is_live() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stdout is a terminal on which text can be shown in place of what was there.
pub fn can_draw() -> bool {
    is_live() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the locale says that a terminal shows more than ASCII.
pub fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let name = value.to_string_lossy().to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

/// The columns and lines of the terminal that stdout is; `None` in a pipe.
pub fn terminal_size() -> Option<(usize, usize)> {
    let (columns, lines) = terminal_size::terminal_size().filter(|_| is_live())?;
    Some((usize::from(columns.0.max(1)), usize::from(lines.0)))
}

/// How many characters a line of the terminal has; `COLUMNS` says so, else the terminal itself.
/// `None` in a pipe.
fn width() -> Option<usize> {
    if !is_live() {
        return None;
    }
    let asked = || terminal_size().map(|(columns, _)| columns);
    said_columns().or_else(asked).filter(|width| *width >= 20)
}

/// Writes one line to stderr, unless only errors are wanted there.
pub fn note(text: &str) {
    if !is_quiet() {
        error(&escape::value(text));
    }
}

/// Says that `dir` holds `what` already, such as "these tensors", so that it is not made again.
pub fn note_nothing_new(dir: &Path, what: &str) {
    note(&format!(
        "nothing new: `{}` holds {what} already",
        dir.display()
    ));
}

/// Writes an error, in lines, to stderr, whatever is wanted there. A closed stderr is no reason to
/// stop.
pub fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape::lines(text));
}

/// Whether warnings are not shown either: with `-q`, or where `POOLCAST_LOG` says so.
fn is_quiet() -> bool {
    LevelFilter::current() < LevelFilter::WARN
}

/// Where diagnostics go: to stderr, each write as one line.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosticsWriter;

impl std::io::Write for DiagnosticsWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        error(&escape::value(String::from_utf8_lossy(bytes).trim_end()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Folds the lines of `text` at blanks; what follows a break stands further in. Commands to type
/// stay whole.
fn fold(text: &str, width: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let is_command = [": condor_", ": poolcast ", ": cd "]
            .iter()
            .any(|command| line.contains(command));
        if is_command || line.chars().count() <= width {
            folded.push_str(line);
        } else {
            fold_line(line, width, &mut folded);
        }
        folded.push('\n');
    }
    folded
}

/// `line` in lines of at most `width` characters, folded at blanks; all but the first stand further
/// in.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut folded = String::new();
    fold_line(line, width, &mut folded);
    folded.lines().map(str::to_owned).collect()
}

fn fold_line(line: &str, width: usize, folded: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let begin = " ".repeat((indent + 2).min(width / 2));
    folded.push_str(&line[..indent]);
    let mut used = indent;
    for (at, word) in line[indent..].split(' ').enumerate() {
        let count = word.chars().count();
        if at > 0 && used + 1 + count > width {
            folded.push('\n');
            folded.push_str(&begin);
            used = begin.len();
        } else if at > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(word);
        used += count;
    }
}

/// How often long work says how far it is where nobody sees a bar.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Does `work`, and where stderr is no terminal writes once a minute the line that `far` gives: how
/// far the work is.
pub fn with_progress_notes<T>(far: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    if std::io::stderr().is_terminal() {
        work()
    } else {
        with_notes_every(SAY_EVERY, move || note(&far()), work)
    }
}

fn with_notes_every<T>(every: Duration, tell: impl Fn() + Send, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(every) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                tell();
            }
        });
        let result = work();
        drop(ends);
        result
    })
}

/// A bar over `total` bytes, drawn on stderr when that is a terminal, notes are wanted and the work
/// outlasts a moment; without a total, as of a pipe, a count.
pub fn byte_bar(total: u64, what: &str) -> ProgressBar {
    if total == 0 {
        return bar(total, what, "{msg} {bytes} {bytes_per_sec}");
    }
    bar(
        total,
        what,
        "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    )
}

/// A bar over `total` items, like [`byte_bar`].
pub fn item_bar(total: u64, what: &str) -> ProgressBar {
    bar(total, what, "{msg} [{bar:30}] {pos}/{len} {eta}")
}

/// A bar over steps whose number is not yet known: what its message and prefix say, and the time
/// that remains.
pub fn fraction_bar() -> ProgressBar {
    bar(1, "", "{msg}  {prefix} [{bar:30}] {eta}")
}

fn bar(total: u64, what: &str, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    let target = if is_quiet() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar =
        ProgressBar::with_draw_target(Some(total), target).with_style(style.progress_chars("=> "));
    bar.set_message(escape::value(what).into_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Lays rows out in columns: the first column left-aligned, the others right-aligned, two blanks
/// between. On a terminal a table that is too wide is shown in parts one below the other, each with
/// the first column.
pub fn aligned_table(rows: &[Vec<String>]) -> String {
    table_of_width(rows, width())
}

fn table_of_width(rows: &[Vec<String>], width: Option<usize>) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| escape::value(cell)).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |c: usize| {
        rows.iter()
            .filter_map(|r| r.get(c))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();

    // The columns of each part but the first one.
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = widths.first().copied().unwrap_or(0);
    for c in 1..columns {
        if width.is_some_and(|width| used + 2 + widths[c] > width)
            && parts.last().is_some_and(|part| !part.is_empty())
        {
            parts.push(Vec::new());
            used = widths[0];
        }
        used += 2 + widths[c];
        parts.last_mut().expect("there is one").push(c);
    }

    let mut text = String::new();
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for row in &rows {
            let cell = |c: usize| row.get(c).map_or("", |cell| cell);
            let mut line = format!("{:<w$}", cell(0), w = widths.first().copied().unwrap_or(0));
            for &c in part {
                line.push_str(&format!("  {:>w$}", cell(c), w = widths[c]));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// `1234567` as `1,234,567`.
pub fn with_commas(n: u64) -> String {
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

/// `1 trial`, `2 trials`: so many of `what`, the word for one.
pub fn counted(n: usize, what: &str) -> String {
    format!(
        "{} {what}{}",
        with_commas(n as u64),
        if n == 1 { "" } else { "s" }
    )
}

/// A time in epoch milliseconds as `2026-11-21 02:26:06 UTC`.
pub fn utc_time(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{ms} ms"),
    }
}

/// A span in milliseconds in its two largest units: `2 d 3 h`, `4 min 10 s`.
pub fn time_span(ms: i64) -> String {
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
        assert_eq!(with_commas(0), "0");
        assert_eq!(with_commas(999), "999");
        assert_eq!(with_commas(1_234_567), "1,234,567");
        assert_eq!(
            [counted(0, "job"), counted(1, "job"), counted(2000, "job")],
            ["0 jobs", "1 job", "2,000 jobs"]
        );
        assert_eq!(utc_time(1_795_225_787_000), "2026-11-21 01:49:47 UTC");
        assert_eq!(time_span(59_999), "59 s");
        assert_eq!(time_span(250_000), "4 min 10 s");
        assert_eq!(time_span(183_600_000), "2 d 3 h");
    }

    #[test]
    fn text_folds_at_blanks_and_commands_stay_whole() {
        let text = "12.0: RELEASE\n  why: it is long and says much\n  run: condor_release 12.0 and more\nunbreakable-word x\n";
        let folded = "12.0: RELEASE\n  why: it is long\n    and says much\n  run: condor_release 12.0 and more\nunbreakable-word\n  x\n";
        assert_eq!(fold(text, 17), folded);
        assert_eq!(fold(text, 200), text);
    }

    #[test]
    fn wide_tables_are_shown_in_parts_and_no_cell_forges_a_row() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["", "one", "two", "three"]),
            row(["a\nb", "1", "\u{1b}", "3"]),
        ];
        assert_eq!(
            table_of_width(&rows, Some(14)),
            "      one\na\\nb    1\n\n         two\na\\nb  \\u{1b}\n\n      three\na\\nb      3\n"
        );
        assert_eq!(table_of_width(&rows, Some(26)), table_of_width(&rows, None));
    }

    #[test]
    fn long_work_is_told_of_until_it_ends() {
        let told = std::sync::atomic::AtomicUsize::new(0);
        let count = || told.load(std::sync::atomic::Ordering::Relaxed);
        let tell = || {
            told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let result = with_notes_every(Duration::from_millis(1), tell, || {
            while count() < 3 {
                std::thread::yield_now();
            }
            "done"
        });
        let after = count();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((result, count()), ("done", after), "and not after that");
        with_notes_every(
            Duration::from_secs(3600),
            || panic!("it is too early"),
            || (),
        );
    }

    #[test]
    fn colours_are_those_of_lines_and_never_of_their_text() {
        let lines = [
            PageLine::of(LineColour::Green, "go\u{1b}[31m"),
            PageLine::plain("on"),
        ];
        assert_eq!(page_text(&lines, false), "go\\u{1b}[31m\non\n");
        assert_eq!(
            page_text(&lines, true),
            "\u{1b}[1m\u{1b}[32mgo\\u{1b}[31m\u{1b}[0m\non\n"
        );
        assert_eq!(
            (cut("abcdef", 6), cut("abcdefg", 6)),
            ("abcdef".into(), "abc...".into())
        );
    }

    #[test]
    fn tables_align() {
        let rows = [
            vec!["a".into(), "10".into()],
            vec!["long".into(), "5".into()],
        ];
        assert_eq!(aligned_table(&rows), "a     10\nlong   5\n");
    }
}
