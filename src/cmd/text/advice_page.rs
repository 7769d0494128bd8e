//! The page of advice: one line per cause, followed by the commands for all its jobs.

use super::advice::{AdviceView, action_colour, action_word, odds_words, owner_cell};
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_holds::advice::{
    AnswerFirmness, CauseGroup, HoldAction, answer_words, cause_groups, fitting_cause,
};

/// Maximum number of lines on a page: normally, and with many jobs.
const PAGE_LINES: usize = 40;
const LONG_PAGE_LINES: usize = 60;

/// Number of held jobs above which a page may be long.
const MANY_JOBS: usize = 600;

/// Maximum lines of a command. A longer one is replaced by a call that names its cause.
const MAX_COMMAND_LINES: usize = 3;

const CODE_WIDTH: usize = 7;
const JOBS_WIDTH: usize = 5;
const ODDS_WIDTH: usize = 6;
const MOMENT_WIDTH: usize = 6;

/// Line width from which the owner column is wider, in characters.
const WIDE_LINE: usize = 100;

/// The page of `view`.
pub(in crate::cmd) fn page(view: &AdviceView<'_>) -> Vec<PageLine> {
    let mut lines = view.head();
    if view.chosen.is_empty() {
        return lines;
    }
    let groups = cause_groups(view.all, &view.chosen);
    let columns = PageColumns::from_width(view.width);
    let blocks: Vec<Vec<PageLine>> = groups
        .iter()
        .map(|group| group_lines(view, &columns, group))
        .collect();

    let most = if view.all.len() > MANY_JOBS {
        LONG_PAGE_LINES
    } else {
        PAGE_LINES
    };
    // The heading of the columns and a blank line take two lines.
    let room = most.saturating_sub(lines.len() + 2);
    let shown = shown_groups(view, &groups, &blocks, room);

    lines.push(PageLine::plain(""));
    lines.push(PageLine::of(LineColour::Dim, columns.names(view)));
    let mut at = 0;
    for alike in groups.chunk_by(|a, b| answer_of(a) == answer_of(b)) {
        lines.push(heading_line(alike));
        let range = at..at + alike.len();
        at = range.end;
        for index in range.clone().filter(|&index| shown[index]) {
            lines.extend_from_slice(&blocks[index]);
        }
        lines.extend(hidden_groups_line(view, alike, &shown[range]));
    }
    lines
}

/// The action of a group, and whether it is only probable.
fn answer_of(group: &CauseGroup<'_>) -> (HoldAction, bool) {
    (
        group.action,
        group.firmness == Some(AnswerFirmness::Probable),
    )
}

/// Widths of the columns that depend on the width of the page, in characters.
struct PageColumns {
    cause: usize,
    owner: usize,
}

impl PageColumns {
    fn from_width(width: usize) -> PageColumns {
        let owner = if width >= WIDE_LINE { 18 } else { 9 };
        let others = 2
            + CODE_WIDTH
            + 1
            + 2 * (1 + JOBS_WIDTH)
            + 2
            + owner
            + 1
            + ODDS_WIDTH
            + 1
            + MOMENT_WIDTH;
        PageColumns {
            cause: width.saturating_sub(others).max(10),
            owner,
        }
    }

    fn line(&self, cells: [&str; 7]) -> String {
        let [code, cause, jobs, clusters, owner, odds, moment] = cells;
        let cause = output::left_aligned(cause, self.cause);
        let owner = output::left_aligned(owner, self.owner);
        format!(
            "  {code:<CODE_WIDTH$} {cause} {jobs:>JOBS_WIDTH$} {clusters:>JOBS_WIDTH$}  {owner} {odds:>ODDS_WIDTH$} {moment:>MOMENT_WIDTH$}"
        )
        .trim_end()
        .to_owned()
    }

    fn names(&self, view: &AdviceView<'_>) -> String {
        self.line([
            "code",
            "cause",
            "jobs",
            "clus.",
            "owner",
            "odds",
            view.time_heading(),
        ])
    }
}

fn group_lines(
    view: &AdviceView<'_>,
    columns: &PageColumns,
    group: &CauseGroup<'_>,
) -> Vec<PageLine> {
    let code = format!("{}/{}", group.hold_code, group.hold_subcode);
    let cells = [
        code.as_str(),
        &output::cut(&fitting_cause(&group.words, columns.cause), columns.cause),
        &output::with_commas(group.jobs.len() as u64),
        &output::with_commas(group.clusters as u64),
        &owner_cell(group.owners.iter().copied(), columns.owner),
        &odds_words(group.odds),
        &view.short_time(group.held_since_ms),
    ];

    let mut lines = vec![PageLine::plain(columns.line(cells))];
    for (words, command) in group_commands(group) {
        let command = fitting_command(view, group, command);
        lines.push(PageLine::plain(format!("    {words}{command}")));
    }
    lines
}

