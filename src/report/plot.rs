//! Marks on two axes → SVG that scales with the page, whose colours the page's style sheet has.

use maud::{Markup, html};

use super::scale::{Scale, ScaleTick};
use poolcast_base::output;

/// The size of a plot in its own units, which are about those of the page's text.
pub(super) const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 250.0;
const TOP: f64 = 24.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 42.0;

/// The room at the left for numbers, and for words at most.
const NUMBERS_WIDTH: f64 = 46.0;
const MOST_WORDS_WIDTH: f64 = 132.0;

/// The height of a row of an axis of words.
const WORD_ROW: f64 = 22.0;

/// How wide a character of a tick is, at most on average.
const CHARACTER: f64 = 6.4;

/// So many looks tell series apart.
pub(super) const LOOKS: usize = 7;

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Along the lower edge.
    pub x: PlotAxis,
    /// Along the left edge; words stand from the top down.
    pub y: PlotAxis,
    /// What is drawn, the first below the others.
    pub marks: Vec<PlotMark>,
    /// What the looks mean, in the order in which they are told.
    pub legend: Vec<LegendEntry>,
}

/// An axis of a plot.
#[derive(Debug, Clone)]
pub struct PlotAxis {
    /// What it shows.
    pub label: String,
    /// How its values are laid out.
    pub scale: Scale,
}

/// What a look means.
#[derive(Debug, Clone)]
pub struct LegendEntry {
    /// The number of the look.
    pub look: usize,
    /// What is drawn with it.
    pub kind: LegendKind,
    /// What has it.
    pub name: String,
}

/// What is drawn with a look.
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

/// Something on a plot. A place is a value on each axis.
#[derive(Debug, Clone)]
pub enum PlotMark {
    /// Points joined by a line, which is broken where one is no number.
    Line {
        /// The number of its look.
        look: usize,
        /// The trial that it is of.
        trial: Option<usize>,
        /// Its points.
        points: Vec<(f64, f64)>,
    },
    /// The room between a lower and an upper value at each x.
    Band {
        /// The number of its look.
        look: usize,
        /// x, the lower y and the upper one.
        points: Vec<(f64, f64, f64)>,
    },
    /// Many points, each small and all alike.
    Points {
        /// Their places.
        points: Vec<(f64, f64)>,
    },
    /// Points.
    Dots {
        /// The number of their look.
        look: usize,
        /// Their places.
        points: Vec<(f64, f64)>,
    },
    /// Rectangles between two corners.
    Boxes {
        /// The number of their look.
        look: usize,
        /// Both corners of each.
        boxes: Vec<[(f64, f64); 2]>,
    },
    /// Straight pieces of line between two ends.
    Pieces {
        /// The number of their look.
        look: usize,
        /// Both ends of each.
        pieces: Vec<[(f64, f64); 2]>,
    },
}

impl PlotAxis {
    /// The axis `label` on `scale`.
    pub(super) fn new(label: impl Into<String>, scale: Scale) -> PlotAxis {
        PlotAxis {
            label: label.into(),
            scale,
        }
    }
}

impl Plot {
    /// A plot with nothing on it.
    pub(super) fn new(x: PlotAxis, y: PlotAxis) -> Plot {
        Plot {
            x,
            y,
            marks: Vec::new(),
            legend: Vec::new(),
        }
    }

    /// Adds a line, with its name in the legend.
    pub(super) fn line(&mut self, look: usize, name: &str, points: Vec<(f64, f64)>) {
        self.marks.push(PlotMark::Line {
            look,
            trial: None,
            points,
        });
        self.legend(look, LegendKind::Line, name);
    }

    /// Adds dots, with their name in the legend.
    pub(super) fn dots(&mut self, look: usize, name: &str, points: Vec<(f64, f64)>) {
        self.marks.push(PlotMark::Dots { look, points });
        self.legend(look, LegendKind::Dots, name);
    }

    /// Adds a band, with its name in the legend.
    pub(super) fn band(&mut self, look: usize, name: &str, points: Vec<(f64, f64, f64)>) {
        self.marks.push(PlotMark::Band { look, points });
        self.legend(look, LegendKind::Band, name);
    }

    /// Says what a look means.
    pub(super) fn legend(&mut self, look: usize, kind: LegendKind, name: &str) {
        self.legend.push(LegendEntry {
            look,
            kind,
            name: name.to_owned(),
        });
    }

    /// The SVG, whose title and description have ids that begin with `id`.
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
    /// A small picture of the look.
    pub(super) fn swatch(&self) -> Markup {
        let look = self.look % LOOKS;
        html! {
            svg class="swatch" aria-hidden="true" viewBox="0 0 30 12" {
                @match self.kind {
                    LegendKind::Line => path class={ "l" (look) } d="M1 6H29" {},
                    LegendKind::Band => rect class={ "b" (look) } x="1" y="1" width="28" height="10" {},
                    LegendKind::Boxes => rect class={ "x" (look) } x="9" y="0" width="12" height="12" {},
                    LegendKind::Points => path class="p" d="M15 6h0" {},
                    LegendKind::ThinLines => path class=(line_class(None)) d="M1 4H29M1 8H29" {},
                    LegendKind::Dots => path class={ "d" (look) } d=(dot_path(look, 15.0, 6.0)) {},
                }
            }
        }
    }
}

