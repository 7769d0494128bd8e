//! All output of the program: data on stdout; notes, progress and diagnostics on stderr. Control
//! sequences in the output are escaped ([`crate::escape`]).

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar,
};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::closed_stdout::{close_replacement_on_exec, was_stdout_closed};
use crate::escape;
use tracing::level_filters::LevelFilter;

/// Writes `text`, several lines for people, to stdout. On a terminal, long lines are folded at its
/// width; in a pipe, they are not. If the pipe is closed, the error is one that
/// [`crate::error::is_broken_pipe`] recognizes.
pub fn print(text: &str) -> Result<()> {
    write(&shown_text(text))
}

/// Returns the text that [`print()`] writes: folded and escaped.
pub fn shown_text(text: &str) -> String {
    let folded = width().map(|width| fold(text, width));
    escape::lines(folded.as_deref().unwrap_or(text)).into_owned()
}

/// Writes the text of a file to stdout, without folding its lines.
pub fn print_file(text: &str) -> Result<()> {
    write(&shown_file(text))
}

/// Returns the text that [`print_file`] writes: escaped.
pub fn shown_file(text: &str) -> Cow<'_, str> {
    escape::lines(text)
}

/// Returns standard output, locked.
///
/// # Errors
/// Fails if standard output was closed when the process started, as by `>&-`.
pub fn stdout() -> Result<StdoutLock<'static>> {
    ensure!(
        !was_stdout_closed(),
        std::io::Error::other("standard output is closed")
    );
    Ok(std::io::stdout().lock())
}

/// Makes a program that takes over this process find standard output closed if it was closed when
/// this process started.
///
/// # Errors
/// Fails if the system does.
pub fn keep_stdout_closed_on_exec() -> std::io::Result<()> {
    close_replacement_on_exec()
}

/// Writes `text` to stdout unchanged. The caller must have escaped it for a terminal.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = stdout()?;
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// The colour of a line of a page on a terminal. It shows what the line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineColour {
    /// Default colour, for other text.
    Plain,
    /// A job that may continue.
    Green,
    /// Something that has to wait.
    Yellow,
    /// An error or a problem.
    Red,
    /// Secondary information.
    Dim,
}

/// A line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLine {
    /// Text, possibly untrusted: it is escaped when the line is shown.
    pub text: String,
    /// Colour on a terminal.
    pub colour: LineColour,
}

impl PageLine {
    /// Creates a line without colour.
    pub fn plain(text: impl Into<String>) -> PageLine {
        PageLine::of(LineColour::Plain, text)
    }

    /// Creates a line in `colour`.
    pub fn of(colour: LineColour, text: impl Into<String>) -> PageLine {
        PageLine {
            text: text.into(),
            colour,
        }
    }
}

/// Writes lines to stdout without folding them, in colours if [`has_colours`] is true.
pub fn print_page(lines: &[PageLine]) -> Result<()> {
    write(&shown_page(lines))
}

/// Returns the text that [`print_page`] writes.
pub fn shown_page(lines: &[PageLine]) -> String {
    page_text(lines, has_colours())
}

/// Returns the lines of a page without colours, for a file.
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

/// Returns `text` in `colour`, or unchanged if `has_colours` is false. The caller must have escaped
/// it for a terminal.
pub fn coloured(text: &str, colour: LineColour, has_colours: bool) -> String {
    let style = if has_colours {
        colour.style()
    } else {
        anstyle::Style::new()
    };
    format!("{style}{text}{style:#}")
}

