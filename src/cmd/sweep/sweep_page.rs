//! Renders the status of a sweep by workers as a page for people.

use super::status_page::{StateCounts, StatusPage, bar, spark_line};
use poolcast_base::escape;
use poolcast_base::live_screen::ScreenLine;
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_queue::Dispatch;
use poolcast_sweep::{RunningTrial, SweepStatus, TrialFailure};

/// Maximum and minimum width of a spark line, in characters.
const MAX_SPARK_WIDTH: usize = 40;
const MIN_SPARK_WIDTH: usize = 8;

/// Renders `status` for a window that is `columns` wide.
pub(super) fn sweep_page(status: &SweepStatus, columns: usize) -> StatusPage {
    let counts = state_counts(status);
    let mut head = vec![count_line(status.trials, counts), bar(counts, columns)];
    let mut plain = |text: String| head.push(vec![PageLine::plain(text)]);
    if !status.failed.is_empty() {
        let kinds = status.failed.iter();
        let kinds: Vec<String> = kinds.map(|(how, count)| format!("{how} {count}")).collect();
        plain(format!("failed: {}", kinds.join(", ")));
    }
    failure_lines(status).into_iter().for_each(&mut plain);
    best_line(status).into_iter().for_each(&mut plain);
    rate_line(status).into_iter().for_each(&mut plain);
    manager_line(status).into_iter().for_each(&mut plain);
    for text in held_back_lines(status) {
        head.push(vec![PageLine::of(LineColour::Yellow, text)]);
    }
    if !status.running.is_empty() {
        head.push(Vec::new());
    }

    StatusPage {
        text: status_text(status),
        state: state_text(status),
        remaining: remaining_text(status).map_or(String::new(), |text| format!("; {text}")),
        is_over: status.is_over,
        head,
        rows: running_lines(&status.running, columns),
    }
}

fn state_counts(status: &SweepStatus) -> StateCounts {
    StateCounts {
        done: status.done,
        at_work: status.running.len(),
        waiting: status.ready,
        failed: status.failed.values().sum(),
    }
}

/// The counts, each with its mark in the bar.
fn count_line(trials: usize, counts: StateCounts) -> ScreenLine {
    let count = |mark: char, count: usize, what: &str| {
        format!("{mark} {} {what}", output::with_commas(count as u64))
    };
    vec![
        PageLine::plain(format!("{}: ", output::counted(trials, "trial"))),
        PageLine::of(LineColour::Green, count('#', counts.done, "done")),
        PageLine::plain("  "),
        PageLine::of(LineColour::Red, count('x', counts.failed, "failed")),
        PageLine::plain("  "),
        PageLine::of(LineColour::Yellow, count('=', counts.at_work, "running")),
        PageLine::plain("  "),
        PageLine::of(LineColour::Dim, count('.', counts.waiting, "ready")),
    ]
}

/// The number of trials in each state, in one line.
fn counts_text(status: &SweepStatus) -> String {
    let counts = state_counts(status);
    format!(
        "{}: {} done, {} failed, {} running, {} ready",
        output::counted(status.trials, "trial"),
        counts.done,
        counts.failed,
        counts.at_work,
        counts.waiting
    )
}

/// The counts and the best trial, in one line.
fn state_text(status: &SweepStatus) -> String {
    let mut text = counts_text(status);
    if let Some(best) = best_line(status) {
        text += &format!("; {best}");
    }
    text
}

fn best_line(status: &SweepStatus) -> Option<String> {
    let best = status.best.as_ref()?;
    Some(format!(
        "best: trial {} with {} {}",
        best.trial,
        status.metric.title(),
        status.metric.value_text(best.value)
    ))
}

/// The first failures of a program, one line each.
fn failure_lines(status: &SweepStatus) -> Vec<String> {
    let line = |failure: &TrialFailure| {
        format!(
            "  trial {}: {}",
            failure.trial,
            escape::value(&failure.error)
        )
    };
    status.failures.iter().map(line).collect()
}

fn rate_line(status: &SweepStatus) -> Option<String> {
    let rate = status.rate_per_hour?;
    let rate = output::counted(rate.round() as usize, "trial");
    Some(format!("{rate} an hour, {}", remaining_text(status)?))
}

/// The remaining time, as a range if one is known.
fn remaining_text(status: &SweepStatus) -> Option<String> {
    let span = |seconds: f64| output::time_span((1000.0 * seconds) as i64);
    let about = span(status.remaining_s?);
    Some(match status.remaining_range_s {
        Some((low, high)) if span(low) != span(high) => {
            format!("{} to {} remain", span(low), span(high))
        }
        _ => format!("{about} remain"),
    })
}

fn manager_line(status: &SweepStatus) -> Option<String> {
    let manager = status.manager.as_ref()?;
    Some(format!(
        "managed by {}, heartbeat {}",
        manager.worker,
        age_text(manager.heartbeat_s)
    ))
}

