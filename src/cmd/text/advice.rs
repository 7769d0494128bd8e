//! The JSON document of advice, and the lines that all text views of advice share.

use std::collections::BTreeMap;

use serde::Serialize;

use poolcast_advice::{
    self, ActionTally, AdviceBasis, AnswerTally, CauseGroup, EndedJob, HeldGrouping, HeldThing,
    JobAdvice, PublishedOrigin, QueueAgreement, RestartLoop, SkippedJobs, advice_text,
    cause_groups, held_things, query_words,
};
use poolcast_base::moment::DAY_MS;
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_cli::JobOrder;
use poolcast_holds::decision::HoldAction;
use poolcast_holds::rehearsal::Proportion;

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 2;

/// The pipeline that answers alone by default; the page names others.
const USUAL_MEMBER: &str = "et";

/// Advice as one JSON document, described in docs/json.md.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct AdviceDocument<'a> {
    #[serde(flatten)]
    basis: &'a AdviceBasis,
    /// Number of held jobs.
    held: usize,
    /// Agreement between the log and the queue; `None` if the queue was not queried.
    queue: Option<QueueAgreement>,
    /// Results of earlier answers; `None` if the outcome of none is decided, and with `--at`.
    earlier: Option<&'a AnswerTally>,
    /// The named jobs that have ended; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ended: &'a [EndedJob],
    /// The jobs that start and are put back again; absent if there are none, and with options that
    /// choose jobs.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    loops: &'a [RestartLoop],
    /// What would give better advice; absent if there is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<String>,
    /// Number of jobs below, by answer.
    counts: BTreeMap<String, usize>,
    /// The jobs by what failed; the thing comes first whose commands move the most jobs.
    things: Vec<HeldThing<'a>>,
    /// The jobs by cause: same access point, answer, code, cause, and need.
    groups: Vec<CauseGroup<'a>>,
    /// The jobs.
    advice: Vec<&'a JobAdvice>,
}

/// The content of a view of advice, and the settings of its layout.
pub(in crate::cmd) struct AdviceView<'a> {
    /// The data and the model behind the advice.
    pub(in crate::cmd) basis: &'a AdviceBasis,
    /// Advice on all held jobs.
    pub(in crate::cmd) all: &'a [JobAdvice],
    /// Advice to show, in display order.
    pub(in crate::cmd) chosen: Vec<&'a JobAdvice>,
    /// Current time in epoch ms, for views that show ages.
    pub(in crate::cmd) now_ms: Option<i64>,
    /// Line width in characters.
    pub(in crate::cmd) width: usize,
    /// True if times are shown as ages.
    pub(in crate::cmd) shows_ages: bool,
    /// The command that gives the same advice again, to which options are appended.
    pub(in crate::cmd) call: Option<String>,
    /// True if the page shows all things with all causes, however many lines it then has.
    pub(in crate::cmd) shows_all: bool,
    /// The common property of the jobs of a row.
    pub(in crate::cmd) grouping: HeldGrouping,
    /// The order of the rows, where it is by time or odds; otherwise, the one with the most jobs comes first.
    pub(in crate::cmd) sort: JobOrder,
    /// Number of a thing of the last page, if the page is about its jobs alone.
    pub(in crate::cmd) opened: Option<usize>,
    /// Rows of the terminal; `None` in a pipe.
    pub(in crate::cmd) terminal_rows: Option<usize>,
    /// Agreement between the log and the queue, if the queue was queried.
    pub(in crate::cmd) queue: Option<QueueAgreement>,
    /// Results of earlier answers, if the outcome of any is decided.
    pub(in crate::cmd) earlier: Option<&'a AnswerTally>,
    /// The named jobs that have ended.
    pub(in crate::cmd) ended: &'a [EndedJob],
    /// The jobs that start and are put back again.
    pub(in crate::cmd) loops: &'a [RestartLoop],
    /// What would give better advice, if anything is known to.
    pub(in crate::cmd) better: Option<String>,
    /// What to say if no job is held, where only some of the held jobs were asked for.
    pub(in crate::cmd) none_of_own: Option<&'a str>,
}

