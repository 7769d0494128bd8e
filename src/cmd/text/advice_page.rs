//! The page of advice: of few causes, a line for each with the commands for all its jobs; of more, the things that
//! these jobs are held for.

use super::advice::{AdviceView, action_colour, odds_words, owner_cell};
use super::things_page::{age_words, thing_notes, things_page};
use poolcast_advice::{
    CauseGroup, HeldCommand, HeldGrouping, HeldThing, JobLook, cause_groups, elsewhere_words,
    fitting_cause, held_things, lack_words, removal_words, state_words,
};
use poolcast_base::escape;
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_cli::JobOrder;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, answer_words};

/// Maximum number of nodes of a DAG that are named.
const MAX_NAMED_NODES: usize = 6;

/// Maximum number of owners that the title of a thing names.
const MAX_NAMED_OWNERS: usize = 10;

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

/// The page of a view.
pub(in crate::cmd) struct AdvicePage<'v, 'a> {
    view: &'v AdviceView<'a>,
    causes: Vec<CauseGroup<'a>>,
    things: Vec<HeldThing<'a>>,
}

impl<'v, 'a> AdvicePage<'v, 'a> {
    pub(in crate::cmd) fn new(view: &'v AdviceView<'a>) -> AdvicePage<'v, 'a> {
        let causes = cause_groups(&view.chosen);
        let mut things = held_things(&causes, view.grouping);
        match view.sort {
            JobOrder::Since => things.sort_by_key(|thing| thing.held_since_ms),
            JobOrder::Odds => things.sort_by(|a, b| b.best_odds().total_cmp(&a.best_odds())),
            JobOrder::Action | JobOrder::Id | JobOrder::Owner | JobOrder::Code => {}
        }
        AdvicePage {
            view,
            causes,
            things,
        }
    }

    /// The things that the page numbers, in the order of their numbers; empty if it states each cause in full.
    pub(in crate::cmd) fn numbered_things(&self) -> &[HeldThing<'a>] {
        if self.is_of_few_causes() || self.view.opened.is_some() {
            return &[];
        }
        &self.things
    }

    /// All things, in the order of the page.
    pub(super) fn things(&self) -> &[HeldThing<'a>] {
        &self.things
    }

    fn is_of_few_causes(&self) -> bool {
        let kinds = self.causes.iter().filter(|cause| !cause.is_like_last);
        self.view.grouping == HeldGrouping::Thing && kinds.count() <= MAX_CAUSES_IN_FULL
    }

    /// The lines of the page, which leaves `below` rows of a terminal for what follows.
    pub(in crate::cmd) fn lines(&self, below: usize) -> Vec<PageLine> {
        let view = self.view;
        if view.chosen.is_empty() {
            return view.head();
        }
        if let Some(number) = view.opened {
            let titles = self
                .things
                .iter()
                .flat_map(|thing| title_lines(view, number, thing));
            let mut lines: Vec<PageLine> = titles.collect();
            lines.extend(self.table(&self.causes));
            lines.extend(view.outdated_lines());
            let call = view.call.as_ref();
            let commands =
                call.map(|call| format!("{call} --commands  prints the commands for all"));
            lines.extend(commands.map(PageLine::plain));
            return lines;
        }
        if self.is_of_few_causes() {
            let mut lines = view.head();
            lines.extend(self.table(&self.causes));
            lines.extend(view.outdated_lines());
            return lines;
        }

        let mut lines = things_page(view, &self.things, below);
        if view.shows_all {
            for (thing, number) in self.things.iter().zip(1..) {
                lines.push(PageLine::plain(""));
                lines.extend(title_lines(view, number, thing));
                lines.extend(self.table(&cause_groups(&thing.members)));
            }
            lines.extend(view.outdated_lines());
        }
        lines
    }

    /// The table of `causes`, with the commands of each.
    fn table(&self, causes: &[CauseGroup<'a>]) -> Vec<PageLine> {
        let view = self.view;
        let columns = PageColumns::from_width(view.width);
        let names = PageLine::of(LineColour::Dim, columns.names(view));
        let mut lines = vec![PageLine::plain(""), names];
        for alike in causes.chunk_by(|a, b| answer_of(a) == answer_of(b)) {
            lines.push(heading_line(alike));
            for cause in alike {
                lines.extend(cause_lines(view, &columns, cause, self.is_of_few_causes()));
            }
        }
        lines
    }
}

/// The title of the thing with `number`: its jobs, owners and answers.
fn title_lines(view: &AdviceView<'_>, number: usize, thing: &HeldThing<'_>) -> Vec<PageLine> {
    let title = format!(
        "#{number} {}: {} in {}, held for {}, the first since {}",
        thing.thing,
        output::counted(thing.jobs, "job"),
        output::counted(thing.clusters, "cluster"),
        age_words(thing.held_for_ms),
        output::utc_time(thing.held_since_ms)
    );
    let mut lines = view.wrapped(LineColour::Plain, &title);
    let named = thing.owners.iter().take(MAX_NAMED_OWNERS);
    let mut owners: Vec<String> = named
        .map(|one| {
            format!(
                "{} {}",
                escape::value(one.owner),
                output::with_commas(one.jobs as u64)
            )
        })
        .collect();
    if thing.owners.len() > owners.len() {
        owners.push(format!("+{}", thing.owners.len() - owners.len()));
    }
    let owners = (!owners.is_empty()).then(|| format!("owners: {}", owners.join(", ")));
    for words in owners.into_iter().chain(thing_notes(view, thing)) {
        lines.extend(view.wrapped(LineColour::Dim, &words));
    }
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

/// The lines of `group`, with its commands. If `is_in_full`, nothing that its line and its notes say is cut.
fn cause_lines(
    view: &AdviceView<'_>,
    columns: &PageColumns,
    group: &CauseGroup<'_>,
    is_in_full: bool,
) -> Vec<PageLine> {
    let mut lines = vec![cause_line(view, columns, group)];
    if is_in_full && !group.is_like_last {
        lines.extend(cause_in_full(view, columns, group));
    }
    lines.extend(note_lines(view, group, is_in_full));
    let place = group.place.as_ref().filter(|_| is_in_full);
    lines.extend(place.iter().flat_map(|place| folded(view, &place.words())));
    if is_in_full && !group.dag_nodes.is_empty() {
        lines.extend(folded(view, &nodes_words(group)));
    }

    let avoid = place.and_then(|place| Some((place.avoid_words(), place.avoid.as_ref()?)));
    let removal = group.removal.as_ref().filter(|_| is_in_full);
    let removal_words = format!("{}: ", removal_words(group.then.is_some()));
    let mut commands: Vec<(&str, &HeldCommand)> = avoid.into_iter().collect();
    commands.extend(group_commands(group));
    commands.extend(removal.map(|removal| (removal_words.as_str(), removal)));
    for (words, command) in &commands {
        let command = fitting_command(view, group, command);
        lines.push(PageLine::plain(format!("    {words}{command}")));
    }
    if commands.is_empty() && (group.stated.is_none() || group.action == HoldAction::Probe) {
        let why = group.why_no_command();
        lines.extend(why.iter().flat_map(|why| folded(view, why)));
    }
    lines.extend(memory_lines(view, group));
    lines.extend(probe_lines(view, group));
    lines
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
    let name = group.state_of.as_deref().unwrap_or_default();
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
