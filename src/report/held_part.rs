//! The first part of the report: the held jobs by cause, with the advised actions and commands.

use std::cmp::Reverse;

use super::document::{HeldCause, MissingInput, ReportBlock, ReportPart, ReportTable};
use super::held_jobs::HeldJobs;
use super::inputs::ReportInputs;
use super::page::MAX_OPEN_CAUSES;
use super::words;
use poolcast_advice::{
    CauseGroup, FailedThing, HeldCommand, HeldGrouping, HeldThing, JobAdvice, cause_groups,
    held_things, lack_words, state_words,
};
use poolcast_base::output;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, code_meaning};
use poolcast_holds::rehearsal::Proportion;

/// Maximum number of named jobs per cause. Commands name all jobs.
const MAX_NAMED_JOBS: usize = 5;

/// Maximum number of named owners per thing.
const MAX_NAMED_OWNERS: usize = 2;

/// Bytes of a time up to its minute.
const MINUTE_LENGTH: usize = 16;

/// One hour, in ms.
const HOUR_MS: f64 = 3_600_000.0;

/// Maximum number of causes that are shown.
const MAX_CAUSES: usize = 200;

/// Makes the part of a report on `inputs`.
pub(super) fn held_part(inputs: &ReportInputs, held: Option<&HeldJobs>) -> ReportPart {
    match held {
        Some(held) => held_jobs_part(held, inputs.is_anonymous),
        None => part_of(vec![ReportBlock::Missing(why_missing(inputs))]),
    }
}

/// Makes the part on `held`, without names if `is_anonymous`.
pub(super) fn held_jobs_part(held: &HeldJobs, is_anonymous: bool) -> ReportPart {
    part_of(held_blocks(held, is_anonymous))
}

fn part_of(blocks: Vec<ReportBlock>) -> ReportPart {
    ReportPart {
        id: "held",
        title: "Held jobs: what to do",
        blocks,
    }
}

/// Says why the report on `inputs` has no held jobs.
fn why_missing(inputs: &ReportInputs) -> MissingInput {
    let (text, command) = if inputs.is_over_waits() {
        let text = "The models predict waits in a Slurm queue, which has no held jobs.";
        (text, None)
    } else if inputs.config.data.is_given() {
        let text = "The models learn from tables, which have no held jobs.";
        (text, None)
    } else {
        let text = "The held jobs cannot be shown: there is no model yet, or the model or the events of the log are not in this directory, or were made by another version of poolcast. To print the advice:";
        let command = format!("poolcast advise {} --log LOG", inputs.dir_argument());
        (text, Some(command))
    };
    MissingInput {
        text: text.to_owned(),
        command,
    }
}

fn held_blocks(held: &HeldJobs, is_anonymous: bool) -> Vec<ReportBlock> {
    let jobs = held.advice.len();
    if jobs == 0 {
        return vec![ReportBlock::paragraph(
            "No job is held at the end of the log.",
        )];
    }

    let chosen: Vec<&JobAdvice> = held.advice.iter().collect();
    let mut groups = cause_groups(&chosen);
    let things = held_things(&groups, HeldGrouping::Thing);
    groups.sort_by_key(|group| {
        let place = things.iter().position(|thing| thing.thing == group.thing);
        (place, Reverse(group.jobs.len()))
    });
    let mut blocks = vec![
        ReportBlock::paragraph(counts_sentence(&held.advice)),
        ReportBlock::paragraph(format!(
            "Each box is one cause with one command for all its jobs. Nothing is released or removed until a user runs the command.{}",
            firm_words(held)
        )),
    ];
    for caveat in &held.basis.caveats {
        if !is_anonymous {
            blocks.push(ReportBlock::Notice {
                text: words::shown(caveat),
            });
        }
    }

    let mut causes = Vec::new();
    for group in groups.iter().take(MAX_CAUSES) {
        causes.push(held_cause(group, is_anonymous));
    }
    if causes.len() > MAX_OPEN_CAUSES {
        let table = thing_table(&things, is_anonymous);
        blocks.push(ReportBlock::Table(table));
    }
    blocks.push(ReportBlock::Causes { causes });
    if groups.len() > MAX_CAUSES {
        let more = groups.len() - MAX_CAUSES;
        blocks.push(ReportBlock::paragraph(format!(
            "Not shown: {}.",
            output::counted(more, "cause")
        )));
    }
    blocks
}

/// Says how often firm answers were right when the log was replayed; empty if it was not.
fn firm_words(held: &HeldJobs) -> String {
    let firm_right = held.basis.rehearsed.map(|skill| skill.firm_right);
    let share = firm_right.and_then(Proportion::share);
    share.map_or_else(String::new, |share| {
        format!(
            " Rehearsed on this log, answers without the word \"probably\" or \"possibly\" were right in {:.0} % of cases.",
            100.0 * share
        )
    })
}

