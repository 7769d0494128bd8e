//! The page of advice: one line per cause, followed by the commands for all its jobs.

use std::cmp::Reverse;
use std::ops::Range;

use super::advice::{AdviceView, action_colour, odds_words, owner_cell};
use poolcast_advice::{
    CauseGroup, HeldCommand, JobLook, cause_groups, elsewhere_words, fitting_cause, lack_words,
    removal_words, state_words,
};
use poolcast_base::escape;
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_holds::decision::{AnswerFirmness, HoldAction, answer_words};

/// Maximum number of nodes of a DAG that are named.
const MAX_NAMED_NODES: usize = 6;

/// Lines of a screen.
const SCREEN_LINES: usize = 40;

/// Held jobs per screen of a page.
const JOBS_PER_SCREEN: usize = 100;

/// Maximum lines of a command. A longer one is replaced by a call that names its cause.
const MAX_COMMAND_LINES: usize = 3;

/// Causes of a page up to which each is stated in full.
const MAX_CAUSES_IN_FULL: usize = 5;

/// Minimum width of the name of a thing in a note.
const MIN_NAME_WIDTH: usize = 20;

/// Width that the path of a look leaves to the words beside it.
const LOOK_MARGIN: usize = 18;

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
    let groups = cause_groups(&view.chosen);
    let columns = PageColumns::from_width(view.width);
    let kinds = groups.iter().filter(|group| !group.is_like_last).count();
    let is_in_full = kinds <= MAX_CAUSES_IN_FULL;
    let blocks: Vec<CauseBlock> = groups
        .iter()
        .map(|group| CauseBlock::new(view, &columns, group, is_in_full))
        .collect();

    lines.push(PageLine::plain(""));
    lines.push(PageLine::of(LineColour::Dim, columns.names(view)));
    let body = PageBody {
        view,
        groups: &groups,
        blocks: &blocks,
    };
    let outdated = view.outdated_lines();
    let room = if view.shows_all {
        usize::MAX
    } else {
        let screens = view.all.len().div_ceil(JOBS_PER_SCREEN);
        (screens * SCREEN_LINES).saturating_sub(lines.len() + outdated.len())
    };
    lines.extend(body.lines(&body.fitting_parts(room)));
    lines.extend(outdated);
    lines
}

