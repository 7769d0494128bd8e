//! The true outcomes of the holds after the time cuts, for the scores of a trial's predictions.

use super::bbc_cv::{FMeasureThreshold, TrueTargets};
use poolcast_holds::training::RollingPredictions;
use poolcast_tables::{RowClasses, RowTargets};

/// The true outcomes of holds, and their groups.
#[derive(Debug)]
pub(super) struct RollingTruth {
    outcomes: RowTargets,
    /// The cluster of each hold.
    clusters: Vec<u64>,
}

impl RollingTruth {
    /// Returns the outcomes of the holds that `predicted` has.
    pub(super) fn new(predicted: &RollingPredictions) -> RollingTruth {
        RollingTruth {
            outcomes: RowTargets::Classes(RowClasses {
                names: ["failure", "success"].map(str::to_owned).to_vec(),
                y: predicted.labels.iter().copied().map(u32::from).collect(),
            }),
            clusters: predicted.clusters.iter().copied().map(u64::from).collect(),
        }
    }

    /// Returns the outcomes as targets, in groups by cluster.
    pub(super) fn targets(&self) -> TrueTargets<'_> {
        TrueTargets {
            targets: &self.outcomes,
            groups: &self.clusters,
            threshold: FMeasureThreshold::Chosen,
        }
    }
}
