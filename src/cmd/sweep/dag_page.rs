//! Renders the status of a DAG as a page for people.

use std::collections::BTreeMap;

use super::dag_status::{DagStatus, FailedTrial, HeldNode};
use super::status_page::{StateCounts, StatusPage, bar};

use poolcast_base::live_screen::ScreenLine;
use poolcast_base::output::{LineColour, PageLine};
use poolcast_base::{escape, output};
use poolcast_holds::decision::{HoldAction, code_meaning, code_rule};
use poolcast_sweep::condor::{DagProgress, NodeCounts};

/// Renders `status` for a window that is `columns` wide.
pub(super) fn dag_page(status: &DagStatus, held: &[HeldNode], columns: usize) -> StatusPage {
    let mut head = Vec::new();
    let mut plain = |text: &str| {
        for line in text.lines() {
            for part in output::wrapped(line, columns) {
                head.push(vec![PageLine::plain(part)]);
            }
        }
    };
    match &status.nodes {
        None => plain(NOT_BEGUN),
        Some(nodes) => plain(&state_text(nodes, status.silent_s)),
    }
    plain(&trials_text(status));
    plain(&best_text(status));
    plain(&pace_text(status));
    if let Some(nodes) = &status.nodes {
        head.extend(step_bars(&nodes.steps, columns));
    }

    let mut rows = Vec::new();
    let mut coloured = |colour: LineColour, text: &str| {
        for line in text.lines() {
            for part in output::wrapped(line, columns) {
                rows.push(vec![PageLine::of(colour, part)]);
            }
        }
    };
    coloured(LineColour::Yellow, &held_text(held));
    coloured(LineColour::Red, &node_failures_text(status));
    coloured(LineColour::Red, &trial_failures_text(status));

    StatusPage {
        text: status_text(status) + &held_text(held),
        state: state_line(status, held),
        remaining: match pace_text(status).trim_end() {
            "" => String::new(),
            text => format!("; {text}"),
        },
        is_over: status.nodes.as_ref().is_some_and(DagProgress::is_over),
        head,
        rows,
    }
}

const NOT_BEGUN: &str = "DAGMan has not started\n";

/// The whole status except the held nodes, for output that is printed once.
fn status_text(status: &DagStatus) -> String {
    let mut text = match &status.nodes {
        None => NOT_BEGUN.to_owned(),
        Some(nodes) => state_text(nodes, status.silent_s) + &step_table(&nodes.steps),
    };
    text += &node_failures_text(status);
    text += &trials_text(status);
    text += &trial_failures_text(status);
    text += &best_text(status);
    text + &pace_text(status)
}

/// The state in one line: the counts and the best trial.
fn state_line(status: &DagStatus, held: &[HeldNode]) -> String {
    let mut text = match &status.nodes {
        None => "DAGMan has not started".to_owned(),
        Some(nodes) => whole_state(nodes).to_owned(),
    };
    for (step, counts) in status.nodes.iter().flat_map(|nodes| &nodes.steps) {
        let all = node_count(counts);
        text += &format!(", {} {}/{all}", escape::value(step), counts.done);
    }
    text += &format!("; {}", trials_text(status).trim_end());
    if !held.is_empty() {
        text += &format!("; {} on hold", output::counted(held.len(), "node"));
    }
    match best_text(status).trim_end() {
        "" => text,
        best => format!("{text}; {best}"),
    }
}

fn node_failures_text(status: &DagStatus) -> String {
    let mut text = String::new();
    for (node, why) in &status.failures {
        text += &format!("  {} failed: {}\n", escape::value(node), escape::value(why));
    }
    text
}

fn trials_text(status: &DagStatus) -> String {
    let failed = status.failed.len();
    let rest = status.trials.saturating_sub(status.done + failed);
    format!(
        "{}: {} done, {failed} failed, {rest} remaining\n",
        output::counted(status.trials, "trial"),
        status.done
    )
}

fn trial_failures_text(status: &DagStatus) -> String {
    let mut text = String::new();
    for FailedTrial { trial, error } in &status.failed {
        text += &format!("  trial {trial} failed: {}\n", escape::value(error));
    }
    text
}

fn best_text(status: &DagStatus) -> String {
    let best = status.best.as_ref().map(|best| {
        format!(
            "best: trial {} with {} {:.4}\n",
            best.trial,
            status.metric.judged_name(),
            best.value
        )
    });
    best.unwrap_or_default()
}

fn pace_text(status: &DagStatus) -> String {
    let pace = &status.pace;
    let (Some(rate), Some((low, high))) = (pace.rate_per_hour, pace.remaining_range_s) else {
        return String::new();
    };
    let span = |seconds: f64| output::time_span((1000.0 * seconds) as i64);
    format!(
        "{} an hour, {} to {} remain\n",
        output::counted(rate.round() as usize, "trial"),
        span(low),
        span(high)
    )
}

