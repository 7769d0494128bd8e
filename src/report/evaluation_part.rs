//! The part on the best model's predictions for unseen holds, compared with their outcomes.

use std::collections::BTreeMap;

use anyhow::Result;

use super::document::{Figure, MissingInput, ReportBlock, ReportCell, ReportPart, ReportTable};
use super::inputs::{ReportInputs, ReportedKind};
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::scale::Scale;
use super::score_curves::{
    RankedSamples, at_grid, bin_shares, coverage_points, from_grid, recall_points, roc_points,
    thin_points,
};
use super::scored_samples::ScoredSamples;
use poolcast_holds::decision::code_meaning;

/// Maximum number of drawn points of a curve, and number of x positions of a band.
const MAX_POINTS: usize = 201;
const BAND_POINTS: usize = 41;

/// Bins of predicted probability, bins of time, and maximum number of hold codes.
const PROBABILITY_BINS: usize = 10;
const TIME_BINS: usize = 12;
const MAX_CODES: usize = 12;

/// Styles of the model, a baseline, uncalibrated probabilities, marked points and chance.
const MODEL_STYLE: usize = 0;
const BASELINE_STYLE: usize = 1;
const UNCALIBRATED_STYLE: usize = 2;
const MARKED_POINT_STYLE: usize = 3;
const CHANCE_STYLE: usize = 5;

/// Makes the part.
///
/// # Errors
/// Fails if a file exists but is not valid.
pub(super) fn evaluation_part(inputs: &ReportInputs) -> Result<ReportPart> {
    let blocks = match ScoredSamples::read(inputs)? {
        Some(samples) => evaluation_blocks(&samples),
        None => vec![ReportBlock::Missing(missing(inputs))],
    };
    Ok(ReportPart {
        id: "evaluation",
        title: "Quality of the predictions",
        blocks,
    })
}

fn missing(inputs: &ReportInputs) -> MissingInput {
    let dir = inputs.dir_argument();
    let (text, command) = match inputs.kind {
        _ if inputs.is_over_waits() => (
            "Waits are predicted, which have no probabilities and no thresholds to plot.",
            None,
        ),
        _ if inputs.predicts_numbers() => (
            "Numbers are predicted, which have no probabilities and no thresholds to plot; their scores are above.",
            None,
        ),
        _ if inputs.config.data.is_given() => (
            "The scores on the tables are above; there are no holds with probabilities to plot.",
            None,
        ),
        ReportedKind::Run => (
            "A run does not record where its tensors are. The report on its sweep has the curves. To print the scores:",
            Some(format!("poolcast evaluate {dir} TENSORS")),
        ),
        _ if inputs.is_running() => (
            "There is no best model yet. To see the progress of the trials:",
            Some(format!("poolcast sweep status {dir}")),
        ),
        _ if inputs.best_trial().is_none() => ("No trial has a model to evaluate.", None),
        _ => (
            "The best model or the test split of its tensors is not in this directory, or was made by another version of poolcast. To make both:",
            Some(format!("poolcast sweep run {dir}")),
        ),
    };
    MissingInput {
        text: text.to_owned(),
        command,
    }
}

fn evaluation_blocks(samples: &ScoredSamples) -> Vec<ReportBlock> {
    let mut blocks = vec![ReportBlock::paragraph(
        "All figures are about holds that are later than everything the model has learned from. Bands and error bars are 95 % intervals, from a bootstrap over whole clusters.",
    )];
    blocks.extend(roc_figure(samples).map(ReportBlock::figure));
    blocks.extend(recall_figure(samples).map(ReportBlock::figure));
    blocks.push(ReportBlock::figure(reliability_figure(samples)));
    blocks.push(ReportBlock::figure(coverage_figure(samples)));
    blocks.push(ReportBlock::figure(code_figure(samples)));
    blocks.push(ReportBlock::figure(time_figure(samples)));
    blocks.push(ReportBlock::Table(confusion_table(samples)));
    blocks
}

fn share_axis(label: &str) -> PlotAxis {
    PlotAxis::new(label, Scale::share())
}

/// Evenly spaced x positions from 0 to 1.
fn band_grid() -> Vec<f64> {
    let position = |at: usize| at as f64 / (BAND_POINTS - 1) as f64;
    (0..BAND_POINTS).map(position).collect()
}

