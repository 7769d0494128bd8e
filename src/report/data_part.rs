//! The part on the data: the holds in the log, the samples that were learned from, and the holds
//! that were left out.

use anyhow::Result;

use super::document::{Figure, MissingInput, ReportBlock, ReportPart, ReportTable};
use super::hold_history::{PastHoldTime, ReleaseShare, frequent_codes, past_hold_times};
use super::inputs::ReportInputs;
use super::plot::{LegendKind, Plot, PlotAxis, PlotMark};
use super::scale::Scale;
use poolcast_base::output;
use poolcast_events::EventStore;
use poolcast_holds::decision::code_meaning;
use poolcast_sweep as sweep;
use poolcast_tensors::{Dataset, Split, TensorSummary, audit};

/// Number of bins of the time axis.
const TIME_BINS: usize = 24;

/// Number of codes with their own style over time, and maximum number of codes with a row.
const STYLED_CODES: usize = 5;
const MAX_CODES: usize = 12;

/// Makes the part.
///
/// # Errors
/// Fails if a file is damaged.
pub(super) fn data_part(inputs: &ReportInputs) -> Result<ReportPart> {
    let mut blocks = Vec::new();
    let events = EventStore::open(&sweep::events_dir(&inputs.dir));
    if let Some(store) = inputs.if_available(events)? {
        blocks.extend(hold_blocks(&store));
    }
    blocks.extend(sample_blocks(inputs)?);
    if blocks.is_empty() {
        blocks.push(ReportBlock::Missing(missing(inputs)));
    }
    Ok(ReportPart {
        id: "data",
        title: "Training data",
        blocks,
    })
}

fn missing(inputs: &ReportInputs) -> MissingInput {
    if inputs.is_over_waits() {
        return MissingInput {
            text: "The models learned from samples of a simulated Slurm queue. The directory samples has a copy of them."
                .to_owned(),
            command: None,
        };
    }
    if inputs.config.data.is_given() {
        return MissingInput {
            text: "The models learned from tables, which have no holds.".to_owned(),
            command: None,
        };
    }
    MissingInput {
        text:
            "The events of the log are not in this directory, or were read by another version of poolcast. To read a log and print its contents:"
                .to_owned(),
        command: Some("poolcast parse LOG -o EVENTS".to_owned()),
    }
}

fn hold_blocks(store: &EventStore) -> Vec<ReportBlock> {
    let holds = past_hold_times(store);
    if holds.is_empty() {
        return vec![ReportBlock::paragraph("The log has no holds.")];
    }
    let bins = TimeBins::new(store.summary.begin_ms, store.summary.end_ms);
    let source = store.summary.source().sentence();
    let mut blocks = Vec::from_iter(source.map(ReportBlock::paragraph));
    blocks.extend([
        ReportBlock::figure(holds_figure(&holds, &bins)),
        ReportBlock::figure(code_figure(&holds)),
        ReportBlock::figure(success_figure(&holds, &bins)),
    ]);
    blocks
}

/// Bins of equal length over the time range of a log.
struct TimeBins {
    begin_ms: i64,
    range_ms: f64,
}

impl TimeBins {
    fn new(begin_ms: i64, end_ms: i64) -> TimeBins {
        TimeBins {
            begin_ms,
            range_ms: (end_ms.saturating_sub(begin_ms)).max(1) as f64,
        }
    }

    fn bin(&self, ms: i64) -> usize {
        let share = ms.saturating_sub(self.begin_ms) as f64 / self.range_ms;
        ((share * TIME_BINS as f64).max(0.0) as usize).min(TIME_BINS - 1)
    }

    /// Returns the start of bin `at`, epoch ms.
    fn begin(&self, at: usize) -> f64 {
        self.begin_ms as f64 + self.range_ms * at as f64 / TIME_BINS as f64
    }

    fn middle(&self, at: usize) -> f64 {
        (self.begin(at) + self.begin(at + 1)) / 2.0
    }

    fn axis(&self) -> PlotAxis {
        let ends = [self.begin(0), self.begin(TIME_BINS)];
        PlotAxis::new("time of the hold (UTC)", Scale::time(ends.into_iter()))
    }
}