/// Makes a table with one row per thing, like the page of the verb `advise`, without names if `is_anonymous`.
fn thing_table(things: &[HeldThing<'_>], is_anonymous: bool) -> ReportTable {
    let columns = [
        ("#", 0),
        ("jobs", 0),
        ("sum, %", 0),
        ("what to do", 0),
        ("thing", 0),
        ("owners", 0),
        ("clusters", 0),
        ("held for, h", 1),
        ("last failure, UTC", 0),
    ];
    let mut table = ReportTable::new("What failed, by jobs that commands move", &columns);
    table.is_sortable = true;
    let all: usize = things.iter().map(|thing| thing.jobs).sum();
    let mut sum = 0;
    for (thing, number) in things.iter().zip(1_usize..) {
        sum += thing.jobs;
        let failure = thing.state.map(|state| state.last_failure_ms);
        table.push([
            number.into(),
            thing.jobs.into(),
            (100.0 * sum as f64 / all as f64).into(),
            thing.answer_cells().join(", ").into(),
            thing_words(thing, is_anonymous).into(),
            owner_words(thing, is_anonymous).into(),
            thing.clusters.into(),
            (thing.held_for_ms as f64 / HOUR_MS).into(),
            failure.map(minute).into(),
        ]);
    }
    table
}

/// A time in UTC, to the minute.
fn minute(ms: i64) -> String {
    let time = output::utc_time(ms);
    time.get(..MINUTE_LENGTH).unwrap_or(&time).to_owned()
}

fn thing_words(thing: &HeldThing<'_>, is_anonymous: bool) -> String {
    let kind = thing.failed.as_ref().map(FailedThing::without_name);
    match kind.filter(|_| is_anonymous) {
        Some(kind) => kind.to_string(),
        None => words::shown(&thing.thing),
    }
}

/// Names the owners of the most jobs with their numbers, or else counts the owners.
fn owner_words(thing: &HeldThing<'_>, is_anonymous: bool) -> String {
    let count = thing.owners.len();
    if is_anonymous || count == 0 {
        return output::with_commas(count as u64);
    }
    let named = thing.owners.iter().take(MAX_NAMED_OWNERS);
    let mut owners: Vec<String> = named
        .map(|one| {
            let jobs = output::with_commas(one.jobs as u64);
            format!("{} {jobs}", words::shown(one.owner))
        })
        .collect();
    if count > owners.len() {
        owners.push(format!("+{}", count - owners.len()));
    }
    owners.join(", ")
}

/// Says how many jobs get each action.
fn counts_sentence(advice: &[JobAdvice]) -> String {
    let mut counts = Vec::new();
    for action in HoldAction::COUNTED {
        let jobs = advice
            .iter()
            .filter(|one| one.verdict.action == action)
            .count();
        if jobs > 0 {
            let jobs = output::with_commas(jobs as u64);
            counts.push(format!("{jobs} to {}", count_words(action)));
        }
    }
    format!(
        "{} at the end of the log: {}.",
        output::counted(advice.len(), "held job"),
        counts.join(", ").replace("to without", "without")
    )
}

fn count_words(action: HoldAction) -> &'static str {
    match action {
        HoldAction::Release => "release",
        HoldAction::Probe => "try one",
        HoldAction::Later => "release later",
        HoldAction::Fix => "fix first",
        HoldAction::Remove => "remove",
        HoldAction::Leave => "leave held",
        HoldAction::None => "without advice",
    }
}

fn action_words(action: HoldAction) -> &'static str {
    match action {
        HoldAction::Release => "release as it is",
        HoldAction::Probe => "release one or two, then ask again",
        HoldAction::Later => "release later",
        HoldAction::Fix => "fix, then release",
        HoldAction::Remove => "remove",
        HoldAction::Leave => "leave held",
        HoldAction::None => "no advice",
    }
}

fn held_cause(group: &CauseGroup<'_>, is_anonymous: bool) -> HeldCause {
    let is_named = !is_anonymous;
    let mut members = group.members.iter();
    let like_cases = members.find_map(|advice| advice.forecast.like_cases.as_deref());
    let first_jobs = group.jobs.iter().take(MAX_NAMED_JOBS);
    let named = |command: &Option<HeldCommand>| {
        let command = command.as_ref().filter(|_| is_named);
        command.map(ToString::to_string)
    };
    HeldCause {
        action: action_words(group.action),
        is_probable: group.firmness == Some(AnswerFirmness::Probable),
        is_possible: group.firmness == Some(AnswerFirmness::Possible),
        code: format!("{}/{}", group.hold_code, group.hold_subcode),
        meaning: code_meaning(group.hold_code, group.hold_subcode),
        cause: is_named.then(|| words::shown(&group.words)),
        jobs: group.jobs.len(),
        clusters: group.clusters,
        first_jobs: first_jobs
            .filter(|_| is_named)
            .map(ToString::to_string)
            .collect(),
        odds: group.odds,
        base_rate: like_cases.map(|cases| (cases.successes, cases.holds)),
        note: cause_note(group, is_named),
        held_since_ms: group.held_since_ms,
        command: named(&group.command),
        then: named(&group.then),
    }
}

/// The note on a cause: why its jobs are not released, or else the state of the thing that failed,
/// with its name if `is_named`.
fn cause_note(group: &CauseGroup<'_>, is_named: bool) -> Option<String> {
    if group.lacks_outcomes {
        return Some(lack_words());
    }
    if group.action == HoldAction::Probe && group.command.is_none() && is_named {
        return group.why_no_command().map(|why| words::shown(&why));
    }
    let state = group.state?;
    let words = state_words(state, &output::utc_time(state.last_failure_ms));
    Some(match &group.state_of {
        Some(thing) if is_named => format!("{}: {words}", words::shown(thing)),
        _ => words,
    })
}
