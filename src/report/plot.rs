//! Draws plots on two axes as SVG that scales with the page. The page's style sheet has the
//! colours.

use maud::{Markup, html};

use super::scale::{Scale, ScaleTick};
use poolcast_base::output;

/// Size and margins of a plot, in SVG units. A unit is about one CSS pixel on the page.
pub(super) const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 250.0;
const TOP: f64 = 24.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 42.0;

/// Space at the left of the y axis: for numbers, and the maximum for words.
const NUMBERS_WIDTH: f64 = 46.0;
const MAX_WORDS_WIDTH: f64 = 132.0;

/// Height of a row of an axis of words.
const WORD_ROW_HEIGHT: f64 = 22.0;

/// Width of a character in a tick label. The average of a label is smaller.
const CHARACTER_WIDTH: f64 = 6.4;

/// Number of styles that distinguish series.
pub(super) const STYLES: usize = 7;

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Axis along the lower edge.
    pub x: PlotAxis,
    /// Axis along the left edge. Words run from the top down.
    pub y: PlotAxis,
    /// Marks in drawing order: later ones cover earlier ones.
    pub marks: Vec<PlotMark>,
    /// Legend entries, in display order.
    pub legend: Vec<LegendEntry>,
}

/// An axis of a plot.
#[derive(Debug, Clone)]
pub struct PlotAxis {
    /// Heading of the axis.
    pub label: String,
    /// Layout of the values.
    pub scale: Scale,
}

/// Legend entry: the name of one style.
#[derive(Debug, Clone)]
pub struct LegendEntry {
    /// Index of the style.
    pub style_id: usize,
    /// Shape of the marks with the style.
    pub kind: LegendKind,
    /// Name of the series.
    pub name: String,
}

/// Shape of the marks that a legend entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegendKind {
    /// A line.
    Line,
    /// A band.
    Band,
    /// Many small points.
    Points,
    /// Many thin lines.
    ThinLines,
    /// Dots.
    Dots,
    /// Boxes.
    Boxes,
}

/// Marks on a plot. A point is a value on each axis.
#[derive(Debug, Clone)]
pub enum PlotMark {
    /// Points joined by a line. The line is interrupted where a value is not finite.
    Line {
        /// Index of the style.
        style_id: usize,
        /// The trial that the line shows.
        trial: Option<usize>,
        /// Points of the line.
        points: Vec<(f64, f64)>,
    },
    /// The area between a lower and an upper value at each x.
    Band {
        /// Index of the style.
        style_id: usize,
        /// x, lower y and upper y.
        points: Vec<(f64, f64, f64)>,
    },
    /// Many small points with the same style.
    Points {
        /// The points.
        points: Vec<(f64, f64)>,
    },
    /// Dots whose shape depends on the style.
    Dots {
        /// Index of the style.
        style_id: usize,
        /// The points.
        points: Vec<(f64, f64)>,
    },
    /// Rectangles, each given by two opposite corners.
    Boxes {
        /// Index of the style.
        style_id: usize,
        /// Two opposite corners of each rectangle.
        boxes: Vec<[(f64, f64); 2]>,
    },
    /// Line segments.
    Pieces {
        /// Index of the style.
        style_id: usize,
        /// Both ends of each segment.
        pieces: Vec<[(f64, f64); 2]>,
    },
}

impl PlotAxis {
    /// Makes the axis `label` on `scale`.
    pub(super) fn new(label: impl Into<String>, scale: Scale) -> PlotAxis {
        PlotAxis {
            label: label.into(),
            scale,
        }
    }
}

impl Plot {
    /// Makes an empty plot.
    pub(super) fn new(x: PlotAxis, y: PlotAxis) -> Plot {
        Plot {
            x,
            y,
            marks: Vec::new(),
            legend: Vec::new(),
        }
    }

    /// Adds a line and its legend entry.
    pub(super) fn line(&mut self, style_id: usize, name: &str, points: Vec<(f64, f64)>) {
        self.marks.push(PlotMark::Line {
            style_id,
            trial: None,
            points,
        });
        self.legend(style_id, LegendKind::Line, name);
    }

    /// Adds dots and their legend entry.
    pub(super) fn dots(&mut self, style_id: usize, name: &str, points: Vec<(f64, f64)>) {
        self.marks.push(PlotMark::Dots { style_id, points });
        self.legend(style_id, LegendKind::Dots, name);
    }