/// The action of a group, and its certainty if it is not firm.
fn answer_of(group: &CauseGroup<'_>) -> (HoldAction, Option<AnswerFirmness>) {
    let is_unsure = |firmness: &AnswerFirmness| *firmness != AnswerFirmness::Firm;
    (group.action, group.firmness.filter(is_unsure))
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

/// The lines of a group.
struct CauseBlock {
    cause: PageLine,
    /// The result of a look, the state of the thing that failed, or the reason for no release.
    notes: Vec<PageLine>,
    commands: Vec<PageLine>,
    /// The memory that the next submission should request.
    memory: Vec<PageLine>,
    /// The results of the last probes.
    probes: Vec<PageLine>,
}

impl CauseBlock {
    /// Returns the lines of `group`. If `is_in_full`, nothing that its line and its notes say is cut.
    fn new(
        view: &AdviceView<'_>,
        columns: &PageColumns,
        group: &CauseGroup<'_>,
        is_in_full: bool,
    ) -> CauseBlock {
        let mut notes = Vec::new();
        if is_in_full && !group.is_like_last {
            notes.extend(cause_in_full(view, columns, group));
        }
        notes.extend(note_lines(view, group, is_in_full));
        let command_line = |(words, command)| {
            let command = fitting_command(view, group, command);
            PageLine::plain(format!("    {words}{command}"))
        };
        let mut commands = group_commands(group);
        let place = group.place.as_ref().filter(|_| is_in_full);
        if let Some(place) = place {
            notes.extend(folded(view, &place.words()));
        }
        if is_in_full && !group.dag_nodes.is_empty() {
            notes.extend(folded(view, &nodes_words(group)));
        }
        let avoid = place.and_then(|place| Some((place.avoid_words(), place.avoid.as_ref()?)));
        commands.splice(0..0, avoid);
        let removal = group.removal.as_ref().filter(|_| is_in_full);
        let words = format!("{}: ", removal_words(group.then.is_some()));
        commands.extend(removal.map(|removal| (words.as_str(), removal)));
        CauseBlock {
            cause: cause_line(view, columns, group),
            notes,
            commands: commands.into_iter().map(command_line).collect(),
            memory: memory_lines(view, group),
            probes: probe_lines(view, group),
        }
    }

    /// The lines below the cause.
    fn details(&self) -> Vec<PageLine> {
        let lines = self.notes.iter().chain(&self.commands);
        lines
            .chain(&self.memory)
            .chain(&self.probes)
            .cloned()
            .collect()
    }
}

/// Names the jobs' nodes of a DAG.
fn nodes_words(group: &CauseGroup<'_>) -> String {
    let named = group.dag_nodes.iter().take(MAX_NAMED_NODES);
    let mut names: Vec<String> = named.map(|name| escape::value(name).into_owned()).collect();
    let more = group.dag_nodes.len() - names.len();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let what = if group.dag_nodes.len() == 1 {
        "node"
    } else {
        "nodes"
    };
    format!("{what} {}", names.join(", "))
}

/// The cause of a group in full: what its reason states, or else its words if its line cuts them.
fn cause_in_full(
    view: &AdviceView<'_>,
    columns: &PageColumns,
    group: &CauseGroup<'_>,
) -> Vec<PageLine> {
    match &group.stated {
        Some(stated) => folded(view, stated),
        None if output::columns_of(&group.words) > columns.cause => folded(view, &group.words),
        None => Vec::new(),
    }
}

/// The notes on a group: the result of a look, and, unless that decides, the origin of its odds, the
/// reason for no release, or else the state of the thing that failed.
fn note_lines(view: &AdviceView<'_>, group: &CauseGroup<'_>, is_in_full: bool) -> Vec<PageLine> {
    let mut lines = group.look.map_or_else(Vec::new, |look| {
        folded(
            view,
            &look_words(view, look, group.looked_files, is_in_full),
        )
    });
    if group.is_by_look {
        return lines;
    }
    let note = if group.is_known_from_elsewhere {
        Some(elsewhere_words().to_owned())
    } else if group.lacks_outcomes {
        Some(lack_words())
    } else {
        state_note(view, group, is_in_full)
    };
    lines.extend(note.iter().flat_map(|note| folded(view, note)));
    lines
}

/// The state of the thing that failed, in one line unless it `is_in_full`; `None` if it is unknown.
fn state_note(view: &AdviceView<'_>, group: &CauseGroup<'_>, is_in_full: bool) -> Option<String> {
    let state = group.state?;
    let ago = if view.shows_ages { " ago" } else { "" };
    let failed = view.short_time(state.last_failure_ms);
    let words = state_words(state, &format!("{failed}{ago}"));
    let room = view
        .width
        .saturating_sub(6 + words.len())
        .max(MIN_NAME_WIDTH);
    let name = group.thing.as_deref().unwrap_or_default();
    let name = if is_in_full {
        name.to_owned()
    } else {
        fitted(name, room)
    };
    Some(format!("{name}: {words}"))
}

/// Returns `name` in at most `room` columns.
fn fitted(name: &str, room: usize) -> String {
    output::cut(&fitting_cause(name, room), room)
}

/// The words on a look at one of `files`, with a path that fits into a line unless it `is_in_full`.
fn look_words(view: &AdviceView<'_>, look: &JobLook, files: usize, is_in_full: bool) -> String {
    let others = match files {
        0 | 1 => String::new(),
        _ => format!(", like {}", output::counted(files - 1, "other file")),
    };
    let room = view.width.saturating_sub(LOOK_MARGIN).max(MIN_NAME_WIDTH);
    let path = if is_in_full {
        look.path.to_string()
    } else {
        fitted(&look.path, room)
    };
    look.words(&path) + &others
}

/// A note below a cause, folded at the width of the page.
fn folded(view: &AdviceView<'_>, note: &str) -> Vec<PageLine> {
    output::wrapped(&format!("    {note}"), view.width)
        .into_iter()
        .map(|line| PageLine::of(LineColour::Dim, line))
        .collect()
}

/// The memory that the next submission of the batch of a group should request, by the batch of the
/// most jobs.
fn memory_lines(view: &AdviceView<'_>, group: &CauseGroup<'_>) -> Vec<PageLine> {
    let Some(plan) = group.memory_plans.first() else {
        return Vec::new();
    };
    let which = match (group.memory_plans.len(), plan.clusters.first()) {
        (2.., Some(cluster)) => format!(" of the batch of {cluster}"),
        _ => String::new(),
    };
    let requests = format!(
        "    next submission{which}: {}",
        plan.submit_lines().join(", ")
    );
    let mut lines = vec![PageLine::plain(requests)];
    lines.extend(folded(view, &plan.outcome_words()));
    lines
}

/// The results of the last probes of a group, folded at the width of the page.
fn probe_lines(view: &AdviceView<'_>, group: &CauseGroup<'_>) -> Vec<PageLine> {
    let probes = group.probes.iter();
    let results: Vec<String> = probes
        .map(|probe| probe.words(view.basis.asked_ms))
        .collect();
    if results.is_empty() {
        return Vec::new();
    }
    folded(view, &results.join("; "))
}

/// The line of a cause.
fn cause_line(view: &AdviceView<'_>, columns: &PageColumns, group: &CauseGroup<'_>) -> PageLine {
    let (code, words) = match group.is_like_last {
        true => (String::new(), format!("the same at {}", group.ap)),
        false => {
            let code = format!("{}/{}", group.hold_code, group.hold_subcode);
            (code, group.words.clone())
        }
    };
    let cells = [
        code.as_str(),
        &fitted(&words, columns.cause),
        &output::with_commas(group.jobs.len() as u64),
        &output::with_commas(group.clusters as u64),
        &owner_cell(group.owners.iter().copied(), columns.owner),
        &odds_words(group.odds),
        &view.short_time(group.held_since_ms),
    ];
    PageLine::plain(columns.line(cells))
}

/// The commands of a group, each with the words that introduce it.
fn group_commands<'a>(group: &'a CauseGroup<'_>) -> Vec<(&'static str, &'a HeldCommand)> {
    let now = group.command.as_ref();
    let then = group.then.as_ref();
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
        HoldAction::Release | HoldAction::Probe | HoldAction::Remove => {
            now.map(|command| ("", command)).into_iter().collect()
        }
        HoldAction::Leave | HoldAction::None => Vec::new(),
    }
}