/// Returns the points of a band: the x positions of `grid` with a known interval.
fn band_points(grid: &[f64], bands: &[Option<(f64, f64)>]) -> Vec<(f64, f64, f64)> {
    let mut points = Vec::new();
    for (x, band) in grid.iter().zip(bands) {
        if let Some((low, high)) = band {
            points.push((*x, *low, *high));
        }
    }
    points
}

fn point_table(title: &str, columns: [&str; 2], points: &[(f64, f64)]) -> ReportTable {
    let mut table = ReportTable::new(title, &columns.map(|name| (name, 4)));
    for &(x, y) in points {
        table.push([x.into(), y.into()]);
    }
    table
}

fn roc_figure(samples: &ScoredSamples) -> Option<Figure> {
    let ones = vec![1.0; samples.len()];
    let ranked = RankedSamples::new(&samples.probabilities, &samples.labels);
    let points = thin_points(&roc_points(&ranked.steps(&ones)), MAX_POINTS);
    if points.is_empty() {
        return None;
    }
    let grid = band_grid();
    let bands = samples.bands(|weights| at_grid(&roc_points(&ranked.steps(weights)), &grid));
    let by_code = RankedSamples::new(&samples.rates, &samples.labels);
    let of_rates = thin_points(&roc_points(&by_code.steps(&ones)), MAX_POINTS);

    let mut plot = Plot::new(
        share_axis("false positive rate"),
        share_axis("true positive rate"),
    );
    plot.band(MODEL_STYLE, "95 % interval", band_points(&grid, &bands));
    plot.line(CHANCE_STYLE, "random guess", vec![(0.0, 0.0), (1.0, 1.0)]);
    plot.line(BASELINE_STYLE, "rate by hold code", of_rates);
    plot.line(MODEL_STYLE, "the model", points.clone());
    Some(Figure {
        id: "roc".to_owned(),
        title: "Separation of successes and failures (ROC)".to_owned(),
        see: "The nearer a curve is to the upper left corner, the better. Where the band is above the rate by hold code, the model knows more than the code alone."
            .to_owned(),
        drawing: plot.into(),
        table: point_table(
            "The curve of the model",
            ["false positive rate", "true positive rate"],
            &points,
        ),
    })
}

fn recall_figure(samples: &ScoredSamples) -> Option<Figure> {
    let ones = vec![1.0; samples.len()];
    let ranked = RankedSamples::new(&samples.probabilities, &samples.labels);
    let points = thin_points(&recall_points(&ranked.steps(&ones)), MAX_POINTS);
    if points.is_empty() {
        return None;
    }
    // Precision is not defined at recall 0.
    let grid = &band_grid()[1..];
    let bands = samples.bands(|weights| from_grid(&recall_points(&ranked.steps(weights)), grid));
    let successes = samples.labels.iter().filter(|label| **label).count();
    let share = successes as f64 / samples.len() as f64;

    let mut plot = Plot::new(
        share_axis("share of successes found (recall)"),
        share_axis("predicted successes that succeeded (precision)"),
    );
    plot.band(MODEL_STYLE, "95 % interval", band_points(grid, &bands));
    plot.line(
        CHANCE_STYLE,
        "random guess",
        vec![(0.0, share), (1.0, share)],
    );
    plot.line(MODEL_STYLE, "the model", points.clone());
    Some(Figure {
        id: "precision-recall".to_owned(),
        title: "Precision and recall".to_owned(),
        see: "Read from the left: while the line stays high, jobs that are predicted to succeed do succeed. Further right, more successes are found, at the cost of wasted runs."
            .to_owned(),
        drawing: plot.into(),
        table: point_table("The curve of the model", ["recall", "precision"], &points),
    })
}

/// Mean predicted probability and share of successes, per probability bin.
type BinShares = Vec<(f64, f64)>;

/// The predicted probabilities in `PROBABILITY_BINS` equal bins, before and after calibration.
struct ReliabilityBins {
    /// The bin of each sample, after calibration.
    bin_of_sample: Vec<usize>,
    calibrated: BinShares,
    raw: BinShares,
    /// 95 % interval of the share of successes, per bin.
    bands: Vec<Option<(f64, f64)>>,
}