    /// Adds a band and its legend entry.
    pub(super) fn band(&mut self, style_id: usize, name: &str, points: Vec<(f64, f64, f64)>) {
        self.marks.push(PlotMark::Band { style_id, points });
        self.legend(style_id, LegendKind::Band, name);
    }

    /// Adds a legend entry.
    pub(super) fn legend(&mut self, style_id: usize, kind: LegendKind, name: &str) {
        self.legend.push(LegendEntry {
            style_id,
            kind,
            name: name.to_owned(),
        });
    }

    /// Draws the SVG. The ids of its title and description begin with `id`.
    pub(super) fn svg(&self, id: &str, title: &str, description: &str) -> Markup {
        let frame = PlotFrame::new(self);
        let (title_id, description_id) = (title_id(id), description_id(id));
        html! {
            svg role="img" aria-labelledby={ (title_id) " " (description_id) }
                viewBox={ "0 0 " (WIDTH) " " (frame.height()) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                (frame.axes(self))
                @for mark in &self.marks { (frame.mark(mark)) }
            }
        }
    }
}

impl LegendEntry {
    /// Draws a small sample of the style for the legend.
    pub(super) fn swatch(&self) -> Markup {
        let style_id = self.style_id % STYLES;
        html! {
            svg class="swatch" aria-hidden="true" viewBox="0 0 30 12" {
                @match self.kind {
                    LegendKind::Line => path class={ "l" (style_id) } d="M1 6H29" {},
                    LegendKind::Band => rect class={ "b" (style_id) } x="1" y="1" width="28" height="10" {},
                    LegendKind::Boxes => rect class={ "x" (style_id) } x="9" y="0" width="12" height="12" {},
                    LegendKind::Points => path class="p" d="M15 6h0" {},
                    LegendKind::ThinLines => path class=(line_class(None)) d="M1 4H29M1 8H29" {},
                    LegendKind::Dots => path class={ "d" (style_id) } d=(dot_path(style_id, 15.0, 6.0)) {},
                }
            }
        }
    }
}

/// The rectangle in which values are drawn.
struct PlotFrame<'a> {
    x: &'a Scale,
    y: &'a Scale,
    left: f64,
    bottom: f64,
}

