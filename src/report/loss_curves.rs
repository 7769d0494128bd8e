//! The epochs of the best trials → curves of their losses and of the value that the sweep chooses by,
//! with the epochs that were kept.

use std::path::PathBuf;

use super::document::{Figure, ReportCell, ReportTable};
use super::inputs::{ReportInputs, ReportedKind};
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::scale::Scale;
use super::words;
use crate::sweep;
use crate::training::{Epoch, read_history};

/// So many of the best trials have a curve of their own.
const BEST_TRIALS: usize = 10;

/// So many epochs of a trial are drawn.
const MOST_EPOCHS: usize = 2000;

/// The look of the best, of its training loss, and of the others.
const BEST_LOOK: usize = 0;
const TRAIN_LOOK: usize = 1;
const OTHER_LOOK: usize = 5;

/// A trial with its epochs.
struct TrialCurve {
    trial: usize,
    epochs: Vec<Epoch>,
}

impl TrialCurve {
    fn losses(&self) -> Vec<(f64, f64)> {
        let point = |epoch: &Epoch| (epoch.epoch as f64, epoch.validation_loss);
        self.epochs.iter().map(point).collect()
    }

    /// The epoch whose weights were kept: the last that was the best so far.
    fn kept(&self) -> Option<&Epoch> {
        self.epochs.iter().rfind(|epoch| epoch.is_best)
    }
}

/// The curves; none where no network was trained.
pub(super) fn loss_figures(inputs: &ReportInputs) -> Vec<Figure> {
    let mut figures = Vec::new();
    let curves = best_curves(inputs);
    if let Some(best) = curves.first() {
        figures.push(best_figure(best, inputs.kind));
    }
    if curves.len() > 1 {
        figures.push(losses_figure(&curves));
    }
    figures.extend(values_figure(inputs));
    figures
}

/// The epochs of the best networks, the best first.
fn best_curves(inputs: &ReportInputs) -> Vec<TrialCurve> {
    let mut places: Vec<(usize, PathBuf)> = Vec::new();
    if inputs.kind == ReportedKind::Run {
        places.push((1, inputs.dir.clone()));
    }
    let ranked = inputs.ranked_trials();
    let networks = ranked.iter().filter(|trial| trial.epochs.is_some());
    for trial in networks.take(BEST_TRIALS) {
        places.push((trial.trial, sweep::trial_dir(&inputs.dir, trial.trial)));
    }

    let mut curves = Vec::new();
    for (trial, dir) in places {
        // What a trial was cleaned of, or is being written, is not shown.
        let Ok(mut epochs) = read_history(&dir) else {
            continue;
        };
        epochs.truncate(MOST_EPOCHS);
        if !epochs.is_empty() {
            curves.push(TrialCurve { trial, epochs });
        }
    }
    curves
}

fn best_figure(best: &TrialCurve, kind: ReportedKind) -> Figure {
    let trained: Vec<(f64, f64)> = best
        .epochs
        .iter()
        .map(|epoch| (epoch.epoch as f64, epoch.train_loss))
        .collect();
    let validated = best.losses();
    let both = trained.iter().chain(&validated);
    let mut plot = epochs_plot("loss", both.copied());
    plot.line(TRAIN_LOOK, "training loss", trained);
    plot.line(BEST_LOOK, "validation loss", validated);
    add_kept_epochs(&mut plot, std::iter::once(best));

    let columns = [
        ("epoch", 0),
        ("training loss", 4),
        ("validation loss", 4),
        ("ROC-AUC", 4),
    ];
    let mut table = ReportTable::new("Each epoch", &columns);
    for epoch in &best.epochs {
        table.push([
            epoch.epoch.into(),
            epoch.train_loss.into(),
            epoch.validation_loss.into(),
            epoch.validation.roc_auc.into(),
        ]);
    }

    let of_which = match kind {
        ReportedKind::Run => "this run".to_owned(),
        _ => format!("trial {}, the best network", best.trial),
    };
    let kept = best.kept().map_or(0, |epoch| epoch.epoch);
    Figure {
        id: "loss-of-best".to_owned(),
        title: "Loss of the best network by epoch".to_owned(),
        see: format!(
            "Of {of_which}. Where the training loss falls and the validation loss rises, the network learns its samples by heart. The weights of epoch {kept} were kept."
        ),
        plot,
        table,
    }
}

/// The validation losses of the best trials.
fn losses_figure(curves: &[TrialCurve]) -> Figure {
    let all = curves.iter().flat_map(TrialCurve::losses);
    let mut plot = epochs_plot("validation loss", all);
    for (at, curve) in curves.iter().enumerate().rev() {
        plot.marks.push(PlotMark::Line {
            look: if at == 0 { BEST_LOOK } else { OTHER_LOOK },
            trial: Some(curve.trial),
            points: curve.losses(),
        });
    }
    plot.legend(
        BEST_LOOK,
        LegendKind::Line,
        &format!("trial {}, the best network", curves[0].trial),
    );
    plot.legend(OTHER_LOOK, LegendKind::Line, "the others");
    add_kept_epochs(&mut plot, curves.iter());

    let mut names = vec!["epoch".to_owned()];
    names.extend(curves.iter().map(|curve| format!("trial {}", curve.trial)));
    let columns: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 4)).collect();
    let mut table = ReportTable::new("The validation loss after each epoch", &columns);
    let longest = curves.iter().map(|curve| curve.epochs.len()).max();
    for at in 0..longest.unwrap_or(0) {
        let mut row: Vec<ReportCell> = vec![(at + 1).into()];
        for curve in curves {
            row.push(
                curve
                    .epochs
                    .get(at)
                    .map(|epoch| epoch.validation_loss)
                    .into(),
            );
        }
        table.rows.push(row);
    }
    Figure {
        id: "losses".to_owned(),
        title: format!("Validation loss of the best {} networks", curves.len()),
        see: "Curves that still fall at their end would gain from more epochs. Choose a trial in the table below to see its curve."
            .to_owned(),
        plot,
        table,
    }
}