/// Plots the holds over time, stacked by code.
fn holds_figure(holds: &[PastHoldTime], bins: &TimeBins) -> Figure {
    let codes = frequent_codes(holds);
    let styled = &codes[..codes.len().min(STYLED_CODES)];
    let mut names: Vec<String> = styled
        .iter()
        .map(|(code, sub)| format!("{code}/{sub}"))
        .collect();
    if codes.len() > styled.len() {
        names.push("all others".to_owned());
    }

    let mut counts = vec![[0usize; TIME_BINS]; names.len()];
    for hold in holds {
        let index = styled.iter().position(|code| *code == hold.code);
        counts[index.unwrap_or(styled.len())][bins.bin(hold.held_ms)] += 1;
    }
    let sums = (0..TIME_BINS).map(|at| counts.iter().map(|row| row[at]).sum::<usize>() as f64);
    let mut plot = Plot::new(bins.axis(), PlotAxis::new("holds", Scale::from_zero(sums)));
    // The boxes of a code begin at the tops of the previous codes.
    let mut tops = [0.0; TIME_BINS];
    for (style_id, (row, name)) in counts.iter().zip(&names).enumerate() {
        let mut boxes = Vec::new();
        for (at, count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
            let top = tops[at] + *count as f64;
            boxes.push([(bins.begin(at), tops[at]), (bins.begin(at + 1), top)]);
            tops[at] = top;
        }
        plot.marks.push(PlotMark::Boxes { style_id, boxes });
        plot.legend(style_id, LegendKind::Boxes, name);
    }

    let mut columns = vec![("from", 0)];
    columns.extend(names.iter().map(|name| (name.as_str(), 0)));
    let mut table = ReportTable::new("Holds by code", &columns);
    for at in 0..TIME_BINS {
        let mut row = vec![output::utc_time(bins.begin(at) as i64).into()];
        row.extend(counts.iter().map(|counts| counts[at].into()));
        table.rows.push(row);
    }
    Figure {
        id: "holds-over-time".to_owned(),
        title: "Holds over time, by code".to_owned(),
        see: "A high column is often an outage, or a large submission with one fault. Codes are stacked in the order of the legend, with the first at the bottom."
            .to_owned(),
        drawing: plot.into(),
        table,
    }
}

