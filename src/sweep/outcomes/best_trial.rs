//! Finds the best trial so far by the sweep's metric.

use serde::{Deserialize, Serialize};

use super::outcome::{TrialOutcome, TrialOutcomes};
use crate::plan::TrialRow;
use poolcast_config::Metric;

/// The best trial so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestTrial {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The value by which it was chosen.
    pub value: f64,
}

impl BestTrial {
    /// The best of `outcomes`, the first of equals; `None` if no outcome has a value.
    pub(crate) fn among<'a>(
        metric: &Metric,
        outcomes: impl IntoIterator<Item = &'a TrialOutcome>,
    ) -> Option<BestTrial> {
        let ranked = outcomes
            .into_iter()
            .filter_map(|outcome| Some((outcome.trial, outcome.rank()?)));
        let (trial, (value, _)) = ranked.min_by(|a, b| metric.goal.order(a.1, b.1))?;
        Some(BestTrial { trial, value })
    }
}

/// The best of `outcomes`, the first of equals; `None` if no outcome has a value.
pub fn best_outcome(metric: &Metric, outcomes: &TrialOutcomes) -> Option<BestTrial> {
    BestTrial::among(metric, outcomes.all())
}

/// The best of `rows`, the first of equals; `None` if no row has a value.
pub fn best_trial(metric: &Metric, rows: &[TrialRow]) -> Option<BestTrial> {
    BestTrial::among(metric, TrialOutcomes::from_rows(rows.to_vec()).all())
}