impl LineColour {
    /// Uses the basic colours only, which are readable on a light and on a dark background.
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

/// Returns true if text has colours: on a terminal that supports them, and always with
/// `CLICOLOR_FORCE`, but never with `NO_COLOR` (<https://bixense.com/clicolors>).
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

/// Default width of a page, in characters.
const PAGE_WIDTH: usize = 80;

/// Returns the width of a page, in characters: from `COLUMNS`, else from the terminal, else 80; at
/// least 60 and at most 400.
pub fn page_width() -> usize {
    let said = columns_from_env();
    said.or_else(width).unwrap_or(PAGE_WIDTH).clamp(60, 400)
}

/// Reads `COLUMNS`; `None` if it is not a number.
fn columns_from_env() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// Escapes `text` for a terminal and shortens it to `max` columns; `...` replaces a removed end.
pub fn cut(text: &str, max: usize) -> String {
    let text = escape::value(text);
    if columns_of(&text) <= max {
        return text.into_owned();
    }
    format!("{}...", clipped(&text, max.saturating_sub(3)))
}

/// Returns the number of columns that `text` takes on a terminal: two for a character of CJK, none
/// for a combining mark.
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// Returns the longest beginning of `text` that takes at most `max` columns.
pub fn clipped(text: &str, max: usize) -> &str {
    let mut used = 0;
    let is_beyond = |c: char| {
        used += c.width().unwrap_or(1);
        used > max
    };
    text.find(is_beyond).map_or(text, |end| &text[..end])
}

/// Appends spaces to `text` until it takes `columns` columns.
pub fn left_aligned(text: &str, columns: usize) -> String {
    let padding = columns.saturating_sub(columns_of(text));
    format!("{text}{}", " ".repeat(padding))
}

/// Prepends spaces to `text` until it takes `columns` columns.
pub fn right_aligned(text: &str, columns: usize) -> String {
    let padding = columns.saturating_sub(columns_of(text));
    format!("{}{text}", " ".repeat(padding))
}

/// A JSON document for other programs, with the version of its keys (see docs/json.md).
#[derive(Debug, Serialize)]
pub struct JsonDocument<T> {
    /// Version of the keys. It is raised when a key changes its meaning or is removed.
    pub schema_version: u32,
    /// The other keys.
    #[serde(flatten)]
    pub body: T,
}

/// Writes `body` to stdout as one JSON document with the keys of version `schema_version`.
pub fn print_json(schema_version: u32, body: &dyn erased_serde::Serialize) -> Result<()> {
    print_document(schema_version, body, |stdout, document| {
        serde_json::to_writer_pretty(stdout, document)
    })
}

/// Like [`print_json`], but writes the document as one line, for programs that read a document a
/// line.
pub fn print_json_line(schema_version: u32, body: &dyn erased_serde::Serialize) -> Result<()> {
    print_document(schema_version, body, |stdout, document| {
        serde_json::to_writer(stdout, document)
    })
}

/// Writes a document to stdout with `write`, and ends the line.
fn print_document(
    schema_version: u32,
    body: &dyn erased_serde::Serialize,
    write: impl FnOnce(
        &mut EscapedJson<BufWriter<StdoutLock<'static>>>,
        &JsonDocument<&dyn erased_serde::Serialize>,
    ) -> serde_json::Result<()>,
) -> Result<()> {
    let document = JsonDocument {
        schema_version,
        body,
    };
    let mut stdout = EscapedJson(BufWriter::new(stdout()?));
    write(&mut stdout, &document).map_err(std::io::Error::from)?;
    writeln!(stdout)?;
    Ok(stdout.flush()?)
}

/// Writes the parts of a JSON document escaped for a terminal. Each part is whole characters.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(part).map_err(std::io::Error::other)?;
        self.0.write_all(escape::json(text).as_bytes())?;
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Returns true if stdout is a terminal.
pub fn is_live() -> bool {
    std::io::stdout().is_terminal()
}

/// Returns true if stdout is a terminal on which text can be redrawn in place.
pub fn can_draw() -> bool {
    is_live() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns true if the locale uses UTF-8, so that a terminal shows more than ASCII.
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

/// Returns the columns and lines of the terminal on stdout; `None` in a pipe.
pub fn terminal_size() -> Option<(usize, usize)> {
    let (columns, lines) = terminal_size::terminal_size().filter(|_| is_live())?;
    Some((usize::from(columns.0.max(1)), usize::from(lines.0)))
}

/// Returns the width at which text is folded, in characters: from `COLUMNS`, else from the
/// terminal. `None` in a pipe, or below 20.
fn width() -> Option<usize> {
    if !is_live() {
        return None;
    }
    let asked = || terminal_size().map(|(columns, _)| columns);
    columns_from_env()
        .or_else(asked)
        .filter(|width| *width >= 20)
}

/// Writes one line to stderr, unless only errors are wanted there.
pub fn note(text: &str) {
    if !is_quiet() {
        error(&escape::value(text));
    }
}

/// Notes that `dir` already holds `what`, such as "these tensors", so it is not made again.
pub fn note_nothing_new(dir: &Path, what: &str) {
    note(&format!(
        "nothing new: `{}` already holds {what}",
        dir.display()
    ));
}

/// Writes an error of one or more lines to stderr, even in quiet mode, above a bar that is drawn there. A failed
/// write, such as to a closed stderr, is ignored.
pub fn error(text: &str) {
    let write = || {
        let _ = writeln!(std::io::stderr().lock(), "{}", escape::lines(text));
    };
    let bar = last_bar().upgrade();
    match bar.filter(|bar| !bar.is_hidden()) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Returns true if warnings are hidden, too: with `-q`, or if `POOLCAST_LOG` says so.
fn is_quiet() -> bool {
    LevelFilter::current() < LevelFilter::WARN
}

/// The writer for log messages: writes each message to stderr as one line.
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

/// Folds the lines of `text` at spaces and indents the continuation lines. Lines with commands to
/// type are not folded.
fn fold(text: &str, width: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let is_command = [": condor_", ": poolcast ", ": cd "]
            .iter()
            .any(|command| line.contains(command));
        if is_command || columns_of(line) <= width {
            folded.push_str(line);
        } else {
            fold_line(line, width, &mut folded);
        }
        folded.push('\n');
    }
    folded
}

/// Folds `line` at spaces into lines of at most `width` columns. All lines after the first are
/// indented further.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut folded = String::new();
    fold_line(line, width, &mut folded);
    folded.lines().map(str::to_owned).collect()
}

fn fold_line(line: &str, width: usize, folded: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let begin = " ".repeat((indent + 2).min(width / 2));
    let options = textwrap::Options::new(width)
        .initial_indent(&line[..indent])
        .subsequent_indent(&begin)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
        .break_words(false);
    folded.push_str(&textwrap::fill(&line[indent..], options));
}

/// Interval at which a bar is drawn.
pub const DRAW_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between progress notes if stderr is not a terminal, where nobody sees a progress bar.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Runs `work`. If stderr is not a terminal, `far` is called once a minute, and the progress line
/// that it returns is written as a note.
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

/// Creates a progress bar over `total` items. It is drawn on stderr if that is a terminal and notes
/// are wanted, and is refreshed twice a second.
pub fn item_bar(total: u64, what: &str) -> ProgressBar {
    bar(total, what, "{msg} [{bar:30}] {pos}/{len} {eta}")
}

/// Creates a progress bar for steps whose number is not known yet. It shows its message, its prefix
/// and the remaining time.
pub fn fraction_bar() -> ProgressBar {
    bar(1, "", "{msg}  {prefix} [{bar:30}] {eta}")
}

/// Creates a progress bar that is the line which `line` returns. Its caller starts to draw it. `line` must not write
/// to stderr.
pub fn line_bar(line: impl Fn() -> String + Send + Sync + Clone + 'static) -> ProgressBar {
    let write = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&line());
    };
    let style = ProgressStyle::with_template("{line}").expect("the template is valid");
    drawn_bar(None, style.with_key("line", write))
}

