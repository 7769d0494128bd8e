//! The drawing of a figure: a plot on two axes, or parallel coordinates.

use maud::Markup;

use super::parallel_plot::ParallelPlot;
use super::plot::{LegendEntry, Plot};

/// The drawing of a figure.
#[derive(Debug, Clone)]
pub enum Drawing {
    /// Marks on two axes.
    OnAxes(Plot),
    /// Lines that cross one axis per hyper-parameter.
    Parallel(ParallelPlot),
}

impl Drawing {
    /// Draws the SVG. The ids of its title and description begin with `id`.
    pub(super) fn svg(&self, id: &str, title: &str, description: &str) -> Markup {
        match self {
            Drawing::OnAxes(plot) => plot.svg(id, title, description),
            Drawing::Parallel(plot) => plot.svg(id, title, description),
        }
    }

    /// The legend entries.
    pub(super) fn legend(&self) -> &[LegendEntry] {
        match self {
            Drawing::OnAxes(plot) => &plot.legend,
            Drawing::Parallel(plot) => &plot.legend,
        }
    }
}

impl From<Plot> for Drawing {
    fn from(plot: Plot) -> Drawing {
        Drawing::OnAxes(plot)
    }
}

impl From<ParallelPlot> for Drawing {
    fn from(plot: ParallelPlot) -> Drawing {
        Drawing::Parallel(plot)
    }
}