impl PlotFrame<'_> {
    fn new(plot: &Plot) -> PlotFrame<'_> {
        let (left, bottom) = match &plot.y.scale {
            Scale::Words(words) => {
                let longest = words.iter().map(|word| word.chars().count()).max();
                let width = longest.unwrap_or(0) as f64 * CHARACTER_WIDTH + 12.0;
                let left = width.clamp(NUMBERS_WIDTH, MAX_WORDS_WIDTH);
                (left, TOP + WORD_ROW_HEIGHT * words.len().max(1) as f64)
            }
            _ => (NUMBERS_WIDTH, HEIGHT - BOTTOM),
        };
        PlotFrame {
            x: &plot.x.scale,
            y: &plot.y.scale,
            left,
            bottom,
        }
    }

    fn height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    fn x_of(&self, position: f64) -> f64 {
        self.left + position * (self.right() - self.left)
    }

    fn y_of(&self, position: f64) -> f64 {
        let share = match self.y {
            Scale::Words(_) => position,
            _ => 1.0 - position,
        };
        TOP + share * (self.bottom - TOP)
    }

    /// Converts a point to coordinates; `None` if one of its values is not finite.
    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((
            self.x_of(self.x.position(x)?),
            self.y_of(self.y.position(y)?),
        ))
    }

    fn axes(&self, plot: &Plot) -> Markup {
        let middle = (self.left + self.right()) / 2.0;
        html! {
            text class="name" x="2" y="12" { (plot.y.label) }
            text class="name" x=(short(middle)) y=(short(self.height() - 6.0)) text-anchor="middle" { (plot.x.label) }
            @for tick in self.y_ticks() { (self.y_tick(&tick)) }
            @for tick in placed_ticks(self.x, self.left, self.right()) { (self.x_tick(&tick)) }
            path class="frame" d={ "M" (short(self.left)) " " (short(TOP)) "V" (short(self.bottom)) "H" (short(self.right())) } {}
        }
    }

    fn y_tick(&self, tick: &ScaleTick) -> Markup {
        let y = self.y_of(tick.position);
        let most = ((self.left - 8.0) / CHARACTER_WIDTH) as usize;
        html! {
            @if !matches!(self.y, Scale::Words(_)) {
                path class="grid" d={ "M" (short(self.left)) " " (short(y)) "H" (short(self.right())) } {}
            }
            text x=(short(self.left - 5.0)) y=(short(y + 3.5)) text-anchor="end" { (output::cut(&tick.label, most)) }
        }
    }

    fn x_tick(&self, tick: &PlacedTick) -> Markup {
        html! {
            @if !matches!(self.x, Scale::Words(_)) {
                path class="grid" d={ "M" (short(tick.x)) " " (short(TOP)) "V" (short(self.bottom)) } {}
            }
            text x=(short(tick.label_x)) y=(short(self.bottom + 17.0)) text-anchor="middle" { (tick.label) }
        }
    }

    /// The ticks of the y axis that do not overlap.
    fn y_ticks(&self) -> Vec<ScaleTick> {
        let mut last: Option<f64> = None;
        let mut ticks = self.y.ticks();
        ticks.retain(|tick| {
            let y = self.y_of(tick.position);
            let has_room = last.is_none_or(|last| (y - last).abs() >= 14.0);
            if has_room {
                last = Some(y);
            }
            has_room
        });
        ticks
    }

    fn mark(&self, mark: &PlotMark) -> Markup {
        match mark {
            PlotMark::Line {
                style_id,
                trial,
                points,
            } => {
                html! { path class={ "l" (style_id % STYLES) } data-trial=[trial.as_ref()] d=(self.line_path(points)) {} }
            }
            PlotMark::Band { style_id, points } => {
                html! { path class={ "b" (style_id % STYLES) } d=(self.band_path(points)) {} }
            }
            PlotMark::Points { points } => {
                html! { path class="p" d=(self.points_path(points)) {} }
            }
            PlotMark::Dots { style_id, points } => {
                html! { path class={ "d" (style_id % STYLES) } d=(self.dots_path(*style_id, points)) {} }
            }
            PlotMark::Boxes { style_id, boxes } => {
                html! { path class={ "x" (style_id % STYLES) } d=(self.boxes_path(boxes)) {} }
            }
            PlotMark::Pieces { style_id, pieces } => {
                html! { path class={ "l" (style_id % STYLES) } d=(self.pieces_path(pieces)) {} }
            }
        }
    }

    fn line_path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut is_begun = false;
        for point in points {
            let Some((x, y)) = self.at(*point) else {
                is_begun = false;
                continue;
            };
            path.push(if is_begun { 'L' } else { 'M' });
            path.push_str(&format!("{} {}", short(x), short(y)));
            is_begun = true;
        }
        path
    }

    fn band_path(&self, points: &[(f64, f64, f64)]) -> String {
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        for &(x, low, high) in points {
            if let (Some(low), Some(high)) = (self.at((x, low)), self.at((x, high))) {
                lower.push(low);
                upper.push(high);
            }
        }
        lower.reverse();
        upper.extend(lower);

        let mut path = String::new();
        for (at, (x, y)) in upper.into_iter().enumerate() {
            path.push(if at == 0 { 'M' } else { 'L' });
            path.push_str(&format!("{} {}", short(x), short(y)));
        }
        path
    }

    fn points_path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (x, y) in points.iter().filter_map(|point| self.at(*point)) {
            path.push_str(&format!("M{} {}h0", short(x), short(y)));
        }
        path
    }

    fn dots_path(&self, style_id: usize, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (x, y) in points.iter().filter_map(|point| self.at(*point)) {
            path.push_str(&dot_path(style_id, x, y));
        }
        path
    }

    fn boxes_path(&self, boxes: &[[(f64, f64); 2]]) -> String {
        let mut path = String::new();
        for [from, to] in boxes {
            if let (Some((x, y)), Some((right, below))) = (self.at(*from), self.at(*to)) {
                let corners = [x, y, right, below].map(short);
                let [x, y, right, below] = corners;
                path.push_str(&format!("M{x} {y}H{right}V{below}H{x}Z"));
            }
        }
        path
    }

    fn pieces_path(&self, pieces: &[[(f64, f64); 2]]) -> String {
        let mut path = String::new();
        for [from, to] in pieces {
            if let (Some((x, y)), Some((to_x, to_y))) = (self.at(*from), self.at(*to)) {
                let ends = [x, y, to_x, to_y].map(short);
                path.push_str(&format!("M{} {}L{} {}", ends[0], ends[1], ends[2], ends[3]));
            }
        }
        path
    }
}

