//! The figure of trials that early termination stopped at each rung.

use super::document::{Figure, ReportTable};
use super::inputs::ReportInputs;
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::scale::Scale;
use poolcast_base::output;
use poolcast_sweep::config::EarlyTerminate;

/// Maximum number of trials that are named per rung.
const MAX_NAMED: usize = 30;

/// Styles of trials that went on and of trials that were stopped.
const CONTINUED_STYLE: usize = 0;
const STOPPED_STYLE: usize = 1;

/// A rung and the trials that reached it.
struct Rung {
    /// Number of epochs after which a trial reaches the rung.
    epochs: usize,
    /// Number of trials that reached it.
    reached: usize,
    /// Trials that ended there because others were better, in order.
    stopped: Vec<usize>,
}

/// Makes the figure; `None` if the sweep has no rungs or no network has reached one.
pub(super) fn rung_figure(inputs: &ReportInputs) -> Option<Figure> {
    let rungs = filled_rungs(inputs)?;
    if rungs.iter().all(|rung| rung.reached == 0) {
        return None;
    }

    let mut names = Vec::new();
    let mut continued = Vec::new();
    let mut stopped = Vec::new();
    let columns = [
        ("after epoch", 0),
        ("trials that reached it", 0),
        ("continued", 0),
        ("stopped there", 0),
        ("stopped trials", 0),
    ];
    let mut table = ReportTable::new("Each rung", &columns);
    for (at, rung) in rungs.iter().enumerate() {
        let row = at as f64;
        let on = rung.reached.saturating_sub(rung.stopped.len());
        names.push(format!("epoch {}", rung.epochs));
        continued.push([(0.0, row - 0.3), (on as f64, row + 0.3)]);
        stopped.push([(on as f64, row - 0.3), (rung.reached as f64, row + 0.3)]);
        table.push([
            rung.epochs.into(),
            rung.reached.into(),
            on.into(),
            rung.stopped.len().into(),
            named_trials(&rung.stopped).into(),
        ]);
    }

    let reached = rungs.iter().map(|rung| rung.reached as f64);
    let mut plot = Plot::new(
        PlotAxis::new("trials", Scale::from_zero(reached)),
        PlotAxis::new("rung", Scale::Words(names)),
    );
    for (style_id, name, boxes) in [
        (CONTINUED_STYLE, "continued", continued),
        (
            STOPPED_STYLE,
            "stopped there: other trials were better",
            stopped,
        ),
    ] {
        plot.marks.push(PlotMark::Boxes { style_id, boxes });
        plot.legend(style_id, LegendKind::Boxes, name);
    }
    Some(Figure {
        id: "rungs".to_owned(),
        title: "Trials stopped at each rung".to_owned(),
        see: "A trial that is worse than the others stops at a rung. The longer the second part of a bar, the more epochs were saved there."
            .to_owned(),
        drawing: plot.into(),
        table,
    })
}

/// Returns the rungs of the sweep with their trials; `None` if trials are not terminated early.
fn filled_rungs(inputs: &ReportInputs) -> Option<Vec<Rung>> {
    let config = &inputs.config;
    let early_terminate = config.wandb.sweep.early_terminate.as_ref()?;
    let epochs = match early_terminate {
        EarlyTerminate::Hyperband(hyperband) => hyperband.bands(),
        EarlyTerminate::Asha(asha) => asha.rungs(config.epochs),
    };
    // A trial ends at the maximum number of epochs anyway, so a rung there stops nothing.
    let within = |epochs: &usize| *epochs < config.epochs;
    let mut rungs: Vec<Rung> = epochs
        .into_iter()
        .filter(within)
        .map(|epochs| Rung {
            epochs,
            reached: 0,
            stopped: Vec::new(),
        })
        .collect();

    let is_promoted_by_rungs = matches!(early_terminate, EarlyTerminate::Asha(_));
    for trial in &inputs.trials {
        let Some(trained) = trial.epochs else {
            continue;
        };
        let reached = rungs.partition_point(|rung| rung.epochs <= trained);
        for rung in &mut rungs[..reached] {
            rung.reached += 1;
        }
        if let Some(last) = reached.checked_sub(1)
            && (trial.is_terminated
                || is_promoted_by_rungs && is_not_promoted(trial, rungs[last].epochs))
        {
            rungs[last].stopped.push(trial.trial);
        }
    }
    Some(rungs)
}

/// Returns true if a trial has used its whole budget of `epochs` and was given no more.
fn is_not_promoted(trial: &ReportedTrial, epochs: usize) -> bool {
    trial.budget == epochs && trial.epochs == Some(epochs)
}

/// Lists the numbers of the first trials, and how many there are more.
fn named_trials(trials: &[usize]) -> String {
    let named: Vec<String> = trials
        .iter()
        .take(MAX_NAMED)
        .map(usize::to_string)
        .collect();
    let rest = trials.len() - named.len();
    let mut text = named.join(", ");
    if rest > 0 {
        text += &format!(" and {} more", output::with_commas(rest as u64));
    }
    text
}
