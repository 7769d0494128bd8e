//! Figures that show how a trial's value depends on its hyper-parameters: importances, parallel
//! coordinates, and the value by each hyper-parameter.

use super::document::{Figure, ReportBlock, ReportCell, ReportTable};
use super::inputs::ReportInputs;
use super::parallel_plot::{ParallelLine, ParallelPlot};
use super::parameter_axis::{ParameterAxis, parameter_axes};
use super::plot::{LegendEntry, LegendKind, Plot, PlotAxis, PlotMark};
use super::reported_trial::ReportedTrial;
use super::scale::{Scale, short_number};
use super::words;
use poolcast_base::output;
use poolcast_base::stats::median;
use poolcast_pipelines::{RegressionImportances, regression_importances};

/// Minimum number of trials for which importances are shown.
const MIN_TRIALS: usize = 20;

/// Maximum number of trials from which the forest learns.
const MAX_FOREST_TRIALS: usize = 2000;

/// Maximum number of hyper-parameters with an axis, and with a plot of their own.
const MAX_AXES: usize = 11;
const MAX_PLOTS: usize = 8;

/// Maximum number of trials drawn as lines, and the number of highlighted best trials.
const MAX_LINES: usize = 300;
const BEST_LINES: usize = 10;

/// Maximum number of points in a plot of a hyper-parameter.
const MAX_POINTS: usize = 400;

/// Number of groups of a numeric hyper-parameter's values.
const GROUPS: usize = 6;

/// Styles of the best trials, of importances, and of correlations and medians.
const BEST_STYLE: usize = 0;
const FOREST_STYLE: usize = 0;
const MARKED_STYLE: usize = 3;

/// Comparable trials from best to worst, and the hyper-parameters in which they differ.
struct ComparedTrials<'a> {
    /// The kind of all trials; `None` for all kinds together.
    kind: Option<String>,
    trials: Vec<&'a ReportedTrial>,
    values: Vec<f64>,
    axes: Vec<ParameterAxis>,
    /// Sentence about omitted trials; empty if there are none.
    left_out: &'static str,
}

/// Makes the figures on hyper-parameters; none if fewer than two trials can be compared.
pub(super) fn parameter_blocks(inputs: &ReportInputs) -> Vec<ReportBlock> {
    let mut compared = ComparedTrials::new(inputs);
    if compared.trials.len() < 2 || compared.axes.is_empty() {
        return Vec::new();
    }

    let mut blocks = Vec::new();
    if compared.trials.len() < MIN_TRIALS {
        blocks.push(ReportBlock::paragraph(format!(
            "The importance of hyper-parameters is shown from {MIN_TRIALS} trials with a value on; there are {}.",
            compared.trials.len()
        )));
    } else {
        let mut importances = compared.importances(inputs.config.seed);
        compared.order_axes(&mut importances);
        blocks.push(ReportBlock::figure(importance_figure(
            &compared,
            &importances,
        )));
    }
    let panels = parallel_panels(inputs, &compared);
    for (at, panel) in panels.iter().enumerate() {
        let figure = parallel_figure(inputs, panel, at, panels.len());
        blocks.push(ReportBlock::figure(figure));
    }
    for (at, axis) in compared.axes.iter().take(MAX_PLOTS).enumerate() {
        let figure = value_figure(inputs, &compared, axis, at + 1);
        blocks.push(ReportBlock::figure(figure));
    }
    blocks
}

impl ComparedTrials<'_> {
    fn new(inputs: &ReportInputs) -> ComparedTrials<'_> {
        let mut trials = inputs.ranked_trials();
        trials.retain(|trial| trial.value.is_some());
        // Values of trials with different splits are not comparable.
        let split = trials.first().and_then(|best| best.split.clone());
        let all = trials.len();
        trials.retain(|trial| trial.split == split);
        let left_out = if trials.len() < all {
            " Only trials on the split of the best trial are shown."
        } else {
            ""
        };
        ComparedTrials::from_trials(inputs, None, trials, left_out)
    }

    fn from_trials<'a>(
        inputs: &ReportInputs,
        kind: Option<String>,
        trials: Vec<&'a ReportedTrial>,
        left_out: &'static str,
    ) -> ComparedTrials<'a> {
        ComparedTrials {
            kind,
            values: trials.iter().filter_map(|trial| trial.value).collect(),
            axes: parameter_axes(inputs, &trials),
            trials,
            left_out,
        }
    }

    /// Computes the importances of the axes in a random forest.
    fn importances(&self, seed: u64) -> RegressionImportances {
        let every = self.trials.len().div_ceil(MAX_FOREST_TRIALS);
        let some = |all: &[f64]| all.iter().copied().step_by(every).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = self
            .axes
            .iter()
            .map(|axis| some(&axis.positions()))
            .collect();
        regression_importances(&columns, &some(&self.values), seed)
    }

    /// Sorts the axes and their shares by decreasing importance.
    fn order_axes(&mut self, importances: &mut RegressionImportances) {
        let shares = importances.shares.clone();
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        self.axes = order.iter().map(|at| self.axes[*at].clone()).collect();
        importances.shares = order.iter().map(|at| shares[*at]).collect();
    }
}