/// Returns `command`, or, if it is too long, a command that queries the ids of the cause.
fn fitting_command(view: &AdviceView<'_>, group: &CauseGroup<'_>, command: &HeldCommand) -> String {
    let text = command.to_string();
    let lines = (text.len() + 16).div_ceil(view.width);
    let short = view
        .call
        .as_ref()
        .filter(|_| lines > MAX_COMMAND_LINES)
        .and_then(|call| group.command_with_ids_of(call, command));
    short
        .filter(|short| short.len() < text.len())
        .unwrap_or(text)
}

/// The heading of the groups `alike`: their answer and the number of jobs.
fn heading_line(alike: &[CauseGroup<'_>]) -> PageLine {
    let jobs: usize = alike.iter().map(|group| group.jobs.len()).sum();
    let words = answer_words(alike[0].action, alike[0].firmness);
    let text = format!("{words}: {}", output::counted(jobs, "job"));
    PageLine::of(action_colour(alike[0].action), text)
}

/// The part of a group that the page shows, in ascending order of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownPart {
    Nothing,
    Cause,
    /// The cause, its note and its commands.
    Whole,
}

/// The groups of a page, with the lines of each.
struct PageBody<'a> {
    view: &'a AdviceView<'a>,
    groups: &'a [CauseGroup<'a>],
    blocks: &'a [CauseBlock],
}

