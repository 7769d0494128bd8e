//! A plot of either kind → its SVG and what its looks mean.

use maud::Markup;

use super::parallel_plot::ParallelPlot;
use super::plot::{LegendEntry, Plot};

/// What a figure draws.
#[derive(Debug, Clone)]
pub enum Drawing {
    /// Marks on two axes.
    OnAxes(Plot),
    /// Lines across an axis for each hyper-parameter.
    Parallel(ParallelPlot),
}

impl Drawing {
    /// The SVG, whose title and description have ids that begin with `id`.
    pub(super) fn svg(&self, id: &str, title: &str, description: &str) -> Markup {
        match self {
            Drawing::OnAxes(plot) => plot.svg(id, title, description),
            Drawing::Parallel(plot) => plot.svg(id, title, description),
        }
    }

    /// What the looks mean.
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