/// The commands of a group, each with the words that introduce it.
fn group_commands<'a>(group: &'a CauseGroup<'_>) -> Vec<(&'static str, &'a str)> {
    let now = group.command.as_deref();
    let then = group.then.as_deref();
    match group.action {
        HoldAction::Fix if group.raise.is_some() => {
            let now = now.map(|command| ("", command));
            now.into_iter()
                .chain(then.map(|command| ("then: ", command)))
                .collect()
        }
        HoldAction::Fix => then
            .map(|command| ("once fixed: ", command))
            .into_iter()
            .collect(),
        HoldAction::Later => then
            .map(|command| ("later: ", command))
            .into_iter()
            .collect(),
        HoldAction::Release | HoldAction::Remove => {
            now.map(|command| ("", command)).into_iter().collect()
        }
        HoldAction::Leave | HoldAction::None => Vec::new(),
    }
}

/// Returns `command`, or, if it is too long, a command that queries the ids of the cause.
fn fitting_command(view: &AdviceView<'_>, group: &CauseGroup<'_>, command: &str) -> String {
    let lines = (command.len() + 16).div_ceil(view.width);
    let (Some(call), Some((program, rest))) = (&view.call, command.split_once(" -constraint '"))
    else {
        return command.to_owned();
    };
    if lines <= MAX_COMMAND_LINES {
        return command.to_owned();
    }
    let after = rest.rsplit_once('\'').map_or("", |(_, after)| after);
    let each = if after.is_empty() {
        program.to_owned()
    } else {
        format!("-I{{}} {program} {{}}{after}")
    };
    format!("{call} --cause {} --ids | xargs {each}", group.cause)
}

/// The heading of the groups `alike`: their answer and the number of jobs.
fn heading_line(alike: &[CauseGroup<'_>]) -> PageLine {
    let jobs: usize = alike.iter().map(|group| group.jobs.len()).sum();
    let words = answer_words(alike[0].action, alike[0].firmness);
    let text = format!("{words}: {}", output::counted(jobs, "job"));
    PageLine::of(action_colour(alike[0].action), text)
}

/// Selects the groups that fit in `room` lines: first the largest of each answer, then the groups
/// with the most jobs. The result is true for each selected group.
fn shown_groups(
    view: &AdviceView<'_>,
    groups: &[CauseGroup<'_>],
    blocks: &[Vec<PageLine>],
    room: usize,
) -> Vec<bool> {
    let is_first = |at: usize| at == 0 || answer_of(&groups[at]) != answer_of(&groups[at - 1]);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&at| (!is_first(at), std::cmp::Reverse(groups[at].jobs.len())));

    let mut rows = Vec::new();
    for block in blocks {
        let of_lines = block
            .iter()
            .map(|line| output::columns_of(&line.text).div_ceil(view.width).max(1));
        rows.push(of_lines.sum::<usize>());
    }
    // The heading of each answer takes one line.
    let answers = (0..groups.len()).filter(|&at| is_first(at)).count();
    let mut left = room.saturating_sub(answers);
    if rows.iter().sum::<usize>() <= left {
        return vec![true; groups.len()];
    }

    // Reserve lines for the note of each answer on the causes that are not shown.
    left = left.saturating_sub(MAX_COMMAND_LINES * answers);
    let mut shown = vec![false; groups.len()];
    for at in order {
        if rows[at] <= left {
            left -= rows[at];
            shown[at] = true;
        }
    }
    shown
}

/// The note on the groups in `alike` that are not shown, with the options that show them.
fn hidden_groups_line(
    view: &AdviceView<'_>,
    alike: &[CauseGroup<'_>],
    shown: &[bool],
) -> Option<PageLine> {
    let mut causes = Vec::new();
    let mut jobs = 0;
    for (group, _) in alike.iter().zip(shown).filter(|(_, shown)| !**shown) {
        causes.push(group.cause.as_str());
        jobs += group.jobs.len();
    }
    if causes.is_empty() {
        return None;
    }

    let count = format!(
        "  and {} of {}",
        output::counted(causes.len(), "more cause"),
        output::counted(jobs, "job")
    );
    let call = view
        .call
        .as_deref()
        .map_or(String::new(), |call| format!("{call} "));
    let exact = format!("{count}: {call}--cause {}", causes.join(","));
    let text = if output::columns_of(&exact) <= MAX_COMMAND_LINES * view.width {
        exact
    } else {
        let action = action_word(alike[0].action);
        format!("{count}, among {call}--action {action} --jobs")
    };
    Some(PageLine::of(LineColour::Dim, text))
}