/// A tick along a horizontal axis.
pub(super) struct PlacedTick {
    /// x coordinate of the tick.
    pub(super) x: f64,
    /// x coordinate of the middle of its label.
    pub(super) label_x: f64,
    /// Text of its label.
    pub(super) label: String,
}

/// Returns the ticks between `left` and `right` whose labels do not overlap. Words are cut to their
/// share of the width.
pub(super) fn placed_ticks(scale: &Scale, left: f64, right: f64) -> Vec<PlacedTick> {
    let most = match scale {
        Scale::Words(words) => {
            let room = (right - left) / words.len().max(1) as f64;
            ((room / CHARACTER_WIDTH) as usize).max(2)
        }
        _ => usize::MAX,
    };

    let mut placed = Vec::new();
    let mut free_from = 0.0;
    for tick in scale.ticks() {
        let label = output::cut(&tick.label, most);
        let x = left + tick.position * (right - left);
        let half = label.chars().count() as f64 * CHARACTER_WIDTH / 2.0;
        // Keep the whole label within the plot.
        let label_x = x.min(WIDTH - half - 1.0).max(half + 1.0);
        if label_x - half >= free_from {
            free_from = label_x + half + 3.0;
            placed.push(PlacedTick { x, label_x, label });
        }
    }
    placed
}

/// Returns the id of the title of the plot `id`.
pub(super) fn title_id(id: &str) -> String {
    format!("{id}-t")
}

/// Returns the id of the description of the plot `id`.
pub(super) fn description_id(id: &str) -> String {
    format!("{id}-d")
}

/// Returns the CSS class of a line with this style; `None` is one of many thin lines.
pub(super) fn line_class(style_id: Option<usize>) -> String {
    match style_id {
        Some(style_id) => format!("l{}", style_id % STYLES),
        None => "thin".to_owned(),
    }
}

/// Formats a coordinate with one decimal.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns the outline of a dot, which depends on the style.
fn dot_path(style_id: usize, x: f64, y: f64) -> String {
    let steps = match style_id % STYLES {
        0 => "m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0",
        1 => "m-2.3 -2.3h4.6v4.6h-4.6z",
        2 => "m0 -3l3 5.2h-6z",
        3 => "m0 -3.2l3.2 3.2l-3.2 3.2l-3.2 -3.2z",
        4 => "m0 3l3 -5.2h-6z",
        5 => "m-1 -3h2v2h2v2h-2v2h-2v-2h-2v-2h2z",
        _ => "m-3 -1h6v2h-6z",
    };
    format!("M{} {}{steps}", short(x), short(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        let mut plot = Plot::new(
            PlotAxis::new("<x>", Scale::share()),
            PlotAxis::new("y", Scale::share()),
        );
        plot.line(0, "line", points);
        plot.svg("a", "A & B", "</svg>").into_string()
    }

    #[test]
    fn line_is_interrupted_at_nan() {
        let points = vec![(0.0, 0.0), (0.5, f64::NAN), (0.6, 0.5), (1.0, 1.0)];
        let svg = plot(points);
        assert!(svg.contains("d=\"M46 208M226 116L346 24\""), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn words_are_escaped() {
        let svg = plot(Vec::new());
        assert!(svg.contains("A &amp; B") && svg.contains("&lt;x&gt;"));
        assert!(svg.contains("&lt;/svg&gt;"), "{svg}");
    }

    #[test]
    fn labels_of_the_x_axis_do_not_overlap() {
        let words: Vec<String> = (0..30).map(|word| format!("a long word {word}")).collect();
        let plot = Plot::new(
            PlotAxis::new("x", Scale::Words(words)),
            PlotAxis::new("y", Scale::share()),
        );
        let frame = PlotFrame::new(&plot);
        let ticks = placed_ticks(frame.x, frame.left, frame.right());
        let ends = |tick: &PlacedTick| {
            let half = tick.label.chars().count() as f64 * CHARACTER_WIDTH / 2.0;
            (tick.label_x - half, tick.label_x + half)
        };
        for pair in ticks.windows(2) {
            assert!(ends(&pair[0]).1 <= ends(&pair[1]).0);
        }
    }
}