/// The reasons why no trial is started, one line each.
fn held_back_lines(status: &SweepStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if status.is_paused {
        lines.push("paused: workers claim no trial until `poolcast sweep resume`".to_owned());
    }
    let best = status.best.as_ref();
    let is_at_target = best.is_some_and(|best| status.metric.is_reached_by(best.value));
    let place = match is_at_target {
        true => "at the target of the metric",
        false => "on its W&B page",
    };
    let asked = match status.hand_out {
        Dispatch::Open => return lines,
        _ if status.is_over => format!(
            "stopped {place}: {} of them were not started",
            output::with_commas(status.unmade as u64)
        ),
        Dispatch::Paused => {
            "paused on its W&B page: workers claim no trial until it is resumed there, or by `poolcast sweep resume`"
                .to_owned()
        }
        Dispatch::Stopped => format!("stopped {place}: it ends with the running trials"),
        Dispatch::Cancelled => {
            "cancelled on its W&B page: running trials end with their results so far".to_owned()
        }
    };
    lines.push(asked);
    lines
}

/// The whole status, for output that is printed once.
fn status_text(status: &SweepStatus) -> String {
    let mut text = counts_text(status) + "\n";
    for line in held_back_lines(status) {
        text.push_str(&format!("{line}\n"));
    }
    for (how, count) in &status.failed {
        text.push_str(&format!("  failed, {how}: {count}\n"));
    }
    for line in failure_lines(status) {
        text.push_str(&format!("{line}\n"));
    }
    for line in [best_line(status), rate_line(status), manager_line(status)] {
        text.extend(line.map(|line| format!("{line}\n")));
    }
    text.push_str(&running_table(&status.running));
    text
}

const RUNNING_COLUMNS: [&str; 7] = [
    "running",
    "attempt",
    "epoch",
    "value",
    "for",
    "heartbeat",
    "worker",
];

/// A table of the running trials, one line each; empty if there are none.
fn running_table(running: &[RunningTrial]) -> String {
    if running.is_empty() {
        return String::new();
    }
    let mut rows = vec![RUNNING_COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(running.iter().map(|trial| trial_cells(trial).to_vec()));
    output::aligned_table(&rows)
}

/// The running trials for a window that is `columns` wide, with the losses as spark lines before
/// the worker.
fn running_lines(running: &[RunningTrial], columns: usize) -> Vec<ScreenLine> {
    if running.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![RUNNING_COLUMNS.map(str::to_owned)];
    rows.extend(running.iter().map(trial_cells));
    let width_of = |column: usize| {
        rows.iter()
            .map(|row| output::columns_of(&row[column]))
            .max()
    };
    let widths: Vec<usize> = (0..6).map(|column| width_of(column).unwrap_or(0)).collect();
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let worker_width = width_of(6).unwrap_or(0) + 2;
    // A narrow window drops the names of the workers first.
    let has_workers = used + MIN_SPARK_WIDTH + worker_width <= columns;
    let room = columns.saturating_sub(used + if has_workers { worker_width } else { 0 });
    let spark_width = room.clamp(MIN_SPARK_WIDTH, MAX_SPARK_WIDTH);

    let mut lines = Vec::new();
    let is_utf8 = output::is_utf8();
    for (at, row) in rows.iter().enumerate() {
        let mut text = output::left_aligned(&row[0], widths[0]);
        for column in 1..6 {
            text += "  ";
            text += &output::right_aligned(&row[column], widths[column]);
        }
        let (spark, colour) = match at.checked_sub(1) {
            None => ("loss".to_owned(), LineColour::Dim),
            Some(at) => (
                spark_line(&running[at].losses, spark_width, is_utf8),
                LineColour::Plain,
            ),
        };
        text += &format!("  {spark:<spark_width$}");
        if has_workers {
            text += &format!("  {}", row[6]);
        }
        lines.push(vec![PageLine::of(colour, text.trim_end())]);
    }
    lines
}

fn trial_cells(running: &RunningTrial) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let epochs = running.epoch.map(|epoch| match running.budget {
        // A program reports as often as it likes.
        budget if epoch > budget => epoch.to_string(),
        budget => format!("{epoch}/{budget}"),
    });
    let value = running.value.map(|value| format!("{value:.4}"));
    let run_time = running
        .seconds
        .map(|seconds| output::time_span((1000.0 * seconds) as i64));
    [
        format!("trial {}", running.trial),
        running.attempt.to_string(),
        or_dash(epochs),
        or_dash(value),
        or_dash(run_time),
        age_text(running.by.heartbeat_s),
        running.by.worker.clone(),
    ]
}

fn age_text(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |seconds| {
        format!("{} ago", output::time_span((1000.0 * seconds) as i64))
    })
}