/// Computes the correlation of the value with the position on an axis. Returns `None` for words
/// without an order, or if all positions or all values are equal.
fn correlation(axis: &ParameterAxis, values: &[f64]) -> Option<f64> {
    if matches!(&axis.scale, Scale::Words(words) if words.len() > 2) {
        return None;
    }
    let mut pairs = axis
        .positions()
        .into_iter()
        .zip(values.iter().copied())
        .collect::<Vec<(f64, f64)>>();
    pairs.retain(|(position, _)| position.is_finite());

    let n = pairs.len() as f64;
    let mean_position = pairs.iter().map(|pair| pair.0).sum::<f64>() / n;
    let mean_value = pairs.iter().map(|pair| pair.1).sum::<f64>() / n;
    let (mut both, mut of_positions, mut of_values) = (0.0, 0.0, 0.0);
    for (position, value) in pairs {
        let (position, value) = (position - mean_position, value - mean_value);
        both += position * value;
        of_positions += position * position;
        of_values += value * value;
    }
    let found = both / (of_positions * of_values).sqrt();
    found.is_finite().then_some(found)
}

fn importance_figure(compared: &ComparedTrials<'_>, importances: &RegressionImportances) -> Figure {
    let mut names = Vec::new();
    let mut boxes = Vec::new();
    let mut dots = Vec::new();
    let columns = [
        ("hyper-parameter", 0),
        ("importance", 3),
        ("correlation", 3),
    ];
    let mut table = ReportTable::new("Importance and correlation", &columns);
    for (at, (axis, share)) in compared.axes.iter().zip(&importances.shares).enumerate() {
        let found = correlation(axis, &compared.values);
        table.push([axis.name.clone().into(), (*share).into(), found.into()]);
        if at < MAX_AXES {
            let row = at as f64;
            names.push(axis.name.clone());
            boxes.push([(0.0, row - 0.3), (*share, row + 0.3)]);
            dots.extend(found.map(|found| (found.abs(), row)));
        }
    }

    let mut plot = Plot::new(
        PlotAxis::new(
            "importance in the forest; absolute correlation",
            Scale::share(),
        ),
        PlotAxis::new("hyper-parameter", Scale::Words(names)),
    );
    plot.marks.push(PlotMark::Boxes {
        style_id: FOREST_STYLE,
        boxes,
    });
    plot.legend(
        FOREST_STYLE,
        LegendKind::Boxes,
        "importance in a random forest",
    );
    plot.dots(MARKED_STYLE, "absolute correlation with the value", dots);
    Figure {
        id: "importance".to_owned(),
        title: "Which hyper-parameters matter".to_owned(),
        see: format!(
            "The longer a bar, the more the value of a trial depends on it. {}{}",
            trust_sentence(importances.r2),
            compared.left_out
        ),
        drawing: plot.into(),
        table,
    }
}

/// Says how reliable the importances are, by the forest's score on trials that it has not seen.
fn trust_sentence(r2: Option<f64>) -> String {
    let Some(r2) = r2 else {
        return "All trials have the same value, so no hyper-parameter matters here.".to_owned();
    };
    let trust = match r2 {
        0.6.. => "the order of the bars can be trusted",
        0.2.. => "take the order of the bars as a hint",
        _ => "do not trust the bars: chance or other causes matter more",
    };
    format!(
        "The forest explains {:.0} % of the variance between unseen trials (out-of-bag R²): {trust}.",
        100.0 * r2.max(0.0)
    )
}

/// Makes a scale of values that puts far worse values at its edge. Returns true with it if there
/// are such values.
fn value_scale(inputs: &ReportInputs, values: &[f64]) -> (Scale, bool) {
    let goal = inputs.metric().goal;
    let mut losses: Vec<f64> = values.iter().map(|value| goal.loss(*value)).collect();
    losses.sort_by(f64::total_cmp);
    let Some(best) = losses.first() else {
        return (Scale::share(), false);
    };
    // The limit is the best value plus four times its distance to the upper quartile of the losses.
    let most = losses[losses.len() * 3 / 4];
    let limit = best + 4.0 * (most - best);
    let is_near = |value: &f64| most == *best || goal.loss(*value) <= limit;
    let near: Vec<f64> = values.iter().copied().filter(is_near).collect();
    let is_cut = near.len() < values.len();
    (Scale::around(near.into_iter()), is_cut)
}

