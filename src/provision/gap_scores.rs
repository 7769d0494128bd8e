//! Averages of interruptions and overlaps between chained jobs.

use serde::{Deserialize, Serialize};

use poolcast_base::stats::mean;

/// Mean gaps between a predecessor's end and its successor's start over a set of windows, in hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapScores {
    /// Name of the set of windows, or of the policy.
    pub name: String,
    /// Number of windows.
    pub windows: usize,
    /// Mean time without a running job, hours.
    pub interruption_h: f64,
    /// Mean time in which both jobs ran, hours.
    pub overlap_h: f64,
    /// Sum of mean interruption and mean overlap, hours.
    pub gap_h: f64,
    /// Share of windows without an interruption.
    pub uninterrupted: f64,
}

impl GapScores {
    /// Averages `gaps_h`, in hours. A gap is negative if the two jobs overlapped.
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
    fn interruptions_and_overlaps_are_averaged_separately() {
        let scores = GapScores::of("x", &[2.0, -1.0, 0.0, 3.0]);
        assert_eq!((scores.interruption_h, scores.overlap_h), (1.25, 0.25));
        assert_eq!((scores.gap_h, scores.uninterrupted), (1.5, 0.5));
        assert_eq!(GapScores::of("none", &[]).uninterrupted, 0.0);
    }
}