/// Plots the success of releases by hold code.
fn code_figure(holds: &[PastHoldTime]) -> Figure {
    let mut codes = frequent_codes(holds);
    codes.truncate(MAX_CODES);
    let columns = [
        ("hold code", 0),
        ("holds", 0),
        ("known outcomes", 0),
        ("succeeded", 3),
        ("from", 3),
        ("to", 3),
    ];
    let mut table = ReportTable::new("The codes with the most holds", &columns);
    let (mut names, mut dots, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    for (at, &(code, sub)) in codes.iter().enumerate() {
        let mut share = ReleaseShare::default();
        for hold in holds.iter().filter(|hold| hold.code == (code, sub)) {
            share.add(hold);
        }
        let ends = share.share();
        if let Some((share, low, high)) = ends {
            dots.push((share, at as f64));
            pieces.push([(low, at as f64), (high, at as f64)]);
        }
        names.push(format!("{code}/{sub}"));
        table.push([
            format!("{code}/{sub}, {}", code_meaning(code, sub)).into(),
            share.holds.into(),
            share.known.into(),
            ends.map(|ends| ends.0).into(),
            ends.map(|ends| ends.1).into(),
            ends.map(|ends| ends.2).into(),
        ]);
    }

    let mut plot = Plot::new(
        PlotAxis::new("share of releases that succeeded", Scale::share()),
        PlotAxis::new("hold code", Scale::Words(names)),
    );
    plot.marks.push(PlotMark::Pieces {
        style_id: 0,
        pieces,
    });
    plot.dots(0, "succeeded", dots);
    plot.legend(0, LegendKind::Line, "95 % interval, by cluster");
    Figure {
        id: "success-by-code".to_owned(),
        title: "Success after release, by code".to_owned(),
        see: "The share of jobs held with each code that succeeded after their release. A long line means that the estimate is from few clusters."
            .to_owned(),
        drawing: plot.into(),
        table,
    }
}

/// Plots the success of releases over time.
fn success_figure(holds: &[PastHoldTime], bins: &TimeBins) -> Figure {
    let mut shares = vec![ReleaseShare::default(); TIME_BINS];
    for hold in holds {
        shares[bins.bin(hold.held_ms)].add(hold);
    }
    let columns = [
        ("from", 0),
        ("holds", 0),
        ("known outcomes", 0),
        ("succeeded", 3),
        ("share from", 3),
        ("share to", 3),
    ];
    let mut table = ReportTable::new("Over time", &columns);
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for (at, share) in shares.iter().enumerate() {
        let ends = share.share();
        if let Some((share, low, high)) = ends {
            line.push((bins.middle(at), share));
            band.push((bins.middle(at), low, high));
        }
        table.push([
            output::utc_time(bins.begin(at) as i64).into(),
            share.holds.into(),
            share.known.into(),
            ends.map(|ends| ends.0).into(),
            ends.map(|ends| ends.1).into(),
            ends.map(|ends| ends.2).into(),
        ]);
    }

    let label = "share of releases that succeeded";
    let mut plot = Plot::new(bins.axis(), PlotAxis::new(label, Scale::share()));
    plot.band(0, "95 % interval, by cluster", band);
    plot.line(0, "succeeded", line);
    Figure {
        id: "success-over-time".to_owned(),
        title: "Success after release, over time".to_owned(),
        see: "A lasting rise or fall means that the pool or its users have changed, and that older holds are less useful for training."
            .to_owned(),
        drawing: plot.into(),
        table,
    }
}

/// Shows the samples of the best model, and the holds that were left out.
fn sample_blocks(inputs: &ReportInputs) -> Result<Vec<ReportBlock>> {
    let Some(run) = inputs.best_run() else {
        return Ok(Vec::new());
    };
    let Some(model) = inputs.open_model(run)? else {
        return Ok(Vec::new());
    };
    let opened = Dataset::open(&sweep::tensors_dir(&inputs.dir, &model.tensors));
    let Some(dataset) = inputs.if_available(opened)? else {
        return Ok(Vec::new());
    };
    Ok(vec![
        ReportBlock::figure(split_figure(&dataset.summary)),
        ReportBlock::Table(left_out_table(&dataset.summary)),
        ReportBlock::paragraph(
            "A model can memorize what two splits share, which makes its scores too optimistic. Late windows and late outcomes of the earlier split show events from the prediction times of the later split, and should be 0. If the log is split by time, shared clusters and codes are realistic: clusters are held again, and most holds are similar.",
        ),
        ReportBlock::Table(audit_table(&dataset)?),
    ])
}

/// Plots the time ranges of the splits.
fn split_figure(summary: &TensorSummary) -> Figure {
    let columns = [
        ("split", 0),
        ("samples", 0),
        ("succeeded", 3),
        ("from", 0),
        ("to", 0),
    ];
    let mut table = ReportTable::new("The splits", &columns);
    let (mut names, mut boxes, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for split in Split::ALL {
        let Some(samples) = summary.splits.get(&split).filter(|known| known.samples > 0) else {
            continue;
        };
        let (from, to) = (samples.from_ms as f64, samples.to_ms as f64);
        let row = names.len() as f64;
        boxes.push([(from, row - 0.3), (to, row + 0.3)]);
        ends.extend([from, to]);
        names.push(split.name().to_owned());
        table.push([
            split.name().into(),
            samples.samples.into(),
            samples.success_share().into(),
            output::utc_time(samples.from_ms).into(),
            output::utc_time(samples.to_ms).into(),
        ]);
    }

    let mut plot = Plot::new(
        PlotAxis::new("prediction time (UTC)", Scale::time(ends.into_iter())),
        PlotAxis::new("split", Scale::Words(names)),
    );
    plot.marks.push(PlotMark::Boxes { style_id: 0, boxes });
    plot.legend(0, LegendKind::Boxes, "samples of the split");
    Figure {
        id: "split".to_owned(),
        title: "The splits over time".to_owned(),
        see: format!(
            "The model learns from train and validate, and is scored on test. Splits that do not overlap in time test it on the future. Split by {}.",
            summary.settings.split
        ),
        drawing: plot.into(),
        table,
    }
}

fn left_out_table(summary: &TensorSummary) -> ReportTable {
    let columns = [
        ("reason", 0),
        ("holds", 0),
        ("known outcomes", 0),
        ("succeeded", 0),
    ];
    let title = format!(
        "Holds that are not samples, of {}",
        output::counted(summary.cycles_total, "hold")
    );
    let mut table = ReportTable::new(title, &columns);
    for (reason, left_out) in &summary.left_out {
        table.push([
            reason.name().into(),
            left_out.cycles.into(),
            left_out.labelled.into(),
            left_out.successes.into(),
        ]);
    }
    table
}

fn audit_table(dataset: &Dataset) -> Result<ReportTable> {
    let columns = [
        ("splits", 0),
        ("clusters", 0),
        ("seconds", 0),
        ("duplicates", 0),
        ("with equal label", 0),
        ("late windows", 0),
        ("late outcomes", 0),
    ];
    let mut table = ReportTable::new("Overlap of the splits", &columns);
    for shared in &audit(dataset)?.shared {
        table.push([
            format!("{} and {}", shared.from.name(), shared.to.name()).into(),
            shared.clusters.into(),
            shared.asked_seconds.into(),
            shared.duplicates.into(),
            shared.duplicates_of_one_label.into(),
            shared.late_windows.into(),
            shared.late_outcomes.into(),
        ]);
    }
    Ok(table)
}