/// Explains the values at the edge, in a sentence.
fn edge_sentence(is_cut: bool) -> &'static str {
    if is_cut {
        " Values that are far worse are drawn at the edge."
    } else {
        ""
    }
}

/// Splits the trials into the panels of parallel coordinates: one for each kind, the kind of the
/// best trial first. A trial has no line across the hyper-parameters of another kind. The axes have
/// the order of `compared`.
fn parallel_panels<'a>(
    inputs: &ReportInputs,
    compared: &ComparedTrials<'a>,
) -> Vec<ComparedTrials<'a>> {
    let mut kinds: Vec<&str> = Vec::new();
    for trial in &compared.trials {
        if !kinds.contains(&trial.kind.as_str()) {
            kinds.push(&trial.kind);
        }
    }

    let mut panels = Vec::new();
    for &kind in &kinds {
        let mut trials = compared.trials.clone();
        trials.retain(|trial| trial.kind == kind);
        let name = (kinds.len() > 1).then(|| kind.to_owned());
        let mut panel = ComparedTrials::from_trials(inputs, name, trials, compared.left_out);
        let place = |axis: &ParameterAxis| {
            let mut all = compared.axes.iter();
            all.position(|known| known.name == axis.name)
        };
        panel.axes.sort_by_key(place);
        if !panel.axes.is_empty() {
            panels.push(panel);
        }
    }
    panels
}

/// Draws panel `number` of `count`.
fn parallel_figure(
    inputs: &ReportInputs,
    compared: &ComparedTrials<'_>,
    number: usize,
    count: usize,
) -> Figure {
    let axes = &compared.axes[..compared.axes.len().min(MAX_AXES)];
    let title = inputs.value_title();
    let (scale, is_cut) = value_scale(inputs, &compared.values);
    let mut plot_axes: Vec<PlotAxis> = axes
        .iter()
        .map(|axis| PlotAxis::new(output::cut(&axis.name, 50), axis.scale.clone()))
        .collect();
    plot_axes.push(PlotAxis::new(title.clone(), scale));

    // Draw the best trials last, above the others.
    let every = compared.trials.len().div_ceil(MAX_LINES);
    let mut lines = Vec::new();
    for at in (0..compared.trials.len()).rev() {
        let is_best = at < BEST_LINES;
        if is_best || at.is_multiple_of(every) {
            let mut values: Vec<Option<f64>> = axes.iter().map(|axis| axis.values[at]).collect();
            values.push(compared.trials[at].value);
            lines.push(ParallelLine {
                style_id: is_best.then_some(BEST_STYLE),
                trial: compared.trials[at].trial,
                values,
            });
        }
    }

    let legend = parallel_legend(compared.trials.len(), lines.len());
    let of_kind = compared.kind.as_ref();
    Figure {
        id: match count {
            1 => "parallel".to_owned(),
            _ => format!("parallel-{}", number + 1),
        },
        title: of_kind.map_or("What the best trials have in common".to_owned(), |kind| {
            format!("What the best trials of {kind} have in common")
        }),
        see: format!(
            "Each line is a trial, from the value of its first hyper-parameter down to its {title}; {} is better. Where the dark lines meet, the best trials agree; where they spread over a whole axis, that hyper-parameter matters little.{}{}",
            words::better_word(inputs.metric().goal),
            edge_sentence(is_cut),
            compared.left_out
        ),
        drawing: ParallelPlot {
            axes: plot_axes,
            lines,
            legend,
        }
        .into(),
        table: best_table(compared, axes, &title),
    }
}

/// Makes the legend of the lines. `drawn` of the `trials` are shown.
fn parallel_legend(trials: usize, drawn: usize) -> Vec<LegendEntry> {
    let best = trials.min(BEST_LINES);
    let mut legend = vec![LegendEntry {
        style_id: BEST_STYLE,
        kind: LegendKind::Line,
        name: format!("the best {best}"),
    }];
    if drawn > best {
        let name = if drawn < trials {
            output::counted(drawn - best, "other trial")
        } else {
            "the others".to_owned()
        };
        legend.push(LegendEntry {
            style_id: BEST_STYLE,
            kind: LegendKind::ThinLines,
            name,
        });
    }
    legend
}