fn reliability_bins(samples: &ScoredSamples) -> ReliabilityBins {
    let ones = vec![1.0; samples.len()];
    let bin = |probability: &f64| {
        ((probability * PROBABILITY_BINS as f64) as usize).min(PROBABILITY_BINS - 1)
    };
    let after: Vec<usize> = samples.probabilities.iter().map(bin).collect();
    let before: Vec<usize> = samples.uncalibrated.iter().map(bin).collect();
    let shares = |bins: &[usize], probabilities: &[f64], weights: &[f64]| {
        bin_shares(
            bins,
            PROBABILITY_BINS,
            probabilities,
            &samples.labels,
            weights,
        )
    };
    let calibrated = shares(&after, &samples.probabilities, &ones);
    let raw = shares(&before, &samples.uncalibrated, &ones);
    let bands = samples.bands(|weights| {
        let drawn = shares(&after, &samples.probabilities, weights);
        drawn.into_iter().map(|share| share.1).collect()
    });
    ReliabilityBins {
        bin_of_sample: after,
        calibrated,
        raw,
        bands,
    }
}

impl ReliabilityBins {
    /// Returns the interval of the bin `at`, if there is one.
    fn interval(&self, at: usize) -> Option<(f64, f64)> {
        self.bands.get(at).copied().flatten()
    }

    fn table(&self) -> ReportTable {
        let columns = [
            ("probability from", 1),
            ("holds", 0),
            ("mean probability", 3),
            ("succeeded", 3),
            ("from", 3),
            ("to", 3),
            ("mean probability before calibration", 3),
            ("succeeded, binned before calibration", 3),
        ];
        let mut table = ReportTable::new("Bins of the predicted probability", &columns);
        for at in 0..PROBABILITY_BINS {
            let (low, high) = self.interval(at).unzip();
            let holds = self.bin_of_sample.iter().filter(|bin| **bin == at).count();
            table.push([
                (at as f64 / PROBABILITY_BINS as f64).into(),
                holds.into(),
                self.calibrated[at].0.into(),
                self.calibrated[at].1.into(),
                low.into(),
                high.into(),
                self.raw[at].0.into(),
                self.raw[at].1.into(),
            ]);
        }
        table
    }
}

/// Returns the bins that have samples.
fn filled_bins(shares: &BinShares) -> BinShares {
    let filled = shares.iter().filter(|share| share.0.is_finite());
    filled.copied().collect()
}

fn reliability_figure(samples: &ScoredSamples) -> Figure {
    let bins = reliability_bins(samples);
    let mut pieces = Vec::new();
    for (at, share) in bins.calibrated.iter().enumerate() {
        if let Some((low, high)) = bins.interval(at) {
            pieces.push([(share.0, low), (share.0, high)]);
        }
    }

    let mut plot = Plot::new(
        share_axis("predicted probability"),
        share_axis("share that succeeded"),
    );
    plot.line(
        CHANCE_STYLE,
        "perfect calibration",
        vec![(0.0, 0.0), (1.0, 1.0)],
    );
    plot.line(
        UNCALIBRATED_STYLE,
        "before calibration",
        filled_bins(&bins.raw),
    );
    plot.marks.push(PlotMark::Pieces {
        style_id: MODEL_STYLE,
        pieces,
    });
    let calibrated = filled_bins(&bins.calibrated);
    plot.marks.push(PlotMark::Dots {
        style_id: MODEL_STYLE,
        points: calibrated.clone(),
    });
    plot.line(
        MODEL_STYLE,
        "after calibration, with 95 % intervals",
        calibrated,
    );
    Figure {
        id: "reliability".to_owned(),
        title: "Calibration: does a prediction of 70 % succeed in 70 of 100 cases?".to_owned(),
        see: "On the diagonal it does. Below the diagonal the model is too optimistic, above it too pessimistic."
            .to_owned(),
        drawing: plot.into(),
        table: bins.table(),
    }
}