/// The rectangle that values are drawn in.
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
                let width = longest.unwrap_or(0) as f64 * CHARACTER + 12.0;
                let left = width.clamp(NUMBERS_WIDTH, MOST_WORDS_WIDTH);
                (left, TOP + WORD_ROW * words.len().max(1) as f64)
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

    fn x_of(&self, place: f64) -> f64 {
        self.left + place * (self.right() - self.left)
    }

    fn y_of(&self, place: f64) -> f64 {
        let share = match self.y {
            Scale::Words(_) => place,
            _ => 1.0 - place,
        };
        TOP + share * (self.bottom - TOP)
    }

    /// Where a point is drawn; `None` where one of its values is no number.
    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x_of(self.x.place(x)?), self.y_of(self.y.place(y)?)))
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
        let y = self.y_of(tick.place);
        let most = ((self.left - 8.0) / CHARACTER) as usize;
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

    /// The ticks of the y axis that have room.
    fn y_ticks(&self) -> Vec<ScaleTick> {
        let mut last: Option<f64> = None;
        let mut ticks = self.y.ticks();
        ticks.retain(|tick| {
            let y = self.y_of(tick.place);
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
                look,
                trial,
                points,
            } => {
                html! { path class={ "l" (look % LOOKS) } data-trial=[trial.as_ref()] d=(self.line_path(points)) {} }
            }
            PlotMark::Band { look, points } => {
                html! { path class={ "b" (look % LOOKS) } d=(self.band_path(points)) {} }
            }
            PlotMark::Points { points } => {
                html! { path class="p" d=(self.points_path(points)) {} }
            }
            PlotMark::Dots { look, points } => {
                html! { path class={ "d" (look % LOOKS) } d=(self.dots_path(*look, points)) {} }
            }
            PlotMark::Boxes { look, boxes } => {
                html! { path class={ "x" (look % LOOKS) } d=(self.boxes_path(boxes)) {} }
            }
            PlotMark::Pieces { look, pieces } => {
                html! { path class={ "l" (look % LOOKS) } d=(self.pieces_path(pieces)) {} }
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

    fn dots_path(&self, look: usize, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (x, y) in points.iter().filter_map(|point| self.at(*point)) {
            path.push_str(&dot_path(look, x, y));
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
    /// Where it is.
    pub(super) x: f64,
    /// Where the middle of its label stands.
    pub(super) label_x: f64,
    /// What is written there.
    pub(super) label: String,
}

/// The ticks between `left` and `right` that have room; words are cut to theirs.
pub(super) fn placed_ticks(scale: &Scale, left: f64, right: f64) -> Vec<PlacedTick> {
    let most = match scale {
        Scale::Words(words) => {
            let room = (right - left) / words.len().max(1) as f64;
            ((room / CHARACTER) as usize).max(2)
        }
        _ => usize::MAX,
    };

    let mut placed = Vec::new();
    let mut free_from = 0.0;
    for tick in scale.ticks() {
        let label = output::cut(&tick.label, most);
        let x = left + tick.place * (right - left);
        let half = label.chars().count() as f64 * CHARACTER / 2.0;
        // Nothing of a label is outside.
        let label_x = x.min(WIDTH - half - 1.0).max(half + 1.0);
        if label_x - half >= free_from {
            free_from = label_x + half + 3.0;
            placed.push(PlacedTick { x, label_x, label });
        }
    }
    placed
}

/// The id of the title of the plot `id`.
pub(super) fn title_id(id: &str) -> String {
    format!("{id}-t")
}

/// The id of the description of the plot `id`.
pub(super) fn description_id(id: &str) -> String {
    format!("{id}-d")
}

/// The class of a line with this look, or of one of many thin ones.
pub(super) fn line_class(look: Option<usize>) -> String {
    match look {
        Some(look) => format!("l{}", look % LOOKS),
        None => "thin".to_owned(),
    }
}

/// A coordinate with a tenth of a unit.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The outline of a dot: each look has another.
fn dot_path(look: usize, x: f64, y: f64) -> String {
    let steps = match look % LOOKS {
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
    fn a_line_is_broken_where_there_is_no_number() {
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
    fn labels_along_the_lower_edge_do_not_meet() {
        let words: Vec<String> = (0..30).map(|word| format!("a long word {word}")).collect();
        let plot = Plot::new(
            PlotAxis::new("x", Scale::Words(words)),
            PlotAxis::new("y", Scale::share()),
        );
        let frame = PlotFrame::new(&plot);
        let ticks = placed_ticks(frame.x, frame.left, frame.right());
        let ends = |tick: &PlacedTick| {
            let half = tick.label.chars().count() as f64 * CHARACTER / 2.0;
            (tick.label_x - half, tick.label_x + half)
        };
        for pair in ticks.windows(2) {
            assert!(ends(&pair[0]).1 <= ends(&pair[1]).0);
        }
    }
}