impl<'a> AdviceView<'a> {
    /// Creates a view of `all` jobs, whose advice has this `basis`, for the terminal or the pipe of this process.
    pub(in crate::cmd) fn new(basis: &'a AdviceBasis, all: &'a [JobAdvice]) -> AdviceView<'a> {
        AdviceView {
            basis,
            all,
            chosen: all.iter().collect(),
            now_ms: None,
            width: output::page_width(),
            shows_ages: false,
            call: None,
            shows_all: false,
            grouping: HeldGrouping::Thing,
            sort: JobOrder::Action,
            opened: None,
            terminal_rows: output::terminal_size().map(|(_, rows)| rows),
            queue: None,
            earlier: None,
            ended: &[],
            loops: &[],
            better: None,
            none_of_own: None,
        }
    }

    /// The same view of `chosen` alone. Its counts of all held jobs stay.
    pub(in crate::cmd) fn of_jobs(&self, chosen: Vec<&'a JobAdvice>) -> AdviceView<'a> {
        AdviceView {
            chosen,
            call: self.call.clone(),
            better: self.better.clone(),
            ..*self
        }
    }

    /// The JSON document.
    pub(in crate::cmd) fn document(&self) -> AdviceDocument<'a> {
        let mut counts = BTreeMap::new();
        for advice in &self.chosen {
            *counts
                .entry(advice.verdict.action.word().to_owned())
                .or_default() += 1;
        }
        let groups = cause_groups(&self.chosen);
        AdviceDocument {
            basis: self.basis,
            held: self.all.len(),
            queue: self.queue,
            earlier: self.earlier,
            ended: self.ended,
            loops: self.loops,
            better: self.better.clone(),
            counts,
            things: held_things(&groups, HeldGrouping::Thing),
            groups,
            advice: self.chosen.clone(),
        }
    }

    /// The job ids, one per line.
    pub(in crate::cmd) fn ids(&self) -> String {
        // Programs release what is listed, and of a probed cause only the probes may be released.
        let is_listed = |one: &&&JobAdvice| {
            one.verdict.action != HoldAction::Probe || one.verdict.command.is_some()
        };
        let listed = self.chosen.iter().filter(is_listed);
        listed
            .map(|advice| format!("{}\n", advice.job.id))
            .collect()
    }

    /// The lines at the top: the number of jobs per answer, then the basis of the advice.
    pub(in crate::cmd) fn head(&self) -> Vec<PageLine> {
        let mut lines = Vec::new();
        for ended in self.ended {
            lines.extend(self.wrapped(LineColour::Plain, &ended.words()));
        }
        if self.ended.is_empty() || !self.chosen.is_empty() {
            lines.extend(self.wrapped(LineColour::Plain, &self.counts_line()));
        }
        lines.extend(self.basis_lines());
        lines
    }

    /// The basis of the advice: log, model, earlier answers and queue, followed by the caveats.
    pub(in crate::cmd) fn basis_lines(&self) -> Vec<PageLine> {
        let mut lines = Vec::new();
        for line in self.log_line().into_iter().chain([self.model_line()]) {
            lines.extend(self.wrapped(LineColour::Dim, &line));
        }
        let expiry = self.expiry_words();
        lines.extend(expiry.map(|words| PageLine::of(LineColour::Dim, words)));
        lines.extend(self.earlier_lines());
        lines.extend(self.queue_lines());
        let age = self.now_ms.and_then(|now| self.basis.log_age_caveat(now));
        lines.extend(age.iter().flat_map(|age| self.note_lines(age)));
        lines.extend(self.caveat_lines());
        lines
    }

    /// The results of earlier answers.
    pub(super) fn earlier_lines(&self) -> Vec<PageLine> {
        let words = self.earlier.map(tally_words);
        let lines = words.iter();
        lines
            .flat_map(|words| self.wrapped(LineColour::Dim, words))
            .collect()
    }

    /// The agreement between the log and the queue.
    pub(super) fn queue_lines(&self) -> Vec<PageLine> {
        let has_log = self.basis.log_end_ms.is_some();
        let words = self.queue.map(|queue| queue_words(queue, has_log));
        let lines = words.iter();
        lines
            .flat_map(|words| self.wrapped(LineColour::Dim, words))
            .collect()
    }

    /// The caveats, but for the age of the log.
    pub(super) fn caveat_lines(&self) -> Vec<PageLine> {
        let skipped = self.queue.and_then(|queue| queue.skipped);
        let skipped = skipped.map(skipped_jobs_words);
        let caveats = skipped.iter().chain(&self.basis.caveats);
        caveats.flat_map(|caveat| self.note_lines(caveat)).collect()
    }

    /// A caveat.
    pub(in crate::cmd) fn note_lines(&self, caveat: &str) -> Vec<PageLine> {
        self.wrapped(LineColour::Yellow, &format!("note: {caveat}"))
    }

    /// The line, broken at the width of the page.
    pub(in crate::cmd) fn wrapped(&self, colour: LineColour, line: &str) -> Vec<PageLine> {
        output::wrapped(line, self.width)
            .into_iter()
            .map(|line| PageLine::of(colour, line))
            .collect()
    }

    /// Says what to do if the commands are out of date; empty if there is none.
    pub(in crate::cmd) fn outdated_lines(&self) -> Vec<PageLine> {
        if !self.chosen.iter().any(|one| one.has_command_on_hold()) {
            return Vec::new();
        }
        let words = "if HTCondor finds none of the jobs of a command, they have changed: ask again";
        self.wrapped(LineColour::Dim, words)
    }

    /// Says until when the answers are good; `None` if none of them expires.
    fn expiry_words(&self) -> Option<String> {
        let (until_ms, is_over) = self.expiry()?;
        let next = if is_over {
            "which is over: ask with `--queue now`"
        } else {
            "then ask again"
        };
        Some(format!("good until {}, {next}", output::utc_time(until_ms)))
    }

    /// The time until which the answers are good, epoch ms, and whether it is over; `None` if none of them expires.
    pub(super) fn expiry(&self) -> Option<(i64, bool)> {
        let good_until = self
            .chosen
            .iter()
            .filter_map(|one| one.forecast.good_until_ms);
        let good_until_ms = good_until.min()?;
        let is_as_of_log = self.basis.at_ms().is_none();
        let is_over = is_as_of_log && self.now_ms.is_some_and(|now_ms| good_until_ms < now_ms);
        // Without a run, the log is one's own, and of another host or another time.
        let is_of_own_log = is_over && self.better.is_some();
        (!is_of_own_log).then_some((good_until_ms, is_over))
    }

    fn counts_line(&self) -> String {
        if self.all.is_empty()
            && let Some(words) = self.none_of_own
        {
            return words.to_owned();
        }
        if self.chosen.is_empty() {
            let what = if self.all.is_empty() {
                "no job is held"
            } else {
                "no held job matches the options"
            };
            return format!("{what} {}", query_words(self.basis.at_ms()));
        }

        let mut counts = Vec::new();
        for action in HoldAction::COUNTED {
            let jobs = action_count(&self.chosen, action);
            if jobs > 0 {
                let words = action_phrase(action);
                counts.push(format!("{} {words}", output::with_commas(jobs as u64)));
            }
        }
        format!("{}: {}", self.held_words(), counts.join(", "))
    }

    /// The number of shown jobs, of all that are held.
    pub(super) fn held_words(&self) -> String {
        let held = output::counted(self.all.len(), "held job");
        if self.chosen.len() == self.all.len() {
            return held;
        }
        let chosen = output::with_commas(self.chosen.len() as u64);
        format!("{chosen} of {held}")
    }

    /// Describes the log; `None` if none was read.
    fn log_line(&self) -> Option<String> {
        let AdviceBasis {
            access_points,
            log_begin_ms,
            log_end_ms,
            holds,
            ..
        } = self.basis;
        let (begin_ms, end_ms) = log_begin_ms.zip(*log_end_ms)?;
        let mut ended = format!("{} UTC", minute(end_ms));
        if let Some(now_ms) = self.now_ms.filter(|_| self.shows_ages) {
            ended = format!("{ended} ({} ago)", output::time_span(now_ms - end_ms));
        }
        Some(format!(
            "{} of {}: {} to {ended}, {}",
            self.basis.source_name(),
            access_points.join(", "),
            minute(begin_ms),
            output::counted(*holds, "hold")
        ))
    }

    fn model_line(&self) -> String {
        let AdviceBasis {
            trained_until_ms,
            members,
            uses_prior,
            holds_since,
            ..
        } = self.basis;
        let Some(until_ms) = *trained_until_ms else {
            return match &self.basis.unused_model {
                Some(unused) => format!(
                    "{}, judges jobs by their events, and no log of these jobs can be read: rules for hold codes answer",
                    published_words(unused)
                ),
                None => "no model: rules for hold codes answer".to_owned(),
            };
        };
        let since = output::counted(*holds_since, "hold");
        let learned = format!("learned until {} UTC ({since} since)", minute(until_ms));
        let by = if *members == [USUAL_MEMBER] {
            String::new()
        } else {
            format!(", answered by {}", members.join(" and "))
        };
        let origin = match &self.basis.published_model {
            Some(published) => published_words(published),
            None => {
                let elsewhere = if *uses_prior {
                    ", and those of holds at other access points"
                } else {
                    ""
                };
                format!("rules answer, and the outcomes of earlier holds{elsewhere}: {learned}")
            }
        };
        format!("{origin}{by}, {}", self.skill_words())
    }

    /// States the skill of what answers.
    fn skill_words(&self) -> String {
        let Some(rehearsed) = self.basis.rehearsed else {
            return "not rehearsed".to_owned();
        };
        let right = |of: Proportion| {
            format!(
                "{} of {}",
                output::with_commas(of.count as u64),
                output::with_commas(of.of as u64)
            )
        };
        format!(
            "rehearsed on its log: right about {} faults, and in {} firm answers",
            right(rehearsed.kind_right),
            right(rehearsed.firm_right)
        )
    }

    /// A time for a table column: an age on a terminal, otherwise the time of day, or the date if
    /// it is a day or more before the prediction time.
    pub(in crate::cmd) fn short_time(&self, ms: i64) -> String {
        if let Some(now_ms) = self.now_ms.filter(|_| self.shows_ages) {
            let s = (now_ms - ms).max(0) / 1000;
            return match s {
                0..60 => format!("{s} s"),
                60..3600 => format!("{} min", s / 60),
                3600..86_400 => format!("{} h", s / 3600),
                _ => format!("{} d", s / 86_400),
            };
        }
        let form = if self.basis.asked_ms - ms < DAY_MS {
            "%H:%M"
        } else {
            "%m-%d"
        };
        let moment = jiff::Timestamp::from_millisecond(ms);
        moment.map_or_else(
            |_| "-".to_owned(),
            |moment| moment.strftime(form).to_string(),
        )
    }

    /// Heading of the column that [`AdviceView::short_time`] fills.
    pub(in crate::cmd) fn time_heading(&self) -> &'static str {
        if self.shows_ages { "for" } else { "since" }
    }
}

