//! The first screen about many held jobs: a row for each thing that they are held for, in as many rows as a terminal
//! has, however many jobs are held.

use std::collections::BTreeSet;

use super::advice::{AdviceView, action_count, minute};
use poolcast_advice::{
    CommandMoment, FailedThing, HeldGrouping, HeldThing, ThingAnswer, answer_name, fitting_cause,
    thing_commands,
};
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_holds::decision::HoldAction;

/// Maximum number of things on the first screen.
pub(super) const MAX_THINGS: usize = 10;

/// Rows of a terminal that leave room for the table, whatever its size.
const MIN_ROWS: usize = 24;

/// Maximum lines of one thing.
const MAX_LINES_PER_THING: usize = 3;

/// One minute, one hour and one day, in ms.
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Maximum duration that is stated in hours.
const MAX_HOURS: i64 = 99;

/// Bytes of a year, and of a date, with what separates them from the rest of a time.
const YEAR_LENGTH: usize = 5;
const DATE_LENGTH: usize = 11;

/// The names of the columns.
pub(super) const COLUMNS: [&str; 7] = ["#", "jobs", "sum", "do", "what", "who", "held"];

const NUMBER_WIDTH: usize = 2;
const JOBS_WIDTH: usize = 6;
const SUM_WIDTH: usize = 4;
const DO_WIDTH: usize = 14;
const WHO_WIDTH: usize = 14;
const HELD_WIDTH: usize = 6;
const BLANKS: usize = 7;

/// The page with a row for each of `things`. If it does not show all, it leaves `below` rows of the terminal for
/// what follows.
pub(super) fn things_page(
    view: &AdviceView<'_>,
    things: &[HeldThing<'_>],
    below: usize,
) -> Vec<PageLine> {
    let mut lines = head(view);
    lines.push(PageLine::plain(""));
    let layout = TableLayout::from_width(view.width);
    lines.push(PageLine::of(LineColour::Dim, layout.names()));

    let rows = thing_rows(view, things);
    let table = Table {
        layout,
        rows: &rows,
    };
    if view.shows_all {
        lines.extend(table.fitting(rows.len(), usize::MAX));
        return lines;
    }
    let foot = foot(view, things);
    // The last row is for the prompt of the shell, and one for what is not shown.
    let used = rows_of(view, &lines) + rows_of(view, &foot) + below + 2;
    let screen = view.terminal_rows.unwrap_or(MIN_ROWS).max(MIN_ROWS);
    let room = screen.saturating_sub(used).max(1);
    let most = things.len().min(MAX_THINGS);
    // In a pipe, the rows of a screen limit the commands alone.
    let (shown, table_room) = match view.terminal_rows {
        Some(_) => (most.min(room), room),
        None => (most, usize::MAX),
    };
    let table = table.fitting(shown, table_room);
    let spare = room.saturating_sub(table.len());
    lines.extend(table);
    lines.extend(hidden_line(view, &things[shown..]));
    lines.extend(fitting_commands(view, &things[..shown], spare));
    lines.extend(foot);
    lines
}

/// The commands to type now about `things`, if they fit into `room` rows.
fn fitting_commands(view: &AdviceView<'_>, things: &[HeldThing<'_>], room: usize) -> Vec<PageLine> {
    let mut lines = vec![PageLine::plain("")];
    for (thing, number) in things.iter().zip(1..) {
        let mut commands = thing_commands(&thing.members);
        commands.retain(|command| command.moment == CommandMoment::Now);
        let mut added = Vec::new();
        for command in &commands {
            let jobs = output::counted(command.jobs, "job");
            let title = format!("#{number}, {} {jobs}:", answer_name(command.action));
            added.push(PageLine::of(LineColour::Dim, title));
            added.push(PageLine::plain(format!("  {}", command.command)));
        }
        if rows_of(view, &lines) + rows_of(view, &added) <= room {
            lines.extend(added);
        }
    }
    if lines.len() == 1 {
        lines.clear();
    }
    lines
}

