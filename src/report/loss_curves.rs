//! Curves over the epochs: losses and metric values of the best trials, with the kept epochs. The
//! other trials are shown as bands.

use std::path::PathBuf;

use super::document::{Figure, ReportCell, ReportTable};
use super::inputs::{ReportInputs, ReportedKind};
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::scale::Scale;
use super::words;
use poolcast_config::MetricName;
use poolcast_holds::training::{Epoch, read_history};
use poolcast_sweep as sweep;

/// Number of best trials with their own curve.
const BEST_TRIALS: usize = 10;

/// Maximum number of epochs of a trial that are drawn.
const MAX_EPOCHS: usize = 2000;

/// Styles of the best trial, of its training loss, and of the other trials.
const BEST_STYLE: usize = 0;
const TRAIN_STYLE: usize = 1;
const OTHER_STYLE: usize = 5;

/// Style of the middle half of the remaining trials.
const QUARTILE_STYLE: usize = 2;

/// A trial and its epochs.
struct TrialCurve {
    trial: usize,
    epochs: Vec<Epoch>,
}

impl TrialCurve {
    fn losses(&self) -> Vec<(f64, f64)> {
        let point = |epoch: &Epoch| (epoch.epoch as f64, epoch.validation_loss);
        self.epochs.iter().map(point).collect()
    }

    /// The epoch whose weights were kept: the last epoch that was the best so far.
    fn kept(&self) -> Option<&Epoch> {
        self.epochs.iter().rfind(|epoch| epoch.is_best)
    }
}

/// Makes the figures of curves; none if no network was trained.
pub(super) fn loss_figures(inputs: &ReportInputs) -> Vec<Figure> {
    let mut figures = Vec::new();
    let curves = best_curves(inputs);
    if let Some(best) = curves.first() {
        figures.push(best_figure(best, inputs.kind));
    }
    // If the sweep optimizes the loss, the figure of values already shows the losses.
    let is_chosen_by = inputs.metric().name == MetricName::ValidationLoss;
    if curves.len() > 1 && !is_chosen_by {
        figures.push(losses_figure(&curves));
    }
    figures.extend(values_figure(inputs));
    figures
}

/// Reads the epochs of the best networks, from best to worst.
fn best_curves(inputs: &ReportInputs) -> Vec<TrialCurve> {
    let mut dirs: Vec<(usize, PathBuf)> = Vec::new();
    if inputs.kind == ReportedKind::Run {
        dirs.push((1, inputs.dir.clone()));
    }
    let ranked = inputs.ranked_trials();
    let networks = ranked.iter().filter(|trial| trial.epochs.is_some());
    for trial in networks.take(BEST_TRIALS) {
        dirs.push((trial.trial, sweep::trial_dir(&inputs.dir, trial.trial)));
    }

    let mut curves = Vec::new();
    for (trial, dir) in dirs {
        // Skip trials whose files were removed or are being written.
        let Ok(mut epochs) = read_history(&dir) else {
            continue;
        };
        epochs.truncate(MAX_EPOCHS);
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
    plot.line(TRAIN_STYLE, "training loss", trained);
    plot.line(BEST_STYLE, "validation loss", validated);
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

    let subject = match kind {
        ReportedKind::Run => "this run".to_owned(),
        _ => format!("trial {}, the best network", best.trial),
    };
    let kept = best.kept().map_or(0, |epoch| epoch.epoch);
    Figure {
        id: "loss-of-best".to_owned(),
        title: "Loss of the best network by epoch".to_owned(),
        see: format!(
            "Of {subject}. Where the training loss falls while the validation loss rises, the network overfits. The weights of epoch {kept} were kept."
        ),
        drawing: plot.into(),
        table,
    }
}

/// Plots the validation losses of the best trials.
fn losses_figure(curves: &[TrialCurve]) -> Figure {
    let all = curves.iter().flat_map(TrialCurve::losses);
    let mut plot = epochs_plot("validation loss", all);
    // Draw the best curve last, above the others.
    for (at, curve) in curves.iter().enumerate().rev() {
        plot.marks.push(PlotMark::Line {
            style_id: if at == 0 { BEST_STYLE } else { OTHER_STYLE },
            trial: Some(curve.trial),
            points: curve.losses(),
        });
    }
    plot.legend(
        BEST_STYLE,
        LegendKind::Line,
        &format!("trial {}, the best network", curves[0].trial),
    );
    plot.legend(OTHER_STYLE, LegendKind::Line, "the others");
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
        see: "Curves that still fall at their end would benefit from more epochs. Click on a trial in the table below to highlight its curve."
            .to_owned(),
        drawing: plot.into(),
        table,
    }
}

