//! Trials with a value on each of several axes → parallel coordinates as SVG. The axes lie one below
//! another, so that any number of them can be read on a narrow screen, too.

use maud::{Markup, html};

use super::plot::{
    LegendEntry, PlotAxis, WIDTH, description_id, line_class, placed_ticks, short, title_id,
};

/// Where axes begin and end.
const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH - 12.0;

/// Where the first axis lies, how far each is below the one before it, and what is below the last.
const TOP: f64 = 22.0;
const ROW: f64 = 46.0;
const BOTTOM: f64 = 22.0;

/// Parallel coordinates.
#[derive(Debug, Clone)]
pub struct ParallelPlot {
    /// From the top down.
    pub axes: Vec<PlotAxis>,
    /// What is drawn, the first below the others.
    pub lines: Vec<ParallelLine>,
    /// What the looks mean.
    pub legend: Vec<LegendEntry>,
}

/// A trial across all axes.
#[derive(Debug, Clone)]
pub struct ParallelLine {
    /// The number of its look; `None` for one of the many that are only to show where they crowd.
    pub look: Option<usize>,
    /// The trial.
    pub trial: usize,
    /// Its value on each axis; the line is broken where there is none.
    pub values: Vec<Option<f64>>,
}

impl ParallelPlot {
    /// The SVG, whose title and description have ids that begin with `id`.
    pub(super) fn svg(&self, id: &str, title: &str, description: &str) -> Markup {
        let (title_id, description_id) = (title_id(id), description_id(id));
        let rows = self.axes.len().saturating_sub(1) as f64;
        let height = TOP + ROW * rows + BOTTOM;
        html! {
            svg class="parallel" role="img" aria-labelledby={ (title_id) " " (description_id) }
                viewBox={ "0 0 " (WIDTH) " " (height) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                @for line in &self.lines {
                    path class=(line_class(line.look)) data-trial=(line.trial) d=(self.line_path(line)) {}
                }
                @for (at, axis) in self.axes.iter().enumerate() { (axis_markup(axis, y_of(at))) }
            }
        }
    }

    fn line_path(&self, line: &ParallelLine) -> String {
        let mut path = String::new();
        let mut is_begun = false;
        for (at, (axis, value)) in self.axes.iter().zip(&line.values).enumerate() {
            let Some(place) = value.and_then(|value| axis.scale.place(value)) else {
                is_begun = false;
                continue;
            };
            path.push(if is_begun { 'L' } else { 'M' });
            let x = short(LEFT + place * (RIGHT - LEFT));
            path.push_str(&format!("{x} {}", short(y_of(at))));
            is_begun = true;
        }
        path
    }
}

fn y_of(axis: usize) -> f64 {
    TOP + ROW * axis as f64
}

fn axis_markup(axis: &PlotAxis, y: f64) -> Markup {
    let ticks = placed_ticks(&axis.scale, LEFT, RIGHT);
    let mut marks = String::new();
    for tick in &ticks {
        marks.push_str(&format!("M{} {}v5", short(tick.x), short(y)));
    }
    html! {
        path class="frame" d={ "M" (short(LEFT)) " " (short(y)) "H" (short(RIGHT)) (marks) } {}
        text class="name" x=(short(LEFT)) y=(short(y - 7.0)) { (axis.label) }
        @for tick in &ticks {
            text x=(short(tick.label_x)) y=(short(y + 16.0)) text-anchor="middle" { (tick.label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Scale;

    #[test]
    fn a_line_is_broken_where_a_trial_has_no_value() {
        let axis = || PlotAxis::new("<a>", Scale::share());
        let plot = ParallelPlot {
            axes: vec![axis(), axis(), axis(), axis()],
            lines: vec![ParallelLine {
                look: None,
                trial: 3,
                values: vec![Some(0.0), Some(1.0), None, Some(f64::NAN)],
            }],
            legend: Vec::new(),
        };
        let svg = plot.svg("a", "title", "</svg>").into_string();
        assert!(
            svg.contains("data-trial=\"3\" d=\"M12 22L348 68\""),
            "{svg}"
        );
        assert!(svg.contains("&lt;a&gt;") && svg.contains("&lt;/svg&gt;"));
        assert!(!svg.contains("NaN"));
    }
}
