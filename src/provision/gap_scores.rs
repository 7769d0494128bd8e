//! What gaps between chained jobs come to.

use serde::{Deserialize, Serialize};

use poolcast_base::stats::mean;

/// Gaps between a predecessor's end and its successor's start, on some windows; hours, on average.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapScores {
    /// Which windows.
    pub name: String,
    /// How many.
    pub windows: usize,
    /// How long nothing ran.
    pub interruption_h: f64,
    /// How long both ran.
    pub overlap_h: f64,
    /// The sum of both.
    pub gap_h: f64,
    /// The share of windows without an interruption.
    pub uninterrupted: f64,
}

impl GapScores {
    /// Those of the gaps `gaps_h`, hours, each of which is below 0 for an overlap.
    pub fn of(name: &str, gaps_h: &[f64]) -> GapScores {
        let interruptions: Vec<f64> = gaps_h.iter().map(|gap| gap.max(0.0)).collect();
        let overlaps: Vec<f64> = gaps_h.iter().map(|gap| (-gap).max(0.0)).collect();
        let uninterrupted = gaps_h.iter().filter(|gap| **gap <= 0.0).count();
        GapScores {
            name: name.to_owned(),
            windows: gaps_h.len(),
            interruption_h: mean(&interruptions),
            overlap_h: mean(&overlaps),
            gap_h: mean(&interruptions) + mean(&overlaps),
            uninterrupted: uninterrupted as f64 / gaps_h.len().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_and_overlaps_are_apart() {
        let scores = GapScores::of("x", &[2.0, -1.0, 0.0, 3.0]);
        assert_eq!((scores.interruption_h, scores.overlap_h), (1.25, 0.25));
        assert_eq!((scores.gap_h, scores.uninterrupted), (1.5, 0.5));
        assert_eq!(GapScores::of("none", &[]).uninterrupted, 0.0);
    }
}