/// The value that the sweep chooses by after each epoch: the best trials as curves, all networks as a
/// band.
fn values_figure(inputs: &ReportInputs) -> Option<Figure> {
    let ranked = inputs.ranked_trials();
    let networks: Vec<&ReportedTrial> = ranked
        .into_iter()
        .filter(|trial| !trial.values.is_empty())
        .collect();
    if networks.len() < 2 {
        return None;
    }

    let bands = value_bands(&networks);
    let best = &networks[..networks.len().min(BEST_TRIALS)];
    let points = best.iter().flat_map(|trial| value_points(trial));
    let ends = bands
        .iter()
        .flat_map(|band| [(band.0, band.1), (band.0, band.2)]);
    let title = words::metric_title(inputs.metric().name);
    let mut plot = epochs_plot(title, points.chain(ends));
    plot.band(
        OTHER_LOOK,
        "from the lowest to the highest of all networks",
        bands.clone(),
    );
    for (at, trial) in best.iter().enumerate().rev() {
        plot.marks.push(PlotMark::Line {
            look: if at == 0 { BEST_LOOK } else { OTHER_LOOK },
            trial: Some(trial.trial),
            points: value_points(trial),
        });
    }
    name_curves(&mut plot, best);

    let stopped: Vec<(f64, f64)> = networks
        .iter()
        .filter(|trial| trial.is_terminated)
        .filter_map(|trial| value_points(trial).last().copied())
        .collect();
    if !stopped.is_empty() {
        plot.dots(3, "terminated early, as others did better", stopped);
    }
    Some(Figure {
        id: "values".to_owned(),
        title: format!("The {title} by epoch"),
        see: format!(
            "{} is better. The band has all {} networks; a band that is still widening speaks for more epochs.",
            match words::better_word(inputs.metric().goal) {
                "higher" => "Higher",
                _ => "Lower",
            },
            networks.len()
        ),
        plot,
        table: value_table(&bands, best),
    })
}

/// Names the curves of the `best` networks in the legend.
fn name_curves(plot: &mut Plot, best: &[&ReportedTrial]) {
    let first = format!("trial {}, the best network", best[0].trial);
    plot.legend(BEST_LOOK, LegendKind::Line, &first);
    if best.len() > 1 {
        let others = format!("the next {}", best.len() - 1);
        plot.legend(OTHER_LOOK, LegendKind::Line, &others);
    }
}

fn value_points(trial: &ReportedTrial) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (at, value) in trial.values.iter().enumerate() {
        points.push(((at + 1) as f64, value.unwrap_or(f64::NAN)));
    }
    points
}

/// The least and the largest value after each epoch.
fn value_bands(trials: &[&ReportedTrial]) -> Vec<(f64, f64, f64)> {
    let longest = trials.iter().map(|trial| trial.values.len()).max();
    let mut bands = Vec::new();
    for at in 0..longest.unwrap_or(0) {
        let values = trials.iter().filter_map(|trial| *trial.values.get(at)?);
        let finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = finite.iter().copied().min_by(f64::total_cmp);
        let largest = finite.iter().copied().max_by(f64::total_cmp);
        if let Some((least, largest)) = least.zip(largest) {
            bands.push(((at + 1) as f64, least, largest));
        }
    }
    bands
}

fn value_table(bands: &[(f64, f64, f64)], best: &[&ReportedTrial]) -> ReportTable {
    let mut names = vec![
        "epoch".to_owned(),
        "lowest".to_owned(),
        "highest".to_owned(),
    ];
    names.extend(best.iter().map(|trial| format!("trial {}", trial.trial)));
    let columns: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 4)).collect();
    let mut table = ReportTable::new("The value after each epoch", &columns);
    for &(epoch, low, high) in bands {
        let mut row: Vec<ReportCell> = vec![(epoch as usize).into(), low.into(), high.into()];
        for trial in best {
            row.push(
                trial
                    .values
                    .get(epoch as usize - 1)
                    .copied()
                    .flatten()
                    .into(),
            );
        }
        table.rows.push(row);
    }
    table
}

fn epochs_plot(label: &str, points: impl Iterator<Item = (f64, f64)>) -> Plot {
    let points: Vec<(f64, f64)> = points.collect();
    let epochs = Scale::around(points.iter().map(|point| point.0));
    let values = Scale::around(points.iter().map(|point| point.1));
    Plot::new(PlotAxis::new("epoch", epochs), PlotAxis::new(label, values))
}

/// Marks the epochs whose weights were kept.
fn add_kept_epochs<'a>(plot: &mut Plot, curves: impl Iterator<Item = &'a TrialCurve>) {
    let mut points = Vec::new();
    for kept in curves.filter_map(TrialCurve::kept) {
        points.push((kept.epoch as f64, kept.validation_loss));
    }
    plot.dots(3, "the epoch that was kept", points);
}