fn coverage_figure(samples: &ScoredSamples) -> Figure {
    let ones = vec![1.0; samples.len()];
    let curve = |weights: &[f64]| coverage_points(&samples.probabilities, &samples.labels, weights);
    let points = thin_points(&curve(&ones), MAX_POINTS);
    let grid = &band_grid()[2..];
    let bands = samples.bands(|weights| from_grid(&curve(weights), grid));
    let band = band_points(grid, &bands);
    let risks = points.iter().map(|point| point.1);
    let highest = risks.chain(band.iter().map(|point| point.2));

    let mut plot = Plot::new(
        share_axis("share of holds that get an answer"),
        PlotAxis::new("share of wrong answers", Scale::from_zero(highest)),
    );
    plot.band(MODEL_STYLE, "95 % interval", band);
    plot.line(
        MODEL_STYLE,
        "the model, most certain answers first",
        points.clone(),
    );
    let see = "The most certain answers come first: towards the right, more holds get an answer, and more answers are wrong.".to_owned();
    Figure {
        id: "coverage".to_owned(),
        title: "Coverage and share of wrong answers".to_owned(),
        see,
        drawing: plot.into(),
        table: point_table(
            "The curve of the model",
            ["share answered", "share of wrong answers"],
            &points,
        ),
    }
}

/// Mean probabilities and shares of successes by a key of the samples, with intervals. The figures
/// by hold code and over time use them.
struct GroupedShares {
    holds: Vec<usize>,
    shares: Vec<(f64, f64)>,
    bands: Vec<Option<(f64, f64)>>,
}

impl GroupedShares {
    fn new(samples: &ScoredSamples, bin_of_sample: &[usize], bins: usize) -> GroupedShares {
        let shares = |weights: &[f64]| {
            bin_shares(
                bin_of_sample,
                bins,
                &samples.probabilities,
                &samples.labels,
                weights,
            )
        };
        let mut holds = vec![0; bins];
        for &bin in bin_of_sample {
            holds[bin] += 1;
        }
        GroupedShares {
            holds,
            shares: shares(&vec![1.0; samples.len()]),
            bands: samples.bands(|weights| shares(weights).into_iter().map(|one| one.1).collect()),
        }
    }

    fn table(&self, title: &str, key: &str, names: &[String]) -> ReportTable {
        let columns = [
            (key, 0),
            ("holds", 0),
            ("mean probability", 3),
            ("succeeded", 3),
            ("from", 3),
            ("to", 3),
        ];
        let mut table = ReportTable::new(title, &columns);
        for (at, name) in names.iter().enumerate() {
            let (low, high) = self.bands.get(at).copied().flatten().unzip();
            table.push([
                name.clone().into(),
                self.holds[at].into(),
                self.shares[at].0.into(),
                self.shares[at].1.into(),
                low.into(),
                high.into(),
            ]);
        }
        table
    }
}

/// Groups of samples by hold code: the most frequent codes, and one group for all others.
struct CodeGroups {
    /// The group of each sample.
    group_of_sample: Vec<usize>,
    /// Short names for an axis.
    names: Vec<String>,
    /// The names with the meanings of the codes.
    meanings: Vec<String>,
}

fn code_groups(samples: &ScoredSamples) -> CodeGroups {
    let mut counts: BTreeMap<(i32, i32), usize> = BTreeMap::new();
    for code in &samples.codes {
        *counts.entry(*code).or_default() += 1;
    }
    let mut codes: Vec<((i32, i32), usize)> = counts.into_iter().collect();
    codes.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
    let shown: Vec<(i32, i32)> = codes
        .iter()
        .take(MAX_CODES)
        .map(|(code, _)| *code)
        .collect();
    let others = codes.len() > shown.len();

    let group = |code: &(i32, i32)| {
        let at = shown.iter().position(|known| known == code);
        at.unwrap_or(shown.len())
    };
    let group_of_sample: Vec<usize> = samples.codes.iter().map(group).collect();

    let mut names: Vec<String> = shown
        .iter()
        .map(|(code, sub)| format!("{code}/{sub}"))
        .collect();
    let mut meanings: Vec<String> = shown
        .iter()
        .map(|(code, sub)| format!("{code}/{sub}, {}", code_meaning(*code, *sub)))
        .collect();
    if others {
        names.push("others".to_owned());
        meanings.push("all other codes".to_owned());
    }
    CodeGroups {
        group_of_sample,
        names,
        meanings,
    }
}

