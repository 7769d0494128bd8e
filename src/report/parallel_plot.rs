//! Draws parallel coordinates as SVG: one line per trial across several axes. The axes lie below
//! each other, so that many of them fit on a narrow screen.

use maud::{Markup, html};

use super::plot::{
    LegendEntry, PlotAxis, WIDTH, description_id, line_class, placed_ticks, short, title_id,
};

/// x coordinates of both ends of an axis.
const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH - 12.0;

/// y coordinate of the first axis, distance between two axes, and space below the last one.
const TOP: f64 = 22.0;
const ROW: f64 = 46.0;
const BOTTOM: f64 = 22.0;

/// Parallel coordinates.
#[derive(Debug, Clone)]
pub struct ParallelPlot {
    /// Axes from top to bottom.
    pub axes: Vec<PlotAxis>,
    /// Lines in drawing order: later ones cover earlier ones.
    pub lines: Vec<ParallelLine>,
    /// Legend entries, in display order.
    pub legend: Vec<LegendEntry>,
}

/// The line of one trial across all axes.
#[derive(Debug, Clone)]
pub struct ParallelLine {
    /// Index of the style; `None` for one of the many thin lines that show the density.
    pub style_id: Option<usize>,
    /// Number of the trial.
    pub trial: usize,
    /// Value on each axis. The line is interrupted where there is none.
    pub values: Vec<Option<f64>>,
}

impl ParallelPlot {
    /// Draws the SVG. The ids of its title and description begin with `id`.
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
                    path class=(line_class(line.style_id)) data-trial=(line.trial) d=(self.line_path(line)) {}
                }
                @for (at, axis) in self.axes.iter().enumerate() { (axis_markup(axis, y_of(at))) }
            }
        }
    }

    fn line_path(&self, line: &ParallelLine) -> String {
        let mut path = String::new();
        let mut is_begun = false;
        for (at, (axis, value)) in self.axes.iter().zip(&line.values).enumerate() {
            let Some(position) = value.and_then(|value| axis.scale.position(value)) else {
                is_begun = false;
                continue;
            };
            path.push(if is_begun { 'L' } else { 'M' });
            let x = short(LEFT + position * (RIGHT - LEFT));
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
    fn line_is_interrupted_at_missing_values() {
        let axis = || PlotAxis::new("<a>", Scale::share());
        let plot = ParallelPlot {
            axes: vec![axis(), axis(), axis(), axis()],
            lines: vec![ParallelLine {
                style_id: None,
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