/// The number of rows of `lines` at the width of the page.
pub(in crate::cmd) fn rows_of(view: &AdviceView<'_>, lines: &[PageLine]) -> usize {
    let rows_of = |line: &PageLine| output::columns_of(&line.text).div_ceil(view.width).max(1);
    lines.iter().map(rows_of).sum()
}

/// The jobs by answer; whose they are, the log, and how long the answers are good; and the notes.
pub(super) fn head(view: &AdviceView<'_>) -> Vec<PageLine> {
    let mut lines = Vec::new();
    for ended in view.ended {
        lines.extend(view.wrapped(LineColour::Plain, &ended.words()));
    }
    lines.extend(view.wrapped(LineColour::Plain, &answers_words(view)));
    lines.extend(view.wrapped(LineColour::Plain, &origin_words(view)));
    lines.extend(view.earlier_lines());
    if view
        .queue
        .is_some_and(|queue| queue.not_in_log + queue.not_in_queue > 0)
    {
        lines.extend(view.queue_lines());
    }
    lines.extend(view.caveat_lines());
    lines
}

fn answers_words(view: &AdviceView<'_>) -> String {
    let mut counts = Vec::new();
    for action in HoldAction::COUNTED {
        let jobs = action_count(&view.chosen, action);
        if jobs > 0 {
            let jobs = output::with_commas(jobs as u64);
            counts.push(format!("{} {jobs}", answer_name(action)));
        }
    }
    format!("{}: {}", view.held_words(), counts.join(", "))
}

/// Names the owners, the access point and the end of the log, and says how long the answers are good.
fn origin_words(view: &AdviceView<'_>) -> String {
    let chosen = view.chosen.iter();
    let owners: BTreeSet<&str> = chosen.filter_map(|one| one.job.owner.as_deref()).collect();
    let whose = match owners.len() {
        0 => "jobs".to_owned(),
        count => output::counted(count, "owner"),
    };
    let at = match &view.basis.access_points[..] {
        [] => String::new(),
        [only] => format!(" at {}", first_label(only)),
        several => format!(" at {}", output::counted(several.len(), "access point")),
    };
    let end_ms = view.basis.log_end_ms;
    let log = end_ms.map(|end_ms| {
        let name = view.basis.source_name();
        format!("{name} until {}", log_end_words(view, end_ms))
    });
    let expiry = view.expiry().map(|(until_ms, is_over)| match is_over {
        true => "expired: `--queue now` is as of now".to_owned(),
        false => {
            let minute = minute(until_ms);
            let is_same_day = end_ms.is_some_and(|end_ms| until_ms - end_ms < DAY_MS);
            let time = if is_same_day {
                minute.get(DATE_LENGTH..).unwrap_or(&minute)
            } else {
                &minute
            };
            format!("good until {time}")
        }
    });
    let parts: Vec<String> = [Some(whose + &at), log, expiry]
        .into_iter()
        .flatten()
        .collect();
    parts.join("; ")
}

/// The end of the log, with its age where it matters.
fn log_end_words(view: &AdviceView<'_>, end_ms: i64) -> String {
    let age_ms = view.now_ms.map(|now_ms| now_ms - end_ms);
    // A page in a pipe has no ages, but a log that is out of date says so.
    match age_ms.filter(|&age_ms| view.shows_ages || age_ms > DAY_MS) {
        Some(age_ms) => {
            format!("{} UTC, {} ago", day_and_minute(end_ms), age_words(age_ms))
        }
        None => format!("{} UTC", minute(end_ms)),
    }
}

/// The first part of a host name; all of an address.
fn first_label(host: &str) -> &str {
    let label = host.split('.').next().unwrap_or(host);
    let is_name = label.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_name { label } else { host }
}

