//! The part on the trials of a sweep: figures on the search, and a table of all trials.

use anyhow::Result;

use super::document::{Figure, MissingInput, ReportBlock, ReportPart, ReportTable};
use super::failure_tables::{failed_jobs, failed_trials};
use super::inputs::{ReportInputs, ReportedKind};
use super::loss_curves::loss_figures;
use super::parameter_figures::parameter_blocks;
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::rung_figure::rung_figure;
use super::scale::Scale;
use super::trial_table::trial_table;
use super::words;
use poolcast_config::Goal;

/// Maximum number of trials with a dot.
const MAX_DOTS: usize = 1000;

/// Maximum number of failed programs whose last lines are shown.
const MAX_LOG_TAILS: usize = 3;

/// Makes the part.
///
/// # Errors
/// Fails if a file exists but is not valid.
pub(super) fn sweep_part(inputs: &ReportInputs) -> Result<ReportPart> {
    let mut blocks = Vec::new();
    blocks.extend(rest_notice(inputs).map(|text| ReportBlock::Notice { text }));

    blocks.extend(best_so_far(inputs).map(ReportBlock::figure));
    blocks.extend(parameter_blocks(inputs));
    blocks.extend(rung_figure(inputs).map(ReportBlock::figure));
    blocks.extend(loss_figures(inputs).into_iter().map(ReportBlock::figure));
    blocks.extend(failed_trials(inputs).map(ReportBlock::Table));
    blocks.extend(log_tails(inputs));
    if !inputs.trials.is_empty() {
        blocks.push(ReportBlock::Table(trial_table(inputs)));
    }
    if blocks.is_empty() {
        blocks.push(ReportBlock::Missing(nothing_tried(inputs)));
    }
    blocks.extend(failed_jobs(inputs).map(ReportBlock::Table));
    Ok(ReportPart {
        id: "sweep",
        title: match inputs.kind {
            ReportedKind::Run => "Training",
            _ => "Trials",
        },
        blocks,
    })
}

/// Returns the last lines of the output of the first programs that failed. They may contain names,
/// so an anonymous report omits them.
fn log_tails(inputs: &ReportInputs) -> Vec<ReportBlock> {
    let failed = inputs
        .trials
        .iter()
        .filter(|trial| !trial.log_tail.is_empty());
    let shown = if inputs.is_anonymous {
        0
    } else {
        MAX_LOG_TAILS
    };
    let lines = |trial: &ReportedTrial| ReportBlock::Lines {
        title: format!("The last lines of trial {}", trial.trial),
        text: words::shown_lines(&(trial.log_tail.join("\n") + "\n")),
    };
    failed.take(shown).map(lines).collect()
}

/// Returns a notice about trials that have not ended, if others have.
fn rest_notice(inputs: &ReportInputs) -> Option<String> {
    let (ended, planned) = (inputs.trials.len(), inputs.planned);
    if ended == 0 {
        return None;
    }
    if inputs.is_running() {
        return Some(format!(
            "{ended} of {planned} trials have ended. This page shows the results so far."
        ));
    }
    (ended < planned && inputs.kind == ReportedKind::Dag).then(|| {
        format!(
            "The DAG has ended with {ended} of {planned} trials. This page shows their results."
        )
    })
}

fn nothing_tried(inputs: &ReportInputs) -> MissingInput {
    let dir = inputs.dir_argument();
    let (text, command) = match inputs.kind {
        ReportedKind::Run => ("This run has no history of epochs.", None),
        ReportedKind::Sweep => (
            "No trial has ended yet. To run the trials:",
            Some(format!("poolcast sweep run {dir}")),
        ),
        ReportedKind::Dag if !inputs.is_running() => (
            "The DAG has ended, and none of its trials has. For details:",
            Some(format!("poolcast sweep status {dir}")),
        ),
        ReportedKind::Dag => (
            "No trial has ended yet. To see the progress of the DAG:",
            Some(format!("poolcast sweep status {dir}")),
        ),
    };
    MissingInput {
        text: text.to_owned(),
        command,
    }
}

/// Plots the best value so far over the trials.
fn best_so_far(inputs: &ReportInputs) -> Option<Figure> {
    let mut valued = Vec::new();
    for trial in &inputs.trials {
        if let Some(value) = trial.value {
            valued.push((trial.trial as f64, value));
        }
    }
    // Values of trials with different splits are not comparable.
    let splits = inputs.trials.iter().any(|trial| trial.split.is_some());
    if valued.len() < 2 || splits {
        return None;
    }

    let goal = inputs.metric().goal;
    let (table, steps) = best_steps(&valued, goal);
    let title = inputs.value_title();
    let mut plot = Plot::new(
        PlotAxis::new("trial", Scale::around(valued.iter().map(|point| point.0))),
        PlotAxis::new(title, Scale::around(valued.iter().map(|point| point.1))),
    );
    let every = valued.len().div_ceil(MAX_DOTS);
    let dots: Vec<(f64, f64)> = valued.iter().copied().step_by(every).collect();
    let name = if every > 1 {
        "some of the trials"
    } else {
        "a trial"
    };
    plot.marks.push(PlotMark::Points { points: dots });
    plot.legend(5, LegendKind::Points, name);
    plot.line(0, "the best so far", steps);
    Some(Figure {
        id: "best-so-far".to_owned(),
        title: "The best trial so far".to_owned(),
        see: format!(
            "{} is better. If the line has been flat for long, more trials of this search would improve little.",
            match goal {
                Goal::Maximize => "Higher",
                Goal::Minimize => "Lower",
            }
        ),
        drawing: plot.into(),
        table,
    })
}

/// Returns the trials that were better than all before them, as a table and as the points of a line
/// that ends at the last trial. `valued` has the number and the value of each trial.
fn best_steps(valued: &[(f64, f64)], goal: Goal) -> (ReportTable, Vec<(f64, f64)>) {
    let columns = [("trial", 0), ("best value so far", 4)];
    let mut table = ReportTable::new(
        "Each trial that was better than all previous ones",
        &columns,
    );
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for &(trial, value) in valued {
        let best = steps.last().map(|step| step.1);
        if best.is_none_or(|best| goal.is_gain(value, best, 0.0)) {
            steps.extend(best.map(|best| (trial, best)));
            steps.push((trial, value));
            table.push([(trial as usize).into(), value.into()]);
        }
    }

    let last = valued.last().zip(steps.last());
    steps.extend(last.map(|(&(trial, _), &(_, best))| (trial, best)));
    (table, steps)
}