/// Returns the time that `rest` more steps take if they are as fast as the `done` steps of the time
/// `elapsed`. `None` if no step is done or left, or if the time is more than a `Duration` holds.
pub fn remaining_time(done: u64, rest: u64, elapsed: Duration) -> Option<Duration> {
    if done == 0 || rest == 0 {
        return None;
    }
    let seconds = elapsed.as_secs_f64() * rest as f64 / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Creates a bar from a template. Its `eta` is [`remaining_time`] from the first step that it shows
/// on: the estimate of `indicatif` grows beyond all bounds while a long step lasts.
fn bar(total: u64, what: &str, template: &str) -> ProgressBar {
    let first_shown = Arc::new(OnceLock::new());
    let eta = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let at = state.pos();
        if at == 0 {
            return;
        }
        let (from, since) = *first_shown.get_or_init(|| (at, Instant::now()));
        let rest = state.len().unwrap_or(0).saturating_sub(at);
        if let Some(left) = remaining_time(at.saturating_sub(from), rest, since.elapsed()) {
            let _ = write!(out, "{:#}", HumanDuration(left));
        }
    };
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    let style = style.with_key("eta", eta).progress_chars("=> ");
    let bar = drawn_bar(Some(total), style);
    bar.set_message(escape::value(what).into_owned());
    bar.enable_steady_tick(DRAW_INTERVAL);
    bar
}