/// A time in UTC without its year.
fn day_and_minute(ms: i64) -> String {
    minute(ms).get(YEAR_LENGTH..).unwrap_or("-").to_owned()
}

/// The record of such answers, and the calls that open a thing.
pub(super) fn foot(view: &AdviceView<'_>, things: &[HeldThing<'_>]) -> Vec<PageLine> {
    let mut lines = vec![PageLine::plain("")];
    let records = records_words(view);
    lines.extend(
        records
            .iter()
            .flat_map(|words| view.wrapped(LineColour::Dim, words)),
    );
    if !view.loops.is_empty() {
        let jobs = view.loops.iter().map(|one| one.jobs.len()).sum();
        let jobs = output::counted(jobs, "job");
        let words = format!(
            "{jobs} started and put back again: {}",
            option_call(view, "--all")
        );
        lines.push(PageLine::of(LineColour::Dim, words));
    }
    if let Some(call) = view.call.as_ref().filter(|_| !things.is_empty()) {
        let open = format!("{call} --thing 1");
        let print = format!("{open} --commands");
        let columns = output::columns_of(&print);
        for (call, words) in [
            (open, "why, causes and ids"),
            (print, "prints them, to look at and to paste"),
        ] {
            let line = format!("{}  {words}", output::left_aligned(&call, columns));
            let fits = output::columns_of(&line) <= view.width;
            lines.push(PageLine::plain(if fits { line } else { call }));
        }
    }
    lines
}

/// Says how often such answers were right in the rehearsal; `None` if there was none.
fn records_words(view: &AdviceView<'_>) -> Option<String> {
    let rehearsed = view.basis.rehearsed?;
    let mut records = Vec::new();
    for action in HoldAction::COUNTED {
        let share = rehearsed
            .by_action
            .of(action)
            .and_then(|right| right.share());
        let Some(share) = share.filter(|_| action_count(&view.chosen, action) > 0) else {
            continue;
        };
        let right = if records.is_empty() { " right" } else { "" };
        let name = answer_name(action);
        records.push(format!("{name} {:.0} %{right}", (100.0 * share).floor()));
    }
    let listed = records.join(", ");
    (!records.is_empty()).then(|| format!("such answers, rehearsed: {listed}"))
}

/// The note on things that the page does not show.
pub(super) fn hidden_line(view: &AdviceView<'_>, hidden: &[HeldThing<'_>]) -> Option<PageLine> {
    if hidden.is_empty() {
        return None;
    }
    let jobs: usize = hidden.iter().map(|thing| thing.jobs).sum();
    let what = match view.grouping {
        HeldGrouping::Thing => "thing",
        _ => "row",
    };
    let with_call = |call: &str| {
        format!(
            "    {} in {}: {call}",
            output::counted(jobs, "more job"),
            output::counted(hidden.len(), what),
        )
    };
    // One row is left for it, whose end is what people type.
    let words = with_call(&option_call(view, "--all"));
    let fits = output::columns_of(&words) <= view.width;
    let words = if fits { words } else { with_call("--all") };
    Some(PageLine::of(LineColour::Dim, words))
}

/// The call that gives the same advice with `option`, or else the option alone.
fn option_call(view: &AdviceView<'_>, option: &str) -> String {
    match &view.call {
        Some(call) => format!("{call} {option}"),
        None => option.to_owned(),
    }
}

/// The widths of the columns, in characters.
struct TableLayout {
    what: usize,
}

impl TableLayout {
    fn from_width(width: usize) -> TableLayout {
        let others =
            NUMBER_WIDTH + JOBS_WIDTH + SUM_WIDTH + DO_WIDTH + WHO_WIDTH + HELD_WIDTH + BLANKS;
        TableLayout {
            what: width.saturating_sub(others).max(10),
        }
    }

    fn names(&self) -> String {
        self.line(COLUMNS)
    }