fn code_figure(samples: &ScoredSamples) -> Figure {
    let groups = code_groups(samples);
    let shares = GroupedShares::new(samples, &groups.group_of_sample, groups.names.len());
    let mut plot = Plot::new(
        share_axis("share that succeeded"),
        PlotAxis::new("hold code", Scale::Words(groups.names)),
    );
    let mut pieces = Vec::new();
    for (at, band) in shares.bands.iter().enumerate() {
        if let Some((low, high)) = band {
            pieces.push([(*low, at as f64), (*high, at as f64)]);
        }
    }
    let dots = |share: fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
        shares
            .shares
            .iter()
            .enumerate()
            .map(|(at, one)| (share(one), at as f64))
            .collect()
    };
    plot.marks.push(PlotMark::Pieces {
        style_id: MODEL_STYLE,
        pieces,
    });
    plot.dots(MODEL_STYLE, "succeeded", dots(|one| one.1));
    plot.legend(MODEL_STYLE, LegendKind::Line, "95 % interval");
    plot.dots(
        MARKED_POINT_STYLE,
        "mean predicted probability",
        dots(|one| one.0),
    );
    Figure {
        id: "by-code".to_owned(),
        title: "By hold code".to_owned(),
        see: "Where a diamond is outside the line of its code, the probabilities for that code are wrong. The codes with the most holds are at the top."
            .to_owned(),
        drawing: plot.into(),
        table: shares.table("Each hold code", "hold code", &groups.meanings),
    }
}

fn time_figure(samples: &ScoredSamples) -> Figure {
    let first = samples.asked_ms.iter().copied().min().unwrap_or(0);
    let last = samples.asked_ms.iter().copied().max().unwrap_or(0);
    let range = (last - first + 1).max(1) as f64;
    let bin = |ms: &i64| ((ms - first) as f64 / range * TIME_BINS as f64) as usize;
    let bin_of_sample: Vec<usize> = samples
        .asked_ms
        .iter()
        .map(|ms| bin(ms).min(TIME_BINS - 1))
        .collect();
    let shares = GroupedShares::new(samples, &bin_of_sample, TIME_BINS);
    let middle = |at: usize| first as f64 + range * (at as f64 + 0.5) / TIME_BINS as f64;

    let ends = [first as f64, last as f64];
    let mut plot = Plot::new(
        PlotAxis::new("prediction time (UTC)", Scale::time(ends.into_iter())),
        share_axis("share of successes"),
    );
    let mut band = Vec::new();
    let (mut predicted, mut observed) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for at in 0..TIME_BINS {
        if let Some((low, high)) = shares.bands.get(at).copied().flatten() {
            band.push((middle(at), low, high));
        }
        // Skip empty bins, so that they do not interrupt the lines.
        if shares.holds[at] > 0 {
            predicted.push((middle(at), shares.shares[at].0));
            observed.push((middle(at), shares.shares[at].1));
        }
        names.push(poolcast_base::output::utc_time(middle(at) as i64));
    }
    plot.band(MODEL_STYLE, "95 % interval of this share", band);
    plot.line(MODEL_STYLE, "share that succeeded", observed);
    plot.line(MARKED_POINT_STYLE, "mean predicted probability", predicted);
    Figure {
        id: "over-time".to_owned(),
        title: "Over time".to_owned(),
        see: "Where the probability leaves the band, the pool has changed since the training: train the model again."
            .to_owned(),
        drawing: plot.into(),
        table: shares.table("Bins of equal length", "middle", &names),
    }
}

fn confusion_table(samples: &ScoredSamples) -> ReportTable {
    let mut counts = [[0usize; 2]; 2];
    for (&probability, &label) in samples.probabilities.iter().zip(&samples.labels) {
        let predicted = usize::from(probability >= samples.threshold);
        counts[predicted][usize::from(label)] += 1;
    }
    let columns = [("prediction", 0), ("succeeded", 0), ("did not succeed", 0)];
    let title = format!(
        "Predictions and outcomes, where success is predicted from a probability of {:.3} on",
        samples.threshold
    );
    let mut table = ReportTable::new(title, &columns);
    for (predicted, words) in [(1, "success"), (0, "no success")] {
        let row: [ReportCell; 3] = [
            words.into(),
            counts[predicted][1].into(),
            counts[predicted][0].into(),
        ];
        table.push(row);
    }
    table
}