/// Silence after which DAGMan counts as not running, in seconds. It writes its status twice a
/// minute.
const MAX_SILENCE_S: u64 = 300;

/// The state of the DAG as a whole.
fn whole_state(nodes: &DagProgress) -> &'static str {
    if nodes.is_done {
        "the DAG is done"
    } else if nodes.was_removed {
        "the DAG was removed from the queue; submit it again to continue from its rescue file"
    } else if nodes.has_failed {
        "the DAG has failed; submit it again to continue from there"
    } else {
        "the DAG is running"
    }
}

/// Describes the state of the DAG, as DAGMan reports it.
fn state_text(nodes: &DagProgress, silent_s: Option<u64>) -> String {
    let mut text = whole_state(nodes).to_owned();
    if !nodes.is_over() && nodes.held > 0 {
        text += &format!(", and waits for held jobs: {}", nodes.held);
    }
    text.push('\n');
    if let Some(silent_s) = silent_s {
        text += &format!("as of {} ago\n", output::time_span(1000 * silent_s as i64));
        if silent_s >= MAX_SILENCE_S {
            text += "DAGMan does not report: `condor_q -nobatch` shows whether it is in the queue. If it is not, submit the DAG\n\
                     again; if it is, `condor_rm` its job first. It continues from its rescue file\n";
        }
    }
    if nodes.waits_for_nothing() {
        text += "all jobs are done, but DAGMan has not ended: if this persists, `condor_rm` its job and submit the DAG again; it\n\
                 continues from its rescue file\n";
    }
    text
}

/// A table of the nodes of each step: done, at work, waiting and failed.
fn step_table(steps: &BTreeMap<String, NodeCounts>) -> String {
    let head = ["", "done", "running", "waiting", "failed"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (step, counts) in steps {
        rows.push(vec![
            step.clone(),
            counts.done.to_string(),
            counts.at_work.to_string(),
            counts.waiting.to_string(),
            (counts.failed + counts.futile).to_string(),
        ]);
    }
    output::aligned_table(&rows)
}

fn node_count(counts: &NodeCounts) -> usize {
    counts.done + counts.at_work + counts.waiting + counts.failed + counts.futile
}

/// A progress bar for each step, with the number of nodes done.
fn step_bars(steps: &BTreeMap<String, NodeCounts>, columns: usize) -> Vec<ScreenLine> {
    let longest = steps.keys().map(|step| output::columns_of(step)).max();
    let name_width = longest.unwrap_or(0).min(16);
    let mut lines = Vec::new();
    for (step, counts) in steps {
        let all = node_count(counts);
        let state = StateCounts {
            done: counts.done,
            at_work: counts.at_work,
            waiting: counts.waiting,
            failed: counts.failed + counts.futile,
        };
        let name = output::cut(step, name_width.max(3));
        let share = format!(" {}/{all}", counts.done);
        let width = columns.saturating_sub(name_width + 1 + share.len());
        let name = output::left_aligned(&name, name_width);
        let mut line = vec![PageLine::plain(format!("{name} "))];
        line.extend(bar(state, width));
        line.push(PageLine::plain(share));
        lines.push(line);
    }
    if !lines.is_empty() {
        let legend = "# done  x failed  = running  . waiting";
        lines.push(vec![PageLine::of(LineColour::Dim, legend)]);
    }
    lines
}

/// Lists the held nodes, with the reason and the advice for each.
fn held_text(held: &[HeldNode]) -> String {
    let mut text = String::new();
    for HeldNode { node, code } in held {
        let node = escape::value(node);
        text += &match code {
            None => format!("  {node} is held\n"),
            Some((code, subcode)) => format!(
                "  {node} is held: {code}/{subcode} {}\n    {}\n",
                code_meaning(*code, *subcode),
                code_advice(*code, *subcode)
            ),
        };
    }
    text
}

/// Advice for a job held with this code, derived from the code alone.
fn code_advice(code: i32, subcode: i32) -> String {
    let Some(rule) = code_rule(code, subcode) else {
        return "`condor_q -hold` shows the details; use `condor_release` once the cause is fixed"
            .to_owned();
    };
    let action = match rule.action {
        HoldAction::Release | HoldAction::Probe => "release it",
        HoldAction::Later => "release it later",
        HoldAction::Fix => "fix it first",
        HoldAction::Remove => "remove it",
        HoldAction::Leave => "leave it",
        HoldAction::None => "no advice",
    };
    format!("{action}: {}", rule.why())
}