    fn line(&self, cells: [&str; 7]) -> String {
        let [number, jobs, sum, act, what, who, held] = cells;
        let what = output::left_aligned(what, self.what);
        let who = output::left_aligned(who, WHO_WIDTH);
        format!(
            "{number:>NUMBER_WIDTH$} {jobs:>JOBS_WIDTH$} {sum:>SUM_WIDTH$}  {act:<DO_WIDTH$} {what} {who} {held:>HELD_WIDTH$}"
        )
        .trim_end()
        .to_owned()
    }
}

/// The content of the row of a thing.
pub(super) struct ThingRow {
    pub(super) number: usize,
    pub(super) jobs: String,
    /// Share of the held jobs up to this row.
    pub(super) sum: String,
    pub(super) answers: Vec<String>,
    /// Jobs with the first answer.
    first_jobs: usize,
    all_jobs: usize,
    pub(super) what: String,
    pub(super) notes: Vec<String>,
    pub(super) who: String,
    pub(super) held: String,
}

pub(super) fn thing_rows(view: &AdviceView<'_>, things: &[HeldThing<'_>]) -> Vec<ThingRow> {
    let all: usize = things.iter().map(|thing| thing.jobs).sum();
    let mut sum = 0;
    let mut rows = Vec::new();
    for (thing, number) in things.iter().zip(1..) {
        sum += thing.jobs;
        rows.push(ThingRow {
            number,
            jobs: output::with_commas(thing.jobs as u64),
            sum: share_words(sum, all),
            answers: thing.answer_cells(),
            first_jobs: thing.answers.first().map_or(0, |answer| answer.jobs),
            all_jobs: thing.jobs,
            what: thing.thing.clone(),
            notes: thing_notes(view, thing),
            who: who(thing),
            held: age_words(thing.held_for_ms),
        });
    }
    rows
}

/// The share of `part` in `all`, which is stated as whole only if it is.
fn share_words(part: usize, all: usize) -> String {
    let percent = (100.0 * part as f64 / all.max(1) as f64).round() as u32;
    let most = if part < all { 99 } else { 100 };
    format!("{}%", percent.min(most))
}

/// The last failure and the successes since, and the place of most failures; or else the reason why no command helps.
pub(super) fn thing_notes(view: &AdviceView<'_>, thing: &HeldThing<'_>) -> Vec<String> {
    let ago = if view.shows_ages { " ago" } else { "" };
    if thing.failed.as_ref().is_some_and(FailedThing::is_own_file) {
        let cause = &thing.largest_cause;
        return vec![format!(
            "e.g. {}",
            cause.strip_suffix(" is missing").unwrap_or(cause)
        )];
    }
    let is_common = thing
        .failed
        .as_ref()
        .is_some_and(FailedThing::has_common_state);
    let state = thing.state.filter(|_| is_common);
    let state = state.map(|state| {
        let time = view.short_time(state.last_failure_ms);
        match state.successes_since {
            0 => format!("last failure {time}{ago}"),
            1 => format!("1 success since {time}{ago}"),
            count => format!("{count} successes since {time}{ago}"),
        }
    });
    let place = thing.place.as_ref().map(|place| place.words());
    let known: Vec<String> = state.into_iter().chain(place).collect();
    if !known.is_empty() {
        return known;
    }
    let is_left =
        |answer: &ThingAnswer| matches!(answer.action, HoldAction::Leave | HoldAction::None);
    let is_all_left = thing.answers.iter().all(is_left);
    let first = thing.members.first().filter(|_| is_all_left);
    let why = first.and_then(|one| one.verdict.reasons.first());
    why.iter().map(ToString::to_string).collect()
}

/// The owner of the most jobs with their number, and the number of other owners.
fn who(thing: &HeldThing<'_>) -> String {
    let Some(first) = thing.owners.first() else {
        return output::counted(thing.clusters, "cluster");
    };
    let others = match thing.owners.len() - 1 {
        0 => String::new(),
        others => format!(" +{others}"),
    };
    let count = format!(" {}{others}", output::with_commas(first.jobs as u64));
    let room = WHO_WIDTH.saturating_sub(count.len());
    output::cut(first.owner, room) + &count
}