/// Plots the value of the sweep's metric after each epoch: curves of the best trials, and bands of
/// the others.
fn values_figure(inputs: &ReportInputs) -> Option<Figure> {
    let mut networks = inputs.ranked_trials();
    networks.retain(|trial| !trial.values.is_empty());
    if networks.len() < 2 {
        return None;
    }

    let (best, rest) = networks.split_at(networks.len().min(BEST_TRIALS));
    let bands = value_bands(rest);
    let points = best.iter().flat_map(|trial| value_points(trial));
    let ends = bands.iter().flat_map(|band| {
        [
            (band.epoch, band.extremes[0]),
            (band.epoch, band.extremes[1]),
        ]
    });
    let title = words::metric_title(inputs.metric());
    let mut plot = epochs_plot(&title, points.chain(ends));
    if !rest.is_empty() {
        let name = format!("the other {}, minimum to maximum", rest.len());
        plot.band(OTHER_STYLE, &name, band_ends(&bands, |band| band.extremes));
        let name = "the interquartile range of these";
        plot.band(
            QUARTILE_STYLE,
            name,
            band_ends(&bands, |band| band.quartiles),
        );
    }
    // Draw the best curve last, above the others.
    for (at, trial) in best.iter().enumerate().rev() {
        plot.marks.push(PlotMark::Line {
            style_id: if at == 0 { BEST_STYLE } else { OTHER_STYLE },
            trial: Some(trial.trial),
            points: value_points(trial),
        });
    }
    name_curves(&mut plot, best);
    mark_ends(&mut plot, best);

    Some(Figure {
        id: "values".to_owned(),
        title: format!("The {title} by epoch"),
        see: format!(
            "{} is better. Curves that still improve at their end would benefit from more epochs.{}",
            match words::better_word(inputs.metric().goal) {
                "higher" => "Higher",
                _ => "Lower",
            },
            if rest.is_empty() {
                ""
            } else {
                " An interquartile range far from the best curves means that most of the search was spent on poor trials."
            }
        ),
        drawing: plot.into(),
        table: value_table(&bands, best),
    })
}

/// Marks the kept epochs, and the epochs at which curves ended early.
fn mark_ends(plot: &mut Plot, best: &[&ReportedTrial]) {
    let mut kept = Vec::new();
    let mut stopped = Vec::new();
    let mut terminated = Vec::new();
    for trial in best {
        let points = value_points(trial);
        let of_kept = trial
            .kept_epoch
            .and_then(|epoch| points.get(epoch.checked_sub(1)?));
        kept.extend(of_kept.copied());
        if trial.is_stopped {
            stopped.extend(points.last().copied());
        }
        if trial.is_terminated {
            terminated.extend(points.last().copied());
        }
    }
    for (style_id, name, points) in [
        (3, "kept epoch", kept),
        (1, "stopped early: no more improvement", stopped),
        (4, "terminated early: other trials were better", terminated),
    ] {
        if !points.is_empty() {
            plot.dots(style_id, name, points);
        }
    }
}

/// Adds the curves of the `best` networks to the legend.
fn name_curves(plot: &mut Plot, best: &[&ReportedTrial]) {
    let first = format!("trial {}, the best network", best[0].trial);
    plot.legend(BEST_STYLE, LegendKind::Line, &first);
    if best.len() > 1 {
        let others = format!("the next {}", best.len() - 1);
        plot.legend(OTHER_STYLE, LegendKind::Line, &others);
    }
}

fn value_points(trial: &ReportedTrial) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (at, value) in trial.values.iter().enumerate() {
        points.push(((at + 1) as f64, value.unwrap_or(f64::NAN)));
    }
    points
}

/// The distribution of the values of many networks after one epoch.
struct ValueBand {
    epoch: f64,
    /// Minimum and maximum.
    extremes: [f64; 2],
    /// Lower and upper quartile.
    quartiles: [f64; 2],
}

/// Computes the distribution of the values of `trials` after each epoch that at least one of them
/// has reached.
fn value_bands(trials: &[&ReportedTrial]) -> Vec<ValueBand> {
    let longest = trials.iter().map(|trial| trial.values.len()).max();
    let mut bands = Vec::new();
    for at in 0..longest.unwrap_or(0) {
        let values = trials.iter().filter_map(|trial| *trial.values.get(at)?);
        let mut finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        if let (Some(minimum), Some(maximum)) = (finite.first(), finite.last()) {
            let last = finite.len() - 1;
            bands.push(ValueBand {
                epoch: (at + 1) as f64,
                extremes: [*minimum, *maximum],
                quartiles: [finite[last / 4], finite[last - last / 4]],
            });
        }
    }
    bands
}

fn band_ends(bands: &[ValueBand], ends: fn(&ValueBand) -> [f64; 2]) -> Vec<(f64, f64, f64)> {
    let mut points = Vec::new();
    for band in bands {
        let [low, high] = ends(band);
        points.push((band.epoch, low, high));
    }
    points
}

fn value_table(bands: &[ValueBand], best: &[&ReportedTrial]) -> ReportTable {
    let mut names = vec!["epoch".to_owned()];
    names.extend(best.iter().map(|trial| format!("trial {}", trial.trial)));
    if !bands.is_empty() {
        let of_rest = [
            "minimum of the others",
            "lower quartile",
            "upper quartile",
            "maximum",
        ];
        names.extend(of_rest.map(str::to_owned));
    }
    let columns: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 4)).collect();
    let mut table = ReportTable::new("The value after each epoch", &columns);

    let longest = best
        .iter()
        .map(|trial| trial.values.len())
        .max()
        .unwrap_or(0);
    let last_band = bands.last().map_or(0, |band| band.epoch as usize);
    for epoch in 1..=longest.max(last_band) {
        let mut row: Vec<ReportCell> = vec![epoch.into()];
        for trial in best {
            row.push(trial.values.get(epoch - 1).copied().flatten().into());
        }
        let band = bands.iter().find(|band| band.epoch as usize == epoch);
        if !bands.is_empty() {
            let numbers = band.map(|band| {
                [
                    band.extremes[0],
                    band.quartiles[0],
                    band.quartiles[1],
                    band.extremes[1],
                ]
            });
            let cells = numbers.map_or([const { ReportCell::Empty }; 4], |all| {
                all.map(ReportCell::from)
            });
            row.extend(cells);
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
    plot.dots(3, "kept epoch", points);
}