/// Number of the jobs that get `action`.
pub(super) fn action_count(jobs: &[&JobAdvice], action: HoldAction) -> usize {
    jobs.iter()
        .filter(|one| one.verdict.action == action)
        .count()
}

/// Describes a published model.
fn published_words(published: &PublishedOrigin) -> String {
    let which = if published.is_of_site {
        "the model of this site".to_owned()
    } else {
        format!("the published model in {}", published.path)
    };
    format!("{which}, learned {} UTC", minute(published.learned_ms))
}

/// Describes the results of earlier answers, kind by kind.
fn tally_words(tally: &AnswerTally) -> String {
    let judged = tally.kinds.iter().filter(|kind| kind.right.is_some());
    let probes = tally.kinds.iter().filter(|kind| kind.right.is_none());
    let mut counts: Vec<String> = judged.chain(probes).map(kind_words).collect();
    // The first count says what all of them count.
    if let Some(first) = counts.first_mut().filter(|_| tally.decided > 0) {
        first.push_str(" right");
    }
    format!(
        "earlier answers since {} UTC: {}",
        minute(tally.since_ms),
        counts.join(", ")
    )
}

/// Describes the results of the answers with one action.
fn kind_words(kind: &ActionTally) -> String {
    let number = |n: usize| output::with_commas(n as u64);
    let Some(right) = kind.right else {
        return format!(
            "TRY ONE {} succeeded and {} failed",
            number(kind.succeeded),
            number(kind.decided - kind.succeeded)
        );
    };
    let word = kind.action.word().to_uppercase();
    format!("{word} {} of {}", number(right), number(kind.decided))
}

