//! The trials of a sweep that ends some early → which of them each rung stopped.

use super::document::{Figure, ReportTable};
use super::inputs::ReportInputs;
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::scale::Scale;
use poolcast_config::EarlyTerminate;
use poolcast_base::output;

/// So many trials of a rung are named.
const MOST_NAMED: usize = 30;

/// The looks of trials that went on and of those that were stopped.
const GONE_ON: usize = 0;
const STOPPED: usize = 1;

/// What came of the trials at a rung.
struct Rung {
    /// After so many epochs.
    epochs: usize,
    /// How many trials have come to it.
    reached: usize,
    /// The trials that ended there as others did better, in order.
    stopped: Vec<usize>,
}

/// The rungs; `None` where the sweep has none, or where no network has come to one.
pub(super) fn rung_figure(inputs: &ReportInputs) -> Option<Figure> {
    let rungs = filled_rungs(inputs)?;
    if rungs.iter().all(|rung| rung.reached == 0) {
        return None;
    }

    let mut names = Vec::new();
    let mut gone_on = Vec::new();
    let mut stopped = Vec::new();
    let columns = [
        ("after epoch", 0),
        ("trials that came to it", 0),
        ("went on", 0),
        ("ended there", 0),
        ("which", 0),
    ];
    let mut table = ReportTable::new("Each rung", &columns);
    for (at, rung) in rungs.iter().enumerate() {
        let row = at as f64;
        let on = rung.reached.saturating_sub(rung.stopped.len());
        names.push(format!("epoch {}", rung.epochs));
        gone_on.push([(0.0, row - 0.3), (on as f64, row + 0.3)]);
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
    for (look, name, boxes) in [
        (GONE_ON, "went on", gone_on),
        (STOPPED, "ended there, as others did better", stopped),
    ] {
        plot.marks.push(PlotMark::Boxes { look, boxes });
        plot.legend(look, LegendKind::Boxes, name);
    }
    Some(Figure {
        id: "rungs".to_owned(),
        title: "What each rung stopped".to_owned(),
        see: "At a rung, a trial that is behind the others ends. The longer the second part of a bar, the more epochs were saved there."
            .to_owned(),
        drawing: plot.into(),
        table,
    })
}

/// The rungs of the sweep with what came of its networks.
fn filled_rungs(inputs: &ReportInputs) -> Option<Vec<Rung>> {
    let config = &inputs.config;
    let early_terminate = config.wandb.sweep.early_terminate.as_ref()?;
    let epochs = match early_terminate {
        EarlyTerminate::Hyperband(hyperband) => hyperband.bands(),
        EarlyTerminate::Asha(asha) => asha.rungs(config.epochs),
    };
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
        let Some(gone) = trial.epochs else {
            continue;
        };
        let came_to = rungs.partition_point(|rung| rung.epochs <= gone);
        for rung in &mut rungs[..came_to] {
            rung.reached += 1;
        }
        if let Some(last) = came_to.checked_sub(1)
            && (trial.is_terminated || is_promoted_by_rungs && is_left(trial, rungs[last].epochs))
        {
            rungs[last].stopped.push(trial.trial);
        }
    }
    Some(rungs)
}

/// Whether a trial that was given so many epochs has gone through them, and was given no more.
fn is_left(trial: &ReportedTrial, epochs: usize) -> bool {
    trial.budget == epochs && trial.epochs == Some(epochs)
}

/// Numbers of trials, the first of many.
fn named_trials(trials: &[usize]) -> String {
    let named: Vec<String> = trials
        .iter()
        .take(MOST_NAMED)
        .map(usize::to_string)
        .collect();
    let rest = trials.len() - named.len();
    let mut text = named.join(", ");
    if rest > 0 {
        text += &format!(" and {} more", output::with_commas(rest as u64));
    }
    text
}