/// Lists the best trials with their hyper-parameters.
fn best_table(compared: &ComparedTrials<'_>, axes: &[ParameterAxis], title: &str) -> ReportTable {
    let mut columns = vec![("trial", 0), (title, 4)];
    columns.extend(axes.iter().map(|axis| (axis.name.as_str(), 4)));
    let mut table = ReportTable::new(
        "The best trials; the table of all trials has the others",
        &columns,
    );
    for (at, trial) in compared.trials.iter().take(BEST_LINES).enumerate() {
        let mut row: Vec<ReportCell> = vec![trial.trial.into(), trial.value.into()];
        for axis in axes {
            row.push(axis_cell(axis, at));
        }
        table.rows.push(row);
    }
    table
}

fn axis_cell(axis: &ParameterAxis, at: usize) -> ReportCell {
    match (&axis.scale, axis.values[at]) {
        (_, None) => ReportCell::Empty,
        (Scale::Words(words), Some(index)) => words.get(index as usize).cloned().into(),
        (_, Some(number)) if number.fract() == 0.0 && (0.0..1e15).contains(&number) => {
            (number as usize).into()
        }
        (_, Some(number)) => number.into(),
    }
}

/// Trials with similar values of one hyper-parameter.
struct ValueGroup {
    /// Range of the values, or a word.
    name: String,
    /// Middle of the range on the scale.
    middle: f64,
    /// Values of the group's trials, from best to worst.
    values: Vec<f64>,
}

impl ValueGroup {
    fn median(&self) -> Option<f64> {
        median(&self.values)
    }
}

/// Groups the trials by their values on `axis`: one group per word, or equal ranges of the scale.
fn value_groups(axis: &ParameterAxis, values: &[f64]) -> Vec<ValueGroup> {
    let mut groups = Vec::new();
    match &axis.scale {
        Scale::Words(words) => {
            for (at, word) in words.iter().enumerate() {
                groups.push(ValueGroup {
                    name: word.clone(),
                    middle: at as f64,
                    values: Vec::new(),
                });
            }
        }
        scale => {
            for at in 0..GROUPS {
                let part = |at: f64| scale.value_at(at / GROUPS as f64);
                let (low, high) = (part(at as f64), part(at as f64 + 1.0));
                groups.push(ValueGroup {
                    name: format!("{} to {}", short_number(low), short_number(high)),
                    middle: part(at as f64 + 0.5),
                    values: Vec::new(),
                });
            }
        }
    }

    // All groups are equally wide, also groups of words, so the position determines the group.
    let count = groups.len() as f64;
    for (position, value) in axis.positions().into_iter().zip(values) {
        if position.is_finite() {
            let group = (position * count).min(count - 1.0) as usize;
            groups[group].values.push(*value);
        }
    }
    groups
}

/// Plots the value of the trials by one hyper-parameter.
fn value_figure(
    inputs: &ReportInputs,
    compared: &ComparedTrials<'_>,
    axis: &ParameterAxis,
    number: usize,
) -> Figure {
    let title = inputs.value_title();
    let caption = format!("The {title} by {}", axis.name);
    let (scale, is_cut) = value_scale(inputs, &compared.values);
    let every = compared.trials.len().div_ceil(MAX_POINTS);
    let mut points = Vec::new();
    for (x, value) in axis.values.iter().zip(&compared.values).step_by(every) {
        points.extend(x.map(|x| (x, *value)));
    }

    let groups = value_groups(axis, &compared.values);
    let median = |group: &ValueGroup| Some((group.middle, group.median()?));
    let medians = groups.iter().filter_map(median).collect();

    let mut plot = Plot::new(
        PlotAxis::new(output::cut(&axis.name, 40), axis.scale.clone()),
        PlotAxis::new(title, scale),
    );
    plot.marks.push(PlotMark::Points { points });
    let name = if every > 1 {
        "some of the trials"
    } else {
        "a trial"
    };
    plot.legend(0, LegendKind::Points, name);
    plot.dots(MARKED_STYLE, "median of similar values", medians);
    Figure {
        id: format!("value-by-{number}"),
        title: output::cut(&format!("By {}", axis.name), 60),
        see: format!(
            "{} is better. Where the diamonds are level, this hyper-parameter matters little.{}{}",
            match words::better_word(inputs.metric().goal) {
                "higher" => "Higher",
                _ => "Lower",
            },
            edge_sentence(is_cut),
            compared.left_out
        ),
        drawing: plot.into(),
        table: value_table(caption, &groups),
    }
}

/// Makes a table with one row per group of similar values.
fn value_table(caption: String, groups: &[ValueGroup]) -> ReportTable {
    let columns = [
        ("values", 0),
        ("trials", 0),
        ("best", 4),
        ("median", 4),
        ("worst", 4),
    ];
    let mut table = ReportTable::new(caption, &columns);
    for group in groups {
        table.push([
            group.name.clone().into(),
            group.values.len().into(),
            group.values.first().copied().into(),
            group.median().into(),
            group.values.last().copied().into(),
        ]);
    }
    table
}