/// Describes the agreement between the log and the queue.
fn queue_words(queue: QueueAgreement, has_log: bool) -> String {
    let why_not_in_log = if has_log {
        "of them held since the log ended or before it began"
    } else {
        "of them without a log"
    };
    let QueueAgreement {
        held,
        not_in_log,
        not_in_queue,
        skipped: _,
    } = queue;
    let mut words = format!("queue: {}", output::counted(held, "held job"));
    if not_in_log > 0 {
        let jobs = output::with_commas(not_in_log as u64);
        words.push_str(&format!(
            ", {jobs} {why_not_in_log}: these get advice by rules only"
        ));
    }
    if not_in_queue > 0 {
        let jobs = output::with_commas(not_in_queue as u64);
        words.push_str(&format!(
            "; {jobs} held in the log are no longer held and are ignored"
        ));
    }
    words
}

/// Describes the jobs of the queue that cannot be read.
pub(in crate::cmd) fn skipped_jobs_words(skipped: SkippedJobs) -> String {
    let SkippedJobs { count, first, why } = skipped;
    let jobs = output::counted(count, "job");
    let first = output::with_commas(first as u64);
    if count == 1 {
        return format!(
            "{jobs} of the queue cannot be read, and gets no advice; number {first} of the list: {why}"
        );
    }
    format!(
        "{jobs} of the queue cannot be read, and get no advice; the first is number {first} of the list: {why}"
    )
}