/// Creates a bar that other lines on stderr are written above.
fn drawn_bar(total: Option<u64>, style: ProgressStyle) -> ProgressBar {
    let target = if is_quiet() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(total, target).with_style(style);
    *last_bar() = bar.downgrade();
    bar
}

/// The bar that was created last.
static LAST_BAR: LazyLock<Mutex<WeakProgressBar>> = LazyLock::new(Mutex::default);

fn last_bar() -> MutexGuard<'static, WeakProgressBar> {
    LAST_BAR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aligns rows in columns: the first column to the left, the others to the right, two spaces apart.
/// On a terminal, a table that is too wide is split into blocks of columns, one below the other.
/// Each block repeats the first column.
pub fn aligned_table(rows: &[Vec<String>]) -> String {
    table_of_width(rows, width())
}

/// Like [`aligned_table`], but never splits a table, as for a file.
pub fn unfolded_table(rows: &[Vec<String>]) -> String {
    table_of_width(rows, None)
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
            .map(|cell| columns_of(cell))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();

    // The columns of each block, without the first column, which every block repeats.
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
            let mut line = left_aligned(cell(0), widths.first().copied().unwrap_or(0));
            for &c in part {
                line.push_str("  ");
                line.push_str(&right_aligned(cell(c), widths[c]));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Formats a number with thousands separators: `1234567` as `1,234,567`.
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

/// Formats a count with its noun: `1 trial`, `2 trials`. `what` is the singular.
pub fn counted(n: usize, what: &str) -> String {
    format!(
        "{} {what}{}",
        with_commas(n as u64),
        if n == 1 { "" } else { "s" }
    )
}

/// Formats a time in epoch milliseconds as `2026-11-21 02:26:06 UTC`.
pub fn utc_time(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{ms} ms"),
    }
}

/// Formats a duration in milliseconds in its two largest units: `2 d 3 h`, `4 min 10 s`.
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
    fn numbers_and_times_are_formatted() {
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
    fn remaining_time_is_bounded_or_unknown() {
        let minute = Duration::from_secs(60);
        assert_eq!(remaining_time(2, 6, minute), Some(3 * minute));
        assert_eq!(remaining_time(0, 6, minute), None);
        assert_eq!(remaining_time(6, 0, minute), None);
        assert_eq!(remaining_time(1, u64::MAX, Duration::MAX), None);
    }

    #[test]
    fn text_folds_at_spaces_except_in_commands() {
        let text = "12.0: RELEASE\n  why: it is long and says much\n  run: condor_release 12.0 and more\nunbreakable-word x\n";
        let folded = "12.0: RELEASE\n  why: it is long\n    and says much\n  run: condor_release 12.0 and more\nunbreakable-word\n  x\n";
        assert_eq!(fold(text, 17), folded);
        assert_eq!(fold(text, 200), text);
    }

    #[test]
    fn wide_tables_are_split_and_cells_escaped() {
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

    /// A character of CJK takes two columns, and a combining mark none.
    #[test]
    fn wide_and_combining_characters_keep_columns_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["owner", "名前"]),
            row(["山田", "7"]),
            row(["Zoe\u{308}", "10"]),
        ];
        assert_eq!(
            table_of_width(&rows, None),
            "owner  名前\n山田      7\nZoe\u{308}      10\n"
        );
        assert_eq!(fold("山田 山田 ab\n", 9), "山田 山田\n  ab\n");
        assert_eq!(
            (cut("山田太郎", 8), cut("山田太郎", 7), cut("山田太郎", 6)),
            ("山田太郎".into(), "山田...".into(), "山...".into())
        );
        assert_eq!(clipped("e\u{308}f", 1), "e\u{308}");
    }

    #[test]
    fn progress_notes_stop_when_the_work_ends() {
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
    fn page_lines_are_coloured_and_their_text_escaped() {
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
    fn first_table_column_is_left_aligned() {
        let rows = [
            vec!["a".into(), "10".into()],
            vec!["long".into(), "5".into()],
        ];
        assert_eq!(aligned_table(&rows), "a     10\nlong   5\n");
    }
}