/// A duration in one unit.
pub(super) fn age_words(ms: i64) -> String {
    match ms.max(0) {
        ms if ms < MINUTE_MS => format!("{} s", ms / 1000),
        ms if ms < HOUR_MS => format!("{} min", ms / MINUTE_MS),
        ms if ms <= MAX_HOURS * HOUR_MS => format!("{} h", ms / HOUR_MS),
        ms => format!("{} d", ms / DAY_MS),
    }
}

/// The table of things.
struct Table<'a> {
    layout: TableLayout,
    rows: &'a [ThingRow],
}

impl Table<'_> {
    /// Returns the first `shown` rows in at most `room` lines, if these are not fewer than the rows: each in one line,
    /// and the first ones in more where there is room.
    fn fitting(&self, shown: usize, room: usize) -> Vec<PageLine> {
        let mut spare = room.saturating_sub(shown);
        let mut lines = Vec::new();
        for row in &self.rows[..shown] {
            let full = self.full(row);
            if full.len() - 1 <= spare {
                spare -= full.len() - 1;
                lines.extend(full);
            } else {
                lines.push(self.compact(row));
            }
        }
        lines
    }

    /// The row in one line, which counts the jobs with other answers.
    fn compact(&self, row: &ThingRow) -> PageLine {
        let first = row.answers.first().map_or("", String::as_str);
        let act = match row.all_jobs - row.first_jobs {
            0 => first.to_owned(),
            others => {
                let whole = format!("{first} +{}", output::with_commas(others as u64));
                match whole.len() {
                    ..=DO_WIDTH => whole,
                    _ => format!("{first} +"),
                }
            }
        };
        self.first_line(row, &act, &self.cut_what(&row.what))
    }

    fn cut_what(&self, what: &str) -> String {
        output::cut(&fitting_cause(what, self.layout.what), self.layout.what)
    }

    fn first_line(&self, row: &ThingRow, act: &str, what: &str) -> PageLine {
        let number = row.number.to_string();
        let cells = [
            number.as_str(),
            &row.jobs,
            &row.sum,
            act,
            what,
            &row.who,
            &row.held,
        ];
        PageLine::plain(self.layout.line(cells))
    }

    /// The name of the thing and the notes on it, those that fit beside the name in its line.
    fn what_lines(&self, row: &ThingRow) -> Vec<String> {
        let width = self.layout.what;
        let mut lines = output::wrapped(&fitting_cause(&row.what, width), width);
        for note in &row.notes {
            match lines.last_mut() {
                Some(last) if output::columns_of(last) + 2 + output::columns_of(note) <= width => {
                    last.push_str(&format!(", {note}"));
                }
                _ => lines.extend(output::wrapped(&fitting_cause(note, width), width)),
            }
        }
        lines
    }

    /// The row with all of its answers and its notes, in a few lines.
    fn full(&self, row: &ThingRow) -> Vec<PageLine> {
        let mut what = self.what_lines(row);
        let most = MAX_LINES_PER_THING.max(row.answers.len());
        if what.len() > most {
            what.truncate(most);
            what[most - 1].push_str(" ...");
        }
        let count = what.len().max(row.answers.len()).max(1);
        let mut lines = Vec::new();
        for at in 0..count {
            let act = row.answers.get(at).map_or("", String::as_str);
            let what = what.get(at).map_or("", String::as_str).trim_start();
            lines.push(match at {
                0 => self.first_line(row, act, &self.cut_what(what)),
                _ => {
                    let cells = ["", "", "", act, &self.cut_what(what), "", ""];
                    PageLine::of(LineColour::Dim, self.layout.line(cells))
                }
            });
        }
        lines
    }
}