/// A time in UTC, to the minute.
pub(super) fn minute(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "an unknown moment".to_owned(),
    }
}

/// Quotes `text` if a shell would not read it as one word.
pub(in crate::cmd) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns ` FLAG VALUE` for a command. A value that would be read as another flag follows `=`.
pub(in crate::cmd) fn flag_words(flag: &str, value: &str) -> String {
    let separator = if value.starts_with('-') && value != "-" {
        '='
    } else {
        ' '
    };
    format!(" {flag}{separator}{}", shell_word(value))
}

fn action_phrase(action: HoldAction) -> &'static str {
    match action {
        HoldAction::Release => "to release",
        HoldAction::Probe => "to try one of",
        HoldAction::Later => "to release later",
        HoldAction::Fix => "to fix first",
        HoldAction::Remove => "to remove",
        HoldAction::Leave => "to leave held",
        HoldAction::None => "without advice",
    }
}

/// The colour of an answer.
pub(in crate::cmd) fn action_colour(action: HoldAction) -> LineColour {
    match action {
        HoldAction::Release | HoldAction::Probe => LineColour::Green,
        HoldAction::Later | HoldAction::Fix => LineColour::Yellow,
        HoldAction::Remove => LineColour::Red,
        HoldAction::Leave | HoldAction::None => LineColour::Dim,
    }
}

/// The probability range of some jobs in percent, or `-`.
pub(in crate::cmd) fn odds_words(odds: Option<(f64, f64)>) -> String {
    // No probability is shown as certain.
    let percent = |odds: f64| ((100.0 * odds).round() as u32).clamp(1, 99);
    match odds.map(|(low, high)| (percent(low), percent(high))) {
        Some((low, high)) if low == high => format!("{low}%"),
        Some((low, high)) => format!("{low}-{high}%"),
        None => "-".to_owned(),
    }
}

/// Lists owners in at most `most` characters: the first name, then the number of others.
pub(in crate::cmd) fn owner_cell<'a>(
    owners: impl ExactSizeIterator<Item = &'a str>,
    most: usize,
) -> String {
    let others = owners.len().saturating_sub(1);
    let mut owners = owners;
    let Some(first) = owners.next() else {
        return "-".to_owned();
    };
    match others {
        0 => output::cut(first, most),
        others => {
            let more = format!(" +{others}");
            format!(
                "{}{more}",
                output::cut(first, most.saturating_sub(more.len()))
            )
        }
    }
}

/// Everything known about each job, escaped and coloured for stdout.
pub(in crate::cmd) fn long_text(view: &AdviceView<'_>) -> String {
    let mut blocks = Vec::new();
    for one in &view.chosen {
        let text = advice_text(one, view.basis.at_ms());
        let (answer, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let answer = PageLine::of(action_colour(one.verdict.action), answer);
        blocks.push(output::shown_page(&[answer]) + &output::shown_text(rest));
    }
    blocks.join("\n")
}