impl PageBody<'_> {
    /// Selects the part of each group for a body of at most `room` rows: first the cause of every
    /// group, then commands.
    fn fitting_parts(&self, room: usize) -> Vec<ShownPart> {
        let whole = vec![ShownPart::Whole; self.groups.len()];
        if self.rows(&self.lines(&whole)) <= room {
            return whole;
        }

        let mut parts = vec![ShownPart::Nothing; self.groups.len()];
        let mut left = room.saturating_sub(self.answers().count());
        let mut taken = Vec::new();
        for (at, part) in self.parts_by_priority() {
            let (needed, added) = match part {
                ShownPart::Whole => (ShownPart::Cause, self.blocks[at].details()),
                _ => (ShownPart::Nothing, vec![self.blocks[at].cause.clone()]),
            };
            let rows = self.rows(&added);
            if rows <= left && parts[at] == needed {
                left -= rows;
                taken.push((at, needed));
                parts[at] = part;
            }
        }
        // The notes on parts that are not shown need rows, too.
        while self.rows(&self.lines(&parts)) > room
            && let Some((at, before)) = taken.pop()
        {
            parts[at] = before;
        }
        parts
    }

    /// Lists the parts of all groups, the most important first: the first cause of each answer, with
    /// its command if that is all a user has to do, then the other causes, and then the other
    /// commands. Among causes, those with the most jobs come first. Among commands, those to type
    /// now come first.
    fn parts_by_priority(&self) -> Vec<(usize, ShownPart)> {
        let firsts: Vec<usize> = self.answers().map(|range| range.start).collect();
        let mut causes: Vec<usize> = (0..self.groups.len()).collect();
        causes.sort_by_key(|at| (!firsts.contains(at), Reverse(self.groups[*at].jobs.len())));
        let mut commands = causes.clone();
        commands.retain(|&at| !self.blocks[at].commands.is_empty());
        commands.sort_by_key(|&at| !has_command_for_now(&self.groups[at]));

        // Without a command to type, the page would answer, but not help.
        let answers = causes.drain(..firsts.len()).collect::<Vec<usize>>();
        let is_done_by_command = |at: &usize| {
            let action = self.groups[*at].action;
            matches!(action, HoldAction::Release | HoldAction::Remove)
        };
        let (first_commands, commands): (Vec<usize>, Vec<usize>) = commands
            .into_iter()
            .partition(|at| firsts.contains(at) && is_done_by_command(at));

        let parts = |groups: Vec<usize>, part| groups.into_iter().map(move |at| (at, part));
        parts(answers, ShownPart::Cause)
            .chain(parts(first_commands, ShownPart::Whole))
            .chain(parts(causes, ShownPart::Cause))
            .chain(parts(commands, ShownPart::Whole))
            .collect()
    }

    /// The index ranges of groups with the same answer.
    fn answers(&self) -> impl Iterator<Item = Range<usize>> {
        let alike = self.groups.chunk_by(|a, b| answer_of(a) == answer_of(b));
        alike.scan(0, |begin, groups| {
            let range = *begin..*begin + groups.len();
            *begin = range.end;
            Some(range)
        })
    }

    /// The lines that show `parts`, with notes on what they leave out.
    fn lines(&self, parts: &[ShownPart]) -> Vec<PageLine> {
        let mut lines = Vec::new();
        for range in self.answers() {
            lines.push(heading_line(&self.groups[range.clone()]));
            for at in range.clone() {
                match parts[at] {
                    ShownPart::Nothing => {}
                    ShownPart::Cause => lines.push(self.blocks[at].cause.clone()),
                    ShownPart::Whole => {
                        lines.push(self.blocks[at].cause.clone());
                        lines.extend(self.blocks[at].details());
                    }
                }
            }
            let alike = &self.groups[range.clone()];
            lines.extend(hidden_groups_line(self.view, alike, &parts[range]));
        }
        lines.extend(self.hidden_commands_line(parts));
        lines
    }

    /// The number of rows of `lines` at the width of the page.
    fn rows(&self, lines: &[PageLine]) -> usize {
        let rows_of = |line: &PageLine| {
            output::columns_of(&line.text)
                .div_ceil(self.view.width)
                .max(1)
        };
        lines.iter().map(rows_of).sum()
    }

    /// The note on shown causes whose commands are not shown.
    fn hidden_commands_line(&self, parts: &[ShownPart]) -> Option<PageLine> {
        let is_cut = |(part, block): (&ShownPart, &CauseBlock)| {
            *part == ShownPart::Cause && !block.commands.is_empty()
        };
        let count = parts
            .iter()
            .zip(self.blocks)
            .filter(|cut| is_cut(*cut))
            .count();
        if count == 0 {
            return None;
        }
        let call = call_words(self.view);
        let text = format!(
            "commands of {}: {call}--all",
            output::counted(count, "cause")
        );
        Some(PageLine::of(LineColour::Dim, text))
    }
}

/// Returns true if the group has a command to type now, and not only once a fault is fixed.
fn has_command_for_now(group: &CauseGroup<'_>) -> bool {
    match group.action {
        HoldAction::Release | HoldAction::Probe | HoldAction::Remove => true,
        HoldAction::Fix => group.raise.is_some(),
        HoldAction::Later | HoldAction::Leave | HoldAction::None => false,
    }
}

/// The command that gives the same advice again, with a blank after it; empty if there is none.
fn call_words(view: &AdviceView<'_>) -> String {
    let call = view.call.as_deref();
    call.map_or(String::new(), |call| format!("{call} "))
}

/// The note on the groups in `alike` that are not shown, with the options that show them.
fn hidden_groups_line(
    view: &AdviceView<'_>,
    alike: &[CauseGroup<'_>],
    parts: &[ShownPart],
) -> Option<PageLine> {
    let mut causes = Vec::new();
    let mut jobs = 0;
    let is_hidden = |part: &ShownPart| *part == ShownPart::Nothing;
    for (group, _) in alike.iter().zip(parts).filter(|(_, part)| is_hidden(part)) {
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
    let call = call_words(view);
    let exact = format!("{count}: {call}--cause {}", causes.join(","));
    let text = if output::columns_of(&exact) <= MAX_COMMAND_LINES * view.width {
        exact
    } else {
        let action = alike[0].action.word();
        format!("{count}, among {call}--action {action} --all")
    };
    Some(PageLine::of(LineColour::Dim, text))
}
